package whatif_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// TestALiquidationBetweenRecords: funding that only the other world has puts Ann into liquidation. The engine of that world ends it
// before the next record.
func TestALiquidationBetweenRecords(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.do(operator, &trading.DepositInsurance{Amount: 10_000 * fixed.Unit, ReferenceID: "first"})
	v.trade("bea", "ann", "0.19", "50000")
	v.place("bea", order.Buy, "10", "47620")
	v.place("bea", order.Sell, "10", "47680")
	v.register("cal", 100_000)
	v.place("cal", order.Buy, "0.001", "47680") // sets the last price
	last := int64(0)
	for range 35 {
		v.wait(scalar.Minute)
		last = v.index("46720")
	}
	if v.state.InLiquidation("ann") {
		t.Fatal("Ann is in liquidation in the log")
	}
	r, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".funding_interval_seconds=1800")
	if err != nil {
		t.Fatal(err)
	}
	if s := sum(t, r, "ann", ledger.LiquidationFee); s.Recorded != 0 || s.WhatIf >= 0 {
		t.Errorf("%+v", s)
	}
	if a := account(r, "ann"); a.Added == nil || a.Added.Number != 1 || a.Added.First.Sequence >= last || a.Avoided != nil || r.Different[whatif.Liquidations] != 1 {
		t.Errorf("%v, %+v", r.Different, a)
	}
}

// TestALongerLiquidation: Ann is liquidated in both worlds, but the log needs one step and the other world more. That is neither an
// added nor an avoided liquidation.
func TestALongerLiquidation(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.do(operator, &trading.DepositInsurance{Amount: 10_000 * fixed.Unit, ReferenceID: "first"})
	v.trade("bea", "ann", "0.19", "50000")
	v.place("bea", order.Buy, "1", "47450")
	fall := v.index("47500")
	if v.state.InLiquidation("ann") || int64(len(v.values)) != fall+2 {
		t.Fatalf("the liquidation takes %d records", int64(len(v.values))-fall-1)
	}
	v.index("47500")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		r, err := v.run(cfg, symbol+".maint_margin_req=9")
		if err != nil {
			t.Fatal(err)
		}
		if a := account(r, "ann"); a.Added != nil || a.Avoided != nil || r.Different[whatif.Liquidations] != 0 || (r.Different[whatif.Steps] > 0) != cfg.Cumulative {
			t.Errorf("%v, %+v", r.Different, a)
		}
		// Ann is in liquidation before the first record under the override.
		cfg.From = fall + 1
		if r, err = v.run(cfg, symbol+".maint_margin_req=9"); err != nil || r.Different[whatif.Liquidations] != 0 {
			t.Errorf("%v: %v, %+v", err, r.Different, r.Differences)
		}
	})
}

// TestASecondLiquidation: Ann falls below the higher margin twice, and recovers in between. The log ends with the second fall.
func TestASecondLiquidation(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.trade("bea", "ann", "0.19", "50000")
	first := v.index("48500")
	v.index("50000")
	v.index("48500")
	r, err := v.run(whatif.Config{To: -1}, symbol+".maint_margin_req=8")
	if err != nil {
		t.Fatal(err)
	}
	if a := account(r, "ann"); a.Added == nil || a.Added.Number != 2 || a.Added.First.Sequence != first {
		t.Errorf("%v, %+v", r.Different, a)
	}
}

// TestALiquidationAtTheEnd: the last record puts Ann into liquidation in the other world only. The engine of that world acts at the
// time of that record.
func TestALiquidationAtTheEnd(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.trade("bea", "ann", "0.19", "50000")
	v.place("bea", order.Buy, "1", "48400")
	last := v.index("48500")
	r, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".maint_margin_req=8")
	if err != nil {
		t.Fatal(err)
	}
	if a := account(r, "ann"); a.Added == nil || a.Added.First.Sequence != last || r.Different[whatif.Steps] == 0 {
		t.Errorf("%v, %+v", r.Different, a)
	}
	if s := sum(t, r, "ann", ledger.LiquidationFee); s.WhatIf >= 0 {
		t.Errorf("%+v", s)
	}
}

// TestAnOverrideThatLiquidates: the margin of the override puts Ann into liquidation before its first record.
func TestAnOverrideThatLiquidates(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.trade("bea", "ann", "0.19", "50000")
	v.place("bea", order.Buy, "1", "48400")
	v.index("48500")
	from := v.index("48500")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		cfg.From = from
		r, err := v.run(cfg, symbol+".maint_margin_req=8")
		if err != nil {
			t.Fatal(err)
		}
		if a := account(r, "ann"); a.Added == nil || a.Added.Number != 1 || a.Added.First.Sequence != from || a.Avoided != nil {
			t.Errorf("%v, %+v", r.Different, a)
		}
	})
}
