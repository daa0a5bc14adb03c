package reference_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// values is a log in memory.
type values [][]byte

func (values) Base(context.Context) (*record.Base, error) { return nil, nil }

func (v values) Open(context.Context) (verify.Batches, error) { return &valueReader{v, 0}, nil }

type valueReader struct {
	all  [][]byte
	next int
}

func (r *valueReader) Next(context.Context) ([]verify.Message, error) {
	if r.next == len(r.all) {
		return nil, io.EOF
	}
	r.next++
	return []verify.Message{{Offset: int64(r.next - 1), Value: r.all[r.next-1]}}, nil
}

func (*valueReader) Close() {}

// keptMarket runs a market around a settlement by the newest rules, with a crash at its end, and returns its log.
func keptMarket(t *testing.T, span scalar.Time) values {
	t.Helper()
	morning := scalar.TimeOf(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	v := openVenue(t, 1, morning-span/2)
	v.keeps = true
	c := openCrowd(v, 1, 100, trading.Rules().Newest())
	for c.now < morning+span/2 {
		c.second()
		if !c.calm && c.chance(2) {
			c.away(scalar.Time(2+c.random.IntN(90)) * scalar.Second)
			c.rush()
		}
	}
	for _, away := range []float64{-0.1, -0.5, 0.5, 0} {
		for _, p := range c.products[:4] {
			c.give(operator, decide.Metadata{}, &trading.SetIndexPrice{Symbol: p.Symbol, Price: p.price(away)})
		}
		c.drain()
		c.second()
	}
	c.settle()
	c.rareCommands()
	t.Logf("%d records: %+v", len(v.tail), c.auditor.Seen)
	if s := c.auditor.Seen; s.Liquidations == 0 || s.Takeovers == 0 || s.Deleveraged == 0 {
		t.Error("the market is too tame")
	}
	return v.tail
}

// anotherWorld compares a log with another world.
func anotherWorld(t *testing.T, log values, cfg whatif.Config, set ...string) whatif.Report {
	t.Helper()
	cfg.Source, cfg.Overrides, cfg.To, cfg.Differences = log, whatif.Overrides{}, -1, 3
	for _, s := range set {
		if err := cfg.Overrides.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	r, err := whatif.Run(t.Context(), cfg)
	if err != nil {
		t.Fatalf("cumulative %t, %s from record %d: %v", cfg.Cumulative, set, cfg.From, err)
	}
	return r
}

// TestOtherWorldsOfAMarket decides a random market again. No decision differs if no parameter does: neither without an override, nor
// with one to the value that the parameter has, nor with one to a value that no order reaches. The venue divides steps at random, and
// changes owners. Under other parameters, the sums of the accounts differ by amounts that sum to zero.
func TestOtherWorldsOfAMarket(t *testing.T) {
	log := keptMarket(t, 90*scalar.Second)
	for _, cumulative := range []bool{false, true} {
		for _, set := range [][]string{nil, {"SOLUSDC_PERP.max_leverage=13", "BTCUSDC_PERP.limit_band=20"}, {"SOLUSDC_PERP.max_amount=99999"}} {
			for _, from := range []int64{0, int64(len(log)) / 2} {
				r := anotherWorld(t, log, whatif.Config{From: from, Cumulative: cumulative}, set...)
				if !r.Equal() || len(r.Accounts) > 0 || len(r.NotRedecidable) > 0 {
					t.Errorf("cumulative %t, %s from record %d: %v, %+v", cumulative, set, from, r.Different, r.Differences)
				}
				if n := r.Same + r.Undecided; n != int64(len(log))-from {
					t.Errorf("cumulative %t, %s from record %d: %d of %d records are the same", cumulative, set, from, n, int64(len(log))-from)
				}
			}
		}
		for _, set := range [][]string{{"BTCUSDC_PERP.taker_fee=9", "ETHUSDC_PERP.maker_fee=-1"}, {"BTCUSDC_PERP.init_margin_req=30", "SOLUSDC_PERP.init_margin_req=25"},
			{"BTCUSDC_PERP.init_margin_req=10", "BTCUSDC_PERP.maint_margin_req=9"}, {"ODDUSDC_PERP.maint_margin_req=1", "SOLUSDC_PERP.price_band=0.1"}} {
			r := anotherWorld(t, log, whatif.Config{Cumulative: cumulative}, set...)
			var off fixed.Money
			for _, a := range r.Accounts {
				for _, s := range a.Sums {
					off += s.WhatIf - s.Recorded
				}
			}
			if r.Equal() || off != 0 {
				t.Errorf("cumulative %t, %s: %v, and the sums are off by %s", cumulative, set, r.Different, off)
			}
			t.Logf("cumulative %t, %s: %d the same, %v", cumulative, set, r.Same, r.Different)
		}
	}
}
