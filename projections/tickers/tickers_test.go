package tickers_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

func TestSince(t *testing.T) {
	v, pool := projectiontest.NewVenue(7), projectiontest.Database(t)
	entries := v.Entries(7) // genesis, a term, two instruments, three customers
	trade := func(symbol string, ticks, steps int64, kind trading.TradeType) {
		price, amount := fixed.Decimal{Coef: ticks, Scale: 1}, fixed.Decimal{Coef: steps, Scale: 3}
		id := scalar.ID{byte(len(entries)), 1}
		entries = append(entries, v.Entry("order.place", decide.Actor{Sub: "broker-a", Broker: "alpha"}, decide.Accepted,
			&trading.TradeExecuted{Code: id, Symbol: symbol, Price: price, Amount: amount, Notional: fixed.Money(ticks * steps * 10_000),
				Action: order.Buy, Type: kind, Taker: trading.TradeLeg{OrderCode: id, CustomerCode: "C0", Broker: "alpha", ReferenceID: "r"},
				Maker: trading.TradeLeg{OrderCode: id, CustomerCode: "C1", Broker: "beta", ReferenceID: "r"}}))
	}
	const btc, eth = "BTCUSDC_PERP", "ETHUSDC_PERP"
	trade(btc, 100, 1, trading.Trade) // before the span
	from := market.OneMinute.Start(v.Pass(scalar.Minute))
	trade(btc, 650000, 500, trading.Trade)
	trade(btc, 651000, 250, trading.Trade)
	trade(eth, 35000, 2000, trading.Trade)
	trade(btc, 990000, 1000, trading.AutoDeleveraging)
	trade(btc, 649000, 250, trading.Liquidation)
	trade(btc, 650500, 1000, trading.Trade)

	ctx := t.Context()
	last := entries[len(entries)-1].Position.Sequence
	project(t, pool, projectiontest.NewLog(entries...), last)

	got, asOf, err := tickers.Since(ctx, pool, from)
	if err != nil {
		t.Fatal(err)
	}
	if asOf != last {
		t.Errorf("as of %d, want %d", asOf, last)
	}
	text := texts(got)
	want := map[string]string{
		btc: "65000.0 65100.0 64900.0 65050.0 2.000 130050",
		eth: "3500.0 3500.0 3500.0 3500.0 2.000 7000",
	}
	if len(text) != len(want) || text[btc] != want[btc] || text[eth] != want[eth] {
		t.Errorf("%v, want %v", text, want)
	}
	later, _, err := tickers.Since(ctx, pool, from+scalar.Day)
	if err != nil || len(later) != 0 {
		t.Errorf("after the last trade: %v, %v", later, err)
	}
}

// project brings the database to a sequence of the log.
func project(t *testing.T, pool *pgxpool.Pool, log *projectiontest.Log, last int64) {
	t.Helper()
	r := projections.Config{Pool: pool, Log: log, Journal: "trading"}.Runner(readmodels.Trading()...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(running) }()
	if err := r.Wait(ctx, last); err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
}

func texts(figures []tickers.Figures) map[string]string {
	text := make(map[string]string)
	for _, f := range figures {
		text[f.Symbol] = f.Open.String() + " " + f.High.String() + " " + f.Low.String() + " " + f.Close.String() + " " + f.VolumeText() + " " + f.Turnover.String()
	}
	return text
}

// naive adds the figures up from the trades themselves.
const naive = `SELECT symbol, (array_agg(price ORDER BY sequence, ordinal))[1]::text, max(price)::text, min(price)::text,
		(array_agg(price ORDER BY sequence DESC, ordinal DESC))[1]::text, sum(amount)::text, trim_scale(sum(price * amount))::text
	FROM trades WHERE role = 'taker' AND type <> 'auto_deleveraging' AND time >= $1 AND sequence <= $2 GROUP BY symbol`

// traded writes the rows of trades over days. It returns the records, and times at and around theirs.
func traded(t *testing.T) (pool *pgxpool.Pool, random *rand.Rand, entries []record.Entry, times []scalar.Time) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random = rand.New(rand.NewPCG(seed, 1))
	v := projectiontest.NewVenue(seed)
	pool, entries = projectiontest.Database(t), v.Entries(7)
	first := v.Pass(0)
	pauses := []scalar.Time{0, 0, 1, scalar.Millisecond, scalar.Second, 20 * scalar.Second, scalar.Minute, 7 * scalar.Minute, scalar.Hour}
	times = []scalar.Time{first, first - scalar.Day}
	for range 500 {
		at := v.Pass(pauses[random.IntN(len(pauses))] * scalar.Time(random.IntN(2)))
		if random.IntN(10) == 0 { // on the very minute
			at = v.Pass(scalar.Minute - at%scalar.Minute)
		}
		times = append(times, at, at+1, at-at%scalar.Minute, at-at%scalar.Hour)
		var events []decide.Event
		for i := range 1 + random.IntN(2) {
			ticks, steps := 640_000+random.Int64N(20_000), 1+random.Int64N(5000)
			id := scalar.ID{byte(len(entries) >> 8), byte(len(entries)), byte(i), 1}
			kind := trading.Trade
			if random.IntN(20) == 0 {
				kind = trading.AutoDeleveraging
			}
			events = append(events, &trading.TradeExecuted{Code: id, Symbol: projectiontest.Symbols()[random.IntN(2)], Action: order.Sell,
				Price: fixed.Decimal{Coef: ticks, Scale: 1}, Amount: fixed.Decimal{Coef: steps, Scale: 3}, Notional: fixed.Money(ticks * steps * 10_000),
				Type: kind, Taker: trading.TradeLeg{OrderCode: id, CustomerCode: "C0", Broker: "alpha", ReferenceID: "r"},
				Maker: trading.TradeLeg{OrderCode: id, CustomerCode: "C1", Broker: "beta", ReferenceID: "r"}})
		}
		entries = append(entries, v.Entry("order.place", decide.Actor{Sub: "broker-a", Broker: "alpha"}, decide.Accepted, events...))
	}
	log := projectiontest.NewLog(entries...)
	log.Chunk = 1 + random.IntN(50)
	project(t, pool, log, entries[len(entries)-1].Position.Sequence)
	return pool, random, entries, times
}

// addUp adds the figures up from the trades themselves, since a time and up to a record.
func addUp(t *testing.T, pool *pgxpool.Pool, from scalar.Time, last int64) map[string]string {
	t.Helper()
	rows, err := pool.Query(t.Context(), naive, from.Std(), last)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	var symbol, open, high, low, closing, volume, turnover string
	_, err = pgx.ForEachRow(rows, []any{&symbol, &open, &high, &low, &closing, &volume, &turnover}, func() error {
		found[symbol] = strings.Join([]string{open, high, low, closing, volume, turnover}, " ")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Over days of trades, from any minute on, the figures are those of the trades themselves.
func TestSinceAgreesWithTheTrades(t *testing.T) {
	pool, random, _, times := traded(t)
	for range 300 {
		from := market.OneMinute.Start(times[random.IntN(len(times))])
		want := addUp(t, pool, from, math.MaxInt64)
		got, _, err := tickers.Since(t.Context(), pool, from)
		if err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(texts(got), want) {
			t.Fatalf("since %v: %v, want %v", from, texts(got), want)
		}
	}
}

// TestAsOfAgreesWithTheTrades: the figures as of each record are those of the trades of the day before it, up to that record.
func TestAsOfAgreesWithTheTrades(t *testing.T) {
	pool, _, entries, _ := traded(t)
	for _, e := range entries {
		at := e.Position.Sequence
		for range 2 {
			got, err := tickers.AsOf(t.Context(), pool, at, e.Record.Time)
			if want := addUp(t, pool, tickers.DayBefore(e.Record.Time), at); err != nil || !maps.Equal(texts(got), want) {
				t.Fatalf("as of %d: %v, %v, want %v", at, texts(got), err, want)
			}
		}
	}
	tip := entries[len(entries)-1]
	if _, err := tickers.AsOf(t.Context(), pool, tip.Position.Sequence+1, tip.Record.Time); !errors.Is(err, projections.ErrAhead) {
		t.Errorf("after the last record: %v", err)
	}
}
