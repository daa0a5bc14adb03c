package whatif_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// TestOlderRules: an amendment does not hold its input. On the recorded state it counts as recorded, and a world that differs can't
// pass it.
func TestOlderRules(t *testing.T) {
	v := open(t, 1)
	v.trade("bea", "ann", "0.001", "50000")
	v.place("bea", order.Sell, "0.002", "49500")
	v.place("ann", order.Buy, "0.01", "49000")
	price := number("49500")
	amended := v.do(broker, &trading.AmendOrder{CustomerCode: "ann", OrderCode: v.state.OpenOrders("ann")[0].Code, LimitPrice: &price})
	r, err := v.run(whatif.Config{To: -1}, symbol+".min_amount=0.1")
	if err != nil || r.NotRedecidable[trading.CommandAmendOrder] != 1 || r.Different[whatif.Acceptance] != 4 {
		t.Errorf("%v: %+v", err, r)
	}
	trade, all := v.fees("ann", 0)-v.fees("ann", amended), v.fees("ann", 0)
	if r, err = v.run(whatif.Config{To: -1}, symbol+".taker_fee=10"); err != nil {
		t.Fatal(err)
	}
	if s := sum(t, r, "ann", ledger.TradeFee); s.Recorded != -all || s.WhatIf != -all-trade {
		t.Errorf("%+v, and not %s and %s", s, -all, -all-trade)
	}
	if _, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".taker_fee=6"); err == nil || !strings.Contains(err.Error(), "order.amend does not hold its input") {
		t.Error(err)
	}
	if r, err := v.run(whatif.Config{To: -1, Cumulative: true}); err != nil || !r.Equal() {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestOlderVersions: a build wrote events in versions that this one reads and does not write. It sampled no premiums. Nothing differs
// without an override, and a world that differs can't pass such a record.
func TestOlderVersions(t *testing.T) {
	v := open(t, 1)
	v.place("bea", order.Buy, "10", "49900")
	v.place("bea", order.Sell, "10", "50300")
	v.wait(scalar.Minute)
	v.older = true
	v.index("50000")
	v.place("ann", order.Buy, "1", "49900") // rejected
	v.older = false
	v.place("ann", order.Buy, "0.01", "49800")
	price := number("50300")
	v.do(broker, &trading.AmendOrder{CustomerCode: "ann", OrderCode: v.state.OpenOrders("ann")[0].Code, LimitPrice: &price})
	v.wait(2 * scalar.Hour)
	after := v.place("ann", order.Buy, "0.01", "49800")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		r, err := v.run(cfg)
		if err != nil || !r.Equal() || len(r.Accounts) > 0 || r.NotRedecidable[trading.CommandSetIndexPrice] != 1 || r.NotRedecidable[trading.CommandPlaceOrder] != 1 {
			t.Errorf("%v: %v, %v, %+v", err, r.NotRedecidable, r.Different, r.Differences)
		}
	})
	_, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".max_amount=5")
	if err == nil || !strings.Contains(err.Error(), "has an event of a version that is no longer written") {
		t.Error(err)
	}
	r, err := v.run(whatif.Config{From: after, To: -1, Cumulative: true}, symbol+".min_amount=0.1")
	if err != nil || r.Different[whatif.Acceptance] != 1 {
		t.Errorf("%v: %+v", err, r.Differences)
	}
}

// TestSingleSteps: the venue did its due work in steps with one entry.
func TestSingleSteps(t *testing.T) {
	for _, rules := range []int{1, trading.Rules().Newest()} {
		v := open(t, rules)
		v.expiring("ann", 3)
		for v.state.Due(v.now) != decide.Nothing {
			v.append(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine}, v.state.Step(v.stamp(), true))
		}
		v.kinds(func(t *testing.T, cfg whatif.Config) {
			if r, err := v.run(cfg); err != nil || !r.Equal() {
				t.Errorf("rules %d: %v: %+v", rules, err, r.Differences)
			}
		})
	}
}

// expiring places orders of a customer, and lets them expire.
func (v *venue) expiring(customer string, n int) {
	v.t.Helper()
	at := v.now + scalar.Minute
	for range n {
		v.do(broker, &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: order.Buy, Type: order.Limit, Amount: number("0.001"), LimitPrice: number("49000"),
			TimeInForce: order.GTD, ExpireTime: at})
	}
	v.now = at
}
