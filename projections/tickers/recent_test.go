package tickers_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
)

// Figures of rows that stand anywhere, brought to any later position of a fold, are those that rows give there.
func TestBroughtFiguresAreThoseOfTheRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	v, pool := projectiontest.NewVenue(seed), projectiontest.Database(t)
	entries := v.Entries(7)
	v.Pass(2*scalar.Minute - 20*scalar.Second)
	for range 60 {
		var events []decide.Event
		for i := range random.IntN(4) {
			ticks, steps := 640_000+random.Int64N(20_000), 1+random.Int64N(5000)
			id := scalar.ID{byte(len(entries)), byte(i), 1}
			kind := trading.Trade
			if random.IntN(5) == 0 {
				kind = trading.AutoDeleveraging
			}
			events = append(events, &trading.TradeExecuted{Code: id, Symbol: projectiontest.Symbols()[random.IntN(2)], Action: order.Sell,
				Price: fixed.Decimal{Coef: ticks, Scale: 1}, Amount: fixed.Decimal{Coef: steps, Scale: 3}, Notional: fixed.Money(ticks * steps * 10_000),
				Type: kind, Taker: trading.TradeLeg{OrderCode: id, CustomerCode: "C0", Broker: "alpha", ReferenceID: "r"},
				Maker: trading.TradeLeg{OrderCode: id, CustomerCode: "C1", Broker: "beta", ReferenceID: "r"}})
		}
		entries = append(entries, v.Entry("order.place", decide.Actor{Sub: "broker-a", Broker: "alpha"}, decide.Accepted, events...))
		v.Pass(scalar.Second * scalar.Time(random.IntN(3)))
	}
	since := market.OneMinute.Start(v.Pass(0)) // some trades are before it
	figures := make(map[int64][]tickers.Figures)
	for _, e := range entries { // the rows at each position
		at := e.Position.Sequence
		step := projectiontest.NewLog(entries[:at+1]...)
		project(t, pool, step, at)
		found, asOf, err := tickers.Since(t.Context(), pool, since)
		if err != nil || asOf != at {
			t.Fatalf("as of %d, %v", asOf, err)
		}
		figures[at] = found
	}
	begin := random.IntN(20)
	var recent tickers.Recent
	for to := begin; to < len(entries); to++ {
		recent.Observe(entries[to], nil)
		for from := range len(entries) {
			got, ok := recent.Bring(figures[int64(from)], since, int64(from), int64(to))
			if known := from >= begin-1 && from <= to || from == to; ok != known {
				t.Fatalf("from %d to %d, observed from %d on: %v", from, to, begin, ok)
			}
			if want := texts(figures[int64(to)]); ok && !maps.Equal(texts(got), want) {
				t.Fatalf("from %d to %d: %v, want %v", from, to, texts(got), want)
			}
		}
	}
}

// What a busy fold has overwritten is not taken for whole.
func TestOverwrittenTradesAreMissed(t *testing.T) {
	v := projectiontest.NewVenue(3)
	entries := v.Entries(7)
	var recent tickers.Recent
	const each = 100 // trades a record
	for range 700 {  // more than are kept
		events := make([]decide.Event, each)
		for i := range events {
			events[i] = &trading.TradeExecuted{Symbol: "BTCUSDC_PERP", Type: trading.Trade, Price: fixed.Decimal{Coef: 1}, Amount: fixed.Decimal{Coef: 1}, Notional: fixed.Unit}
		}
		entries = append(entries, v.Entry("order.place", decide.Engine, decide.Accepted, events...))
	}
	for _, e := range entries {
		recent.Observe(e, nil)
	}
	last := entries[len(entries)-1].Position.Sequence
	const step = 10 // Bring adds up thousands of trades for each position
	whole := 0
	for from := int64(0); from < last; from += step {
		got, ok := recent.Bring(nil, 0, from, last)
		if !ok {
			continue
		}
		whole += step
		if want := min(last-from, 700) * each; got[0].Volume.IntPart() != want {
			t.Fatalf("from %d: %v trades, want %d", from, got[0].Volume, want)
		}
	}
	if whole < 500 || whole >= 700 {
		t.Errorf("from %d of %d positions it knows all", whole, last)
	}
}
