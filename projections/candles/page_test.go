package candles_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/candles"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

const btc = "BTCUSDC_PERP"

// moved is a price as the log tells it.
type moved struct {
	at               scalar.Time
	price            fixed.Decimal
	amount, notional int64 // thousandths of a contract, units of 10⁻⁸
	trades           int64
}

// prices are what the log says of each kind of price, and the time of its last record.
type prices struct {
	of   map[candles.Price][]moved
	last scalar.Time
}

// told makes a log of trades and index prices with pauses between them, and says what is in it.
func told(v *projectiontest.Venue, random *rand.Rand, pauses []scalar.Time) ([]record.Entry, *prices) {
	entries, p := v.Entries(7), &prices{of: make(map[candles.Price][]moved)}
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	for n := range 200 {
		at := v.Pass(pauses[random.IntN(len(pauses))])
		if random.IntN(10) == 0 {
			at = v.Pass(scalar.Minute - at%scalar.Minute) // on the very minute
		}
		tenths := fixed.Decimal{Coef: 650_000 + random.Int64N(100), Scale: 1}
		finer := fixed.Decimal{Coef: tenths.Coef*10 + random.Int64N(10), Scale: 2}
		if random.IntN(3) == 0 {
			entries = append(entries, v.Entry("index.set", operator, decide.Accepted, &trading.IndexUpdated{Symbol: btc, IndexPrice: finer, MarkPrice: tenths}))
			p.of[candles.Index] = append(p.of[candles.Index], moved{at: at, price: finer})
			p.of[candles.Mark] = append(p.of[candles.Mark], moved{at: at, price: tenths})
			p.last = at
			continue
		}
		var events []decide.Event
		for i := range random.IntN(3) {
			kind, symbol, steps := trading.Trade, btc, 1+random.Int64N(3000)
			id := scalar.ID{byte(n), byte(i), 1}
			taken := id
			switch random.IntN(8) {
			case 0:
				kind = trading.AutoDeleveraging
			case 3: // by the insurance fund: it has no order
				kind, taken = trading.Liquidation, scalar.ID{}
			case 1:
				symbol = "ETHUSDC_PERP"
			case 2:
				kind = trading.Liquidation
			}
			notional := tenths.Coef * steps * 10_000
			events = append(events, &trading.TradeExecuted{Code: id, Symbol: symbol, Action: order.Sell, Price: tenths, Amount: fixed.Decimal{Coef: steps, Scale: 3},
				Notional: fixed.Money(notional), Type: kind, Taker: trading.TradeLeg{OrderCode: taken, CustomerCode: "C0", Broker: "alpha", ReferenceID: "r"},
				Maker: trading.TradeLeg{OrderCode: id, CustomerCode: "C1", Broker: "beta", ReferenceID: "r"}})
			if kind != trading.AutoDeleveraging && !taken.IsZero() && symbol == btc {
				p.of[candles.Trade] = append(p.of[candles.Trade], moved{at, tenths, steps, notional, 1})
			}
		}
		entries = append(entries, v.Entry("order.place", decide.Actor{Sub: "broker-a", Broker: "alpha"}, decide.Accepted, events...))
		p.last = at
	}
	return entries, p
}

// candles returns all candles of an interval up to the one that is open, made of the prices themselves.
func (p *prices) candles(price candles.Price, interval market.Interval, now scalar.Time) []candles.Candle {
	all := p.of[price]
	var out []candles.Candle
	if len(all) == 0 {
		return nil
	}
	for start := interval.Start(all[0].at); start <= now; start += interval.Span() {
		var in []moved
		for _, m := range all {
			if m.at >= start && m.at < start+interval.Span() {
				in = append(in, m)
			}
		}
		k := candles.Candle{Start: start, Closed: start+interval.Span() <= now}
		if price == candles.Trade {
			k.Volume, k.Turnover = "0", "0"
		}
		if len(in) == 0 {
			last := out[len(out)-1].Close
			k.Open, k.High, k.Low, k.Close = last, last, last, last
			out = append(out, k)
			continue
		}
		high, low, steps, notional := in[0].price, in[0].price, int64(0), int64(0)
		for _, m := range in {
			if m.price.Cmp(high) > 0 {
				high = m.price
			}
			if m.price.Cmp(low) < 0 {
				low = m.price
			}
			steps, notional, k.Trades = steps+m.amount, notional+m.notional, k.Trades+m.trades
		}
		k.Open, k.High, k.Low, k.Close = in[0].price.String(), high.String(), low.String(), in[len(in)-1].price.String()
		if price == candles.Trade {
			k.Volume, k.Turnover = fixed.Decimal{Coef: steps, Scale: 3}.String(), fixed.Money(notional).String()
		}
		out = append(out, k)
	}
	return out
}

// page is what a filter leaves of all candles.
func page(all []candles.Candle, f candles.Filter) []candles.Candle {
	all = slices.DeleteFunc(slices.Clone(all), func(k candles.Candle) bool {
		return k.Start < f.From || f.To != 0 && k.Start >= f.To
	})
	if len(all) > f.Limit && f.From == 0 {
		return all[len(all)-f.Limit:]
	}
	return all[:min(len(all), f.Limit)]
}

// read returns a page.
func read(t *testing.T, pool *pgxpool.Pool, f candles.Filter) (page []candles.Candle, asOf int64) {
	t.Helper()
	asOf, err := candles.Each(t.Context(), pool, f, func(k *candles.Candle) { page = append(page, *k) })
	if err != nil {
		t.Fatal(err)
	}
	return page, asOf
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

// Over a log of hours and of weeks, cut into batches anyhow, every page of every interval and price is what the prices
// themselves make: first, highest, lowest and last price, the close before where there was none, and only what can change
// no more is closed.
func TestPagesAreThoseOfTheLog(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for _, pauses := range [][]scalar.Time{
		{0, 1, scalar.Second, 20 * scalar.Second, scalar.Minute, 7 * scalar.Minute},
		{0, scalar.Minute, scalar.Hour, 9 * scalar.Hour, 2 * scalar.Day},
	} {
		v, pool := projectiontest.NewVenue(seed), projectiontest.Database(t)
		entries, prices := told(v, random, pauses)
		log := projectiontest.NewLog(entries...)
		log.Chunk = 1 + random.IntN(50)
		last := entries[len(entries)-1].Position.Sequence
		project(t, pool, log, last)
		for range 300 {
			interval := market.Intervals()[random.IntN(6)]
			if len(prices.of[candles.Trade]) > 0 && (prices.last-prices.of[candles.Trade][0].at)/interval.Span() > 5000 {
				interval = market.OneHour
			}
			f := candles.Filter{Symbol: btc, Price: []candles.Price{candles.Trade, candles.Mark, candles.Index}[random.IntN(3)], Interval: interval,
				Limit: 1 + random.IntN(40), Known: last + int64(random.IntN(2))}
			now := prices.last
			if random.IntN(2) == 0 { // the wall clock is ahead of the log, and counts if nothing else is known of
				f.Clock = prices.last + scalar.Time(random.Int64N(int64(3*interval.Span())))
				if f.Known <= last {
					now = f.Clock
				}
			}
			around := func() scalar.Time {
				at := entries[random.IntN(len(entries))].Record.Time + scalar.Time(random.IntN(3)-1)
				if random.IntN(2) == 0 {
					at = interval.Start(at)
				}
				return at
			}
			if random.IntN(2) == 0 {
				f.From = around()
			}
			if random.IntN(2) == 0 {
				f.To = around()
			}
			got, asOf := read(t, pool, f)
			if asOf != last {
				t.Fatalf("as of %d of %d", asOf, last)
			}
			want := page(prices.candles(f.Price, interval, now), f)
			if len(got) == 0 && len(want) == 0 {
				continue
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%+v, now %v: %d candles\n%+v\nwant %d\n%+v", f, now, len(got), got, len(want), want)
			}
		}
	}
}

// Of an instrument without prices, and of a database that holds nothing yet, there are no candles.
func TestNoPricesNoCandles(t *testing.T) {
	pool := projectiontest.Database(t)
	look := func(symbol string) {
		t.Helper()
		for _, from := range []scalar.Time{0, 1} {
			if got, _ := read(t, pool, candles.Filter{Symbol: symbol, Price: candles.Trade, Interval: market.OneMinute,
				Span: projections.Span{From: from}, Limit: 5}); len(got) != 0 {
				t.Errorf("%v", got)
			}
		}
	}
	look(btc)
	entries := projectiontest.NewVenue(1).Entries(7)
	project(t, pool, projectiontest.NewLog(entries...), 6)
	look(btc)
	look("NOTHING")
}
