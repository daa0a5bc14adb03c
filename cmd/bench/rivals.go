package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
)

// rivalConfig configures a rival server.
type rivalConfig struct {
	Answer      []byte // the venue's response to an order
	DatabaseURL string
}

// rivalReady contains the URL of a rival.
type rivalReady struct{ URL string }

// entered is an order as a plain handler decodes it.
type entered struct {
	Symbol      string `json:"symbol"`
	Action      string `json:"action"`
	Type        string `json:"type"`
	Amount      string `json:"amount"`
	LimitPrice  string `json:"limit_price"`
	TimeInForce string `json:"time_in_force"`
}

const entryPath = "/v1/customers/:customer_code/orders"

// noopChild is a bare Echo without middleware that decodes the order's JSON and answers with the bytes of an order. It
// does nothing else: no authentication, no checks, no state, no log.
func noopChild(_ context.Context, cfg rivalConfig, in *json.Decoder, out *json.Encoder) error {
	return serveRival(entry(cfg.Answer, func(echo.Context, *entered) error { return nil }), in, out)
}

// entry returns a bare Echo that decodes an order, calls enter, and answers with the bytes of an order.
func entry(answer []byte, enter func(echo.Context, *entered) error) *echo.Echo {
	e := echo.New()
	e.POST(entryPath, func(c echo.Context) error {
		var o entered
		if err := c.Echo().JSONSerializer.Deserialize(c, &o); err != nil {
			return err
		}
		if err := enter(c, &o); err != nil {
			return err
		}
		return c.JSONBlob(http.StatusCreated, answer)
	})
	return e
}

// serveRival serves until the input ends.
func serveRival(handler http.Handler, in *json.Decoder, out *json.Encoder) error {
	addr, stop, err := serveHTTP(handler)
	if err != nil {
		return err
	}
	return errors.Join(awaitEnd(in, out, rivalReady{"http://" + addr}), stop())
}

// serveHTTP serves on a free port until stop is called, which waits for the server's end.
func serveHTTP(handler http.Handler) (addr string, stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: handler}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return listener.Addr().String(), func() error { return errors.Join(server.Close(), ignoreClosed(<-served)) }, nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// tables is the smallest schema for a resting order in a venue that only uses Postgres.
const tables = `
CREATE TABLE accounts (customer_code text PRIMARY KEY, balance numeric NOT NULL, reserved numeric NOT NULL);
CREATE TABLE orders (code uuid PRIMARY KEY, customer_code text NOT NULL REFERENCES accounts, symbol text NOT NULL, action text NOT NULL,
	type text NOT NULL, amount numeric NOT NULL, limit_price numeric NOT NULL, time_in_force text NOT NULL, created timestamptz NOT NULL DEFAULT now());
CREATE TABLE ledger (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_code text NOT NULL, order_code uuid NOT NULL,
	account text NOT NULL, amount numeric NOT NULL, created timestamptz NOT NULL DEFAULT now());`

// postgresChild is the usual implementation: the same handler with one Postgres transaction, which locks the account
// and inserts the order and two ledger rows. The transaction is durable before the handler answers.
func postgresChild(ctx context.Context, cfg rivalConfig, in *json.Decoder, out *json.Encoder) error {
	pool, err := durablePool(ctx, cfg.DatabaseURL, tables)
	if err != nil {
		return err
	}
	defer pool.Close()
	var commits, fsync string
	if err := pool.QueryRow(ctx, "SELECT current_setting('synchronous_commit'), current_setting('fsync')").Scan(&commits, &fsync); err != nil {
		return err
	}
	if commits != "on" || fsync != "on" {
		return fmt.Errorf("commits are not durable: synchronous_commit is %s, fsync %s", commits, fsync)
	}
	for n := range customers {
		if _, err := pool.Exec(ctx, "INSERT INTO accounts VALUES ($1, $2::numeric, 0)", customerCode(n), funds); err != nil {
			return err
		}
	}
	return serveRival(entry(cfg.Answer, func(c echo.Context, o *entered) error {
		return enter(c.Request().Context(), pool, c.Param("customer_code"), o)
	}), in, out)
}

// durablePool opens a pool of 32 connections with synchronous commits, and creates tables.
func durablePool(ctx context.Context, url, tables string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = 32
	cfg.ConnConfig.RuntimeParams["synchronous_commit"] = "on"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func enter(ctx context.Context, pool *pgxpool.Pool, customer string, o *entered) error {
	var code [16]byte
	rand.Read(code[:]) // never fails
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		var enough bool
		err := tx.QueryRow(ctx, "SELECT balance - reserved >= $2::numeric * $3::numeric / 20 FROM accounts WHERE customer_code = $1 FOR UPDATE",
			customer, o.Amount, o.LimitPrice).Scan(&enough)
		if err != nil {
			return err
		}
		if !enough {
			return fmt.Errorf("%s lacks margin", customer)
		}
		if _, err := tx.Exec(ctx, "INSERT INTO orders (code, customer_code, symbol, action, type, amount, limit_price, time_in_force) VALUES ($1, $2, $3, $4, $5, $6::numeric, $7::numeric, $8)",
			code, customer, o.Symbol, o.Action, o.Type, o.Amount, o.LimitPrice, o.TimeInForce); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO ledger (customer_code, order_code, account, amount) VALUES ($1, $2, 'available', -$3::numeric * $4::numeric / 20), ($1, $2, 'reserved', $3::numeric * $4::numeric / 20)",
			customer, code, o.Amount, o.LimitPrice)
		return err
	})
}
