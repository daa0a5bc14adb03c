package tickers_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/projections/tickers"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

func TestSince(t *testing.T) {
	v, pool := projectiontest.NewVenue(7), projectiontest.Database(t)
	entries := v.Entries(7) // genesis, a term, two instruments, three customers
	trade := func(symbol string, ticks, steps int64, kind trading.TradeKind) {
		price, amount := fixed.Decimal{Coef: ticks, Scale: 1}, fixed.Decimal{Coef: steps, Scale: 3}
		id := decide.ID{byte(len(entries)), 1}
		entries = append(entries, v.Entry("order.place", decide.Actor{Sub: "broker-a", Broker: "alpha"}, decide.Accepted,
			&trading.TradeExecuted{Code: id, Symbol: symbol, Price: price, Amount: amount, Notional: fixed.Money(ticks * steps * 10_000),
				Action: order.Buy, Kind: kind, Taker: trading.TradeLeg{OrderCode: id, CustomerCode: "C0", Broker: "alpha", ReferenceID: "r"},
				Maker: trading.TradeLeg{OrderCode: id, CustomerCode: "C1", Broker: "beta", ReferenceID: "r"}}))
	}
	const btc, eth = "BTCUSDC_PERP", "ETHUSDC_PERP"
	trade(btc, 100, 1, trading.Trade) // before the span, unless it begins at the same time
	for entries[len(entries)-1].Record.Time == entries[7].Record.Time {
		entries = append(entries, v.Entry("index.set", decide.Actor{}, decide.Accepted, &trading.IndexUpdated{Symbol: btc}))
	}
	from := entries[len(entries)-1].Record.Time
	trade(btc, 650000, 500, trading.Trade)
	trade(btc, 651000, 250, trading.Trade)
	trade(eth, 35000, 2000, trading.Trade)
	trade(btc, 990000, 1000, trading.AutoDeleveraging)
	trade(btc, 649000, 250, trading.Liquidation)
	trade(btc, 650500, 1000, trading.Trade)

	r := projections.Config{Pool: pool, Log: projectiontest.NewLog(entries...), Journal: "trading"}.Runner(readmodels.Trading()...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- r.Run(running) }()
	last := entries[len(entries)-1].Position.Sequence
	if err := r.Wait(ctx, last); err != nil {
		t.Fatal(err)
	}
	stop()
	<-done

	got, asOf, err := tickers.Since(ctx, pool, from)
	if err != nil {
		t.Fatal(err)
	}
	if asOf != last {
		t.Errorf("as of %d, want %d", asOf, last)
	}
	text := make(map[string]string)
	for _, f := range got {
		text[f.Symbol] = f.Open.String() + " " + f.High.String() + " " + f.Low.String() + " " + f.Close.String() + " " + f.Volume + " " + f.Turnover
	}
	want := map[string]string{
		btc: "65000.0 65100.0 64900.0 65050.0 2.000 130050",
		eth: "3500.0 3500.0 3500.0 3500.0 2.000 7000",
	}
	if len(text) != len(want) || text[btc] != want[btc] || text[eth] != want[eth] {
		t.Errorf("%v, want %v", text, want)
	}
	later, _, err := tickers.Since(ctx, pool, entries[len(entries)-1].Record.Time+decide.Day)
	if err != nil || len(later) != 0 {
		t.Errorf("after the last trade: %v, %v", later, err)
	}
}
