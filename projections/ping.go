package projections

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Ping returns an error if a pool, which is new, cannot open its first connection. The error is one line, with the address and
// without the password.
func Ping(ctx context.Context, pool *pgxpool.Pool) error {
	first, err := pool.Acquire(ctx)
	if err != nil {
		c := pool.Config().ConnConfig
		return &unreachableError{fmt.Sprintf("%s:%d", c.Host, c.Port), err}
	}
	first.Release()
	return nil
}

// Connect opens one connection to the database at url. It ignores the settings of a pool in the URL.
func Connect(ctx context.Context, url string) (*pgx.Conn, error) {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("projections: the database URL: %w", err)
	}
	return pgx.ConnectConfig(ctx, c.ConnConfig)
}

// PlainURL returns the URL of a database without the settings of a pool. psql and other programs refuse a URL with them.
func PlainURL(address string) string {
	before, parameters, _ := strings.Cut(address, "?")
	kept := slices.DeleteFunc(strings.Split(parameters, "&"), func(p string) bool { return p == "" || strings.HasPrefix(p, "pool_") })
	if len(kept) == 0 {
		return before
	}
	return before + "?" + strings.Join(kept, "&")
}

// PostgresTime returns the time of Postgres's clock.
func PostgresTime(ctx context.Context, db Querier) (t time.Time, err error) {
	if err = db.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&t); err != nil {
		return t, fmt.Errorf("asking Postgres for the time: %w", err)
	}
	return t, nil
}

// unreachableError means that the connection to Postgres failed.
type unreachableError struct {
	address string
	cause   error
}

// Error returns one line with the last cause. pgx writes a line for each attempt.
func (e *unreachableError) Error() string {
	lines := strings.Split(strings.TrimSpace(e.cause.Error()), "\n")
	return "Postgres at " + e.address + " cannot be used: " + strings.TrimSpace(lines[len(lines)-1])
}

func (e *unreachableError) Unwrap() error { return e.cause }
