package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/order"
)

// The sizes of the data that reads use.
const (
	yearOfMinutes = 365 * 24 * 60
	candlePage    = 5000
	openOrders    = 1000
)

// year inserts a year of one-minute candles of trades, marks and index prices, minute by minute.
const year = `INSERT INTO candles
SELECT $1, k.price, 60, date_bin('1 minute', now(), 'epoch') - n * interval '1 minute', 65000 + n % 1000 + 0.1, 65000 + n % 1000 + 7.3, 65000 + n % 1000 - 9.9,
	65000 + n % 1000 + 0.8, n % 7 + 0.125, (n % 7 + 0.125) * 65000.5, n % 7 + 1
FROM generate_series($2::integer, 1, -1) n, (VALUES ('trade'), ('mark'), ('index')) AS k (price)`

// scan reads the rows of a page by the same index, with every column as a value.
const scan = `SELECT start, open::text, high::text, low::text, close::text, volume::text, turnover::text, trades FROM candles
WHERE symbol = $1 AND price = 'trade' AND seconds = 60 AND start >= $2 AND start < $3 ORDER BY start`

// measureReads compares a page of candles over REST, anywhere in a year of minutes, with an index scan of as many rows.
// It also measures the state of an account with a thousand open orders.
func measureReads(ctx context.Context, b *bench) error {
	v, err := b.newVenue(ctx, "--sync=false")
	if err != nil {
		return err
	}
	defer v.discard()
	conn, err := pgx.Connect(ctx, v.Database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, year, symbol, yearOfMinutes); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "VACUUM ANALYZE candles"); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(7, 8))
	from := func() time.Time {
		return time.Now().UTC().Truncate(time.Minute).Add(-time.Duration(candlePage+random.IntN(yearOfMinutes-2*candlePage)) * time.Minute)
	}
	if err := b.pair(Row{Measure: fmt.Sprintf("a page of %d candles, a year of minutes behind it", candlePage), Unit: "ms",
		Against: "index scan of as many rows", Aim: atMost(1.5)},
		b.each(func() error { return v.page(ctx, from()) }),
		b.each(func() error { return scanned(ctx, conn, from()) })); err != nil {
		return err
	}
	return b.stateOf(ctx, v)
}

// each returns a function that measures the average duration of do over a round, in milliseconds.
func (b *bench) each(do func() error) func() (float64, error) {
	return func() (float64, error) {
		start, n := time.Now(), 0
		for ; n == 0 || time.Since(start) < b.round; n++ {
			if err := do(); err != nil {
				return 0, err
			}
		}
		return milliseconds(time.Since(start)) / float64(n), nil
	}
}

// page reads a page over REST.
func (v *venue) page(ctx context.Context, from time.Time) error {
	query := url.Values{"interval": {"1m"}, "page_size": {strconv.Itoa(candlePage)}, "from": {from.Format(time.RFC3339)}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.REST+"/v1/candles/"+symbol+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Accept-Encoding", "identity") // Postgres sends its rows uncompressed
	content, err := v.send(r)
	if err == nil && len(content) < candlePage*100 {
		err = fmt.Errorf("a page of %d bytes: %.200s", len(content), content)
	}
	return err
}

var errFewRows = errors.New("the scan found too few rows")

// scanned reads the rows of a page directly from Postgres.
func scanned(ctx context.Context, conn *pgx.Conn, from time.Time) error {
	rows, err := conn.Query(ctx, scan, symbol, from, from.Add(candlePage*time.Minute))
	if err != nil {
		return err
	}
	type candle struct {
		start                                    time.Time
		open, high, low, close, volume, turnover string
		trades                                   int64
	}
	all := make([]candle, 0, candlePage)
	var k candle
	_, err = pgx.ForEachRow(rows, []any{&k.start, &k.open, &k.high, &k.low, &k.close, &k.volume, &k.turnover, &k.trades}, func() error {
		all = append(all, k)
		return nil
	})
	if err == nil && len(all) != candlePage {
		err = errFewRows
	}
	return err
}

// stateOf measures the state of an account with many open orders.
func (b *bench) stateOf(ctx context.Context, v *venue) error {
	path := "/v1/customers/" + customerCode(0)
	random := rand.New(rand.NewPCG(9, 10))
	for range openOrders {
		o := restingOrder(random, 0)
		o.Action, o.LimitPrice.Coef = order.Buy, middle*10-1-random.Int64N(9_000)
		if _, err := v.do(ctx, "broker-a", http.MethodPost, path+"/orders", json.RawMessage(orderBody(o))); err != nil {
			return err
		}
	}
	var took Sample
	look := b.each(func() error {
		content, err := v.do(ctx, "broker-a", http.MethodGet, path+"/state", nil)
		if err == nil && len(content) < openOrders*500 {
			err = fmt.Errorf("a state of %d bytes", len(content))
		}
		return err
	})
	for range b.rounds {
		x, err := look()
		if err != nil {
			return err
		}
		took.Rounds = append(took.Rounds, x)
	}
	b.add(Row{Measure: fmt.Sprintf("state of an account with %d open orders", openOrders), Unit: "ms", Ours: took})
	return nil
}
