package whatif_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// account returns the differences of an account, or zero.
func account(r whatif.Report, name string) whatif.Account {
	n := slices.IndexFunc(r.Accounts, func(a whatif.Account) bool { return a.String() == name })
	if n < 0 {
		return whatif.Account{}
	}
	return r.Accounts[n]
}

func sum(t *testing.T, r whatif.Report, name string, kind ledger.Type) whatif.Sum {
	t.Helper()
	for _, s := range account(r, name).Sums {
		if s.Type == kind {
			return s
		}
	}
	t.Errorf("the %s of %s do not differ: %+v", kind, name, r.Accounts)
	return whatif.Sum{}
}

// fees returns what the recorded trades from a record on have cost a customer.
func (v *venue) fees(customer string, from int64) (paid fixed.Money) {
	for _, r := range v.records[from:] {
		for _, e := range r.Events {
			if trade, ok := e.(*trading.TradeExecuted); ok {
				for _, leg := range []trading.TradeLeg{trade.Taker, trade.Maker} {
					if leg.CustomerCode == customer {
						paid += leg.Fee
					}
				}
			}
		}
	}
	return paid
}

// TestDoubledFees doubles the fees from a record on. Cal has fees of its own, which stay.
func TestDoubledFees(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.register("cal", 1_000_000)
	v.do(operator, &trading.SetFeeProfile{CustomerCode: "cal", Symbol: symbol, MakerFee: number("1"), TakerFee: number("3"), Operator: true})
	v.trade("bea", "ann", "0.002", "50000")
	from := int64(len(v.values))
	v.trade("bea", "ann", "0.004", "50010.1")
	v.trade("cal", "ann", "0.003", "50020.3")
	v.trade("ann", "bea", "0.005", "49990.7")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		cfg.From = from
		r, err := v.run(cfg, symbol+".maker_fee=4", symbol+".taker_fee=10")
		if err != nil {
			t.Fatal(err)
		}
		total := fixed.Money(0)
		for _, customer := range []string{"ann", "bea"} {
			fees := v.fees(customer, from)
			if s := sum(t, r, customer, ledger.TradeFee); s.Recorded != -fees || s.WhatIf != -2*fees || s.First.Sequence != from+1 {
				t.Errorf("%s: %+v, and the trades cost %s", customer, s, fees)
			}
			total += fees
		}
		own := v.fees("cal", from)
		if s := sum(t, r, "fees", ledger.TradeFee); s.Recorded != total+own || s.WhatIf != 2*total+own {
			t.Errorf("fees: %+v, and the trades cost %s and %s", s, total, own)
		}
		if len(account(r, "cal").Sums) > 0 || r.Different[whatif.Money] != 3 || len(r.Different) != 1 {
			t.Errorf("%v, %+v", r.Different, r.Accounts)
		}
	})
}

// TestAnEndOfTheOverride checks that only the records from From to To are decided under it. The record after To is a trade.
func TestAnEndOfTheOverride(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	for range 3 {
		v.trade("bea", "ann", "0.001", "50000")
	}
	last := int64(len(v.values)) - 1
	fee := number("7")
	v.do(operator, &trading.ChangeInstrument{Symbol: symbol, TakerFee: &fee})
	v.trade("bea", "ann", "0.001", "50000")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		cfg.From, cfg.To = last-3, last-1 // the second of the trades, and the order that the third one takes
		r, err := v.run(cfg, symbol+".taker_fee=6")
		if err != nil {
			t.Fatal(err)
		}
		if s := sum(t, r, "ann", ledger.TradeFee); r.Different[whatif.Money] != 1 || len(r.Different) != 1 || s.First.Sequence != last-2 || s.WhatIf-s.Recorded != -fixed.Unit/200 {
			t.Errorf("%v, %+v", r.Different, s)
		}
	})
}

// TestAnEndOfAMargin: the override of a margin replaces the tiers, and its end restores them.
func TestAnEndOfAMargin(t *testing.T) {
	var change trading.ChangeInstrument
	if err := change.SetMember("margin_tiers", `[{"notional_from":"0","init_margin_req":"10","maint_margin_req":"6"},{"notional_from":"2000","init_margin_req":"40","maint_margin_req":"20"}]`); err != nil {
		t.Fatal(err)
	}
	v := openWith(t, trading.Rules().Newest(), change)
	from := v.place("bea", order.Buy, "0.001", "45000")
	to := v.place("ann", order.Buy, "0.2", "49000") // needs 40 % of 9800 USDC; Ann has 1000
	v.place("ann", order.Buy, "0.19", "49000")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		cfg.From, cfg.To = from, from
		r, err := v.run(cfg, symbol+".init_margin_req=10")
		if err != nil || !r.Equal() {
			t.Errorf("%v: %v, %+v", err, r.Different, r.Differences)
		}
		cfg.To = to
		r, err = v.run(cfg, symbol+".init_margin_req=10")
		if a := account(r, "ann"); err != nil || a.Accepted == nil || a.Accepted.Number != 1 || a.Accepted.First.Sequence != to {
			t.Errorf("%v: %v, %+v", err, r.Different, r.Differences)
		}
	})
}

// TestATornLog: a log with a changed record, or without one, is an error that names the record, and not a shorter log. The record of
// an owner that lost a race is none.
func TestATornLog(t *testing.T) {
	build := func() *venue {
		v := open(t, 5)
		v.trade("bea", "ann", "0.01", "50000")
		v.trade("bea", "ann", "0.02", "50000")
		return v
	}
	whole := build()
	n := len(whole.values)
	lost := bytes.Replace(whole.values[n-3], []byte(`"outcome":"accepted"`), []byte(`"outcome":"rejected"`), 1)
	for name, c := range map[string]struct {
		values [][]byte
		torn   bool
	}{
		"whole":       {whole.values, false},
		"a lost race": {append(slices.Clone(whole.values[:n-1]), lost, whole.values[n-1]), false},
		"changed":     {append(append(slices.Clone(whole.values[:n-3]), lost), whole.values[n-2:]...), true},
		"missing":     {append(slices.Clone(whole.values[:n-3]), whole.values[n-2:]...), true},
	} {
		v := build()
		v.values = c.values
		v.kinds(func(t *testing.T, cfg whatif.Config) {
			_, err := v.run(cfg, "BTCUSDC_PERP.taker_fee=10")
			var torn *record.DivergedError
			if errors.As(err, &torn) != c.torn || !c.torn && err != nil || c.torn && torn.Have.Sequence != int64(n-3) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// TestAContradiction: a recorded change gives the instrument a margin that the override does not permit. On the recorded state the run
// ends there. In a cumulative world the change is refused.
func TestAContradiction(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	maintenance := number("9")
	n := v.do(operator, &trading.ChangeInstrument{Symbol: symbol, MaintMarginReq: &maintenance})
	says := fmt.Sprintf("record %d: under the override of init_margin_req, %s.maint_margin_req must be", n, symbol)
	if _, err := v.run(whatif.Config{To: -1}, symbol+".init_margin_req=8"); !invalid(err, says) {
		t.Errorf("%v, and not %q", err, says)
	}
	r, err := v.run(whatif.Config{To: -1, Cumulative: true}, symbol+".init_margin_req=8")
	if err != nil || r.Different[whatif.Acceptance] != 1 || r.Differences[0].Position.Sequence != n {
		t.Errorf("%v: %+v", err, r.Differences)
	}
}

// TestARecordedChangeDoesNotUndoTheOverride: an operator changed the overridden parameter and another one.
func TestARecordedChangeDoesNotUndoTheOverride(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	fee, band := number("7"), number("30")
	changed := v.do(operator, &trading.ChangeInstrument{Symbol: symbol, TakerFee: &fee, LimitBand: &band})
	v.trade("bea", "ann", "0.001", "62500") // within the new band
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		r, err := v.run(cfg, symbol+".taker_fee=10")
		if err != nil {
			t.Fatal(err)
		}
		if s := sum(t, r, "ann", ledger.TradeFee); s.Recorded != -fixed.Unit*4375/100_000 || s.WhatIf != -fixed.Unit*625/10_000 || len(r.Different) != 1 || s.First.Sequence <= changed {
			t.Errorf("%v, %+v", r.Different, s)
		}
	})
}

// TestHigherInitialMargin turns acceptances into rejections, and the other way round.
func TestHigherInitialMargin(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.place("ann", order.Buy, "0.01", "49000")             // needs 49 USDC of 1000
	large := v.place("ann", order.Buy, "0.15", "49000")    // 735
	rejected := v.place("ann", order.Buy, "0.05", "49000") // 245 more
	v.do(broker, &trading.CancelOrder{CustomerCode: "ann", OrderCode: v.state.OpenOrders("ann")[1].Code})
	v.place("ann", order.Buy, "0.05", "49000")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		higher, err := v.run(cfg, symbol+".init_margin_req=15")
		if err != nil {
			t.Fatal(err)
		}
		a := account(higher, "ann")
		d := higher.Differences[0]
		if a.Refused == nil || a.Refused.First.Sequence != large || a.Accepted != nil && !cfg.Cumulative || d.Position.Sequence != large || d.WhatIf[0] != "rejected: insufficient_margin" {
			t.Errorf("%+v, %+v", a, higher.Differences)
		}
		// In a cumulative world, the large order does not exist: it reserves nothing and cannot be canceled.
		var seen []string
		for _, d := range higher.Differences {
			seen = append(seen, d.Recorded[0]+" → "+d.WhatIf[0])
		}
		want := []string{"accepted → rejected: insufficient_margin"}
		if cfg.Cumulative {
			want = append(want, "rejected: insufficient_margin → accepted", "accepted → refused: ORDER_NOT_LIVE")
		}
		if !slices.Equal(seen, want) {
			t.Errorf("%q, and not %q", seen, want)
		}
		lower, err := v.run(cfg, symbol+".init_margin_req=8", symbol+".maint_margin_req=5")
		if err != nil {
			t.Fatal(err)
		}
		if a := account(lower, "ann"); a.Accepted == nil || a.Accepted.Number != 1 || a.Accepted.First.Sequence != rejected || a.Refused != nil {
			t.Errorf("%+v", lower.Accounts)
		}
	})
}

// TestMaintenanceMargin: Ann buys with all her margin, and the price falls by 3 % and then by 5 %, at which she is liquidated.
func TestMaintenanceMargin(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.do(operator, &trading.DepositInsurance{Amount: 10_000 * fixed.Unit, ReferenceID: "first"})
	v.trade("bea", "ann", "0.19", "50000")
	three := v.index("48500")
	five := v.index("47500")
	if len(v.values) == int(five)+1 {
		t.Fatal("nothing was liquidated")
	}
	v.index("47400")
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		lower, err := v.run(cfg, symbol+".maint_margin_req=4.5")
		if err != nil {
			t.Fatal(err)
		}
		a := account(lower, "ann")
		if a.Avoided == nil || a.Avoided.Number != 1 || a.Avoided.First.Sequence != five || a.Added != nil {
			t.Errorf("%+v, %+v", lower.Differences, a)
		}
		if d := lower.Differences[1]; d.Position.Sequence != five+1 || d.Kind != whatif.Acceptance || d.WhatIf[0] != "not due" {
			t.Errorf("%+v", lower.Differences)
		}
		if s := sum(t, lower, "ann", ledger.Liquidation); s.Recorded == 0 || s.WhatIf != 0 {
			t.Errorf("%+v", s)
		}
		higher, err := v.run(cfg, symbol+".maint_margin_req=8")
		if err != nil {
			t.Fatal(err)
		}
		if a := account(higher, "ann"); a.Added == nil || a.Added.Number != 1 || a.Added.First.Sequence != three {
			t.Errorf("%+v, %+v", higher.Differences, a)
		}
		if steps := higher.Different[whatif.Steps]; (steps > 0) != cfg.Cumulative {
			t.Errorf("%d steps", steps)
		}
	})
}

// TestAnAddedLiquidationTakesNoStep: on the recorded state, a liquidation that is due only in the other world keeps the engine from
// no recorded step, and no client from a command.
func TestAnAddedLiquidationTakesNoStep(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.trade("bea", "ann", "0.19", "50000")
	three := v.index("48500")
	v.place("ann", order.Sell, "0.1", "52000")
	v.wait(90 * scalar.Minute) // with funding
	v.trade("bea", "ann", "0.001", "48500")
	r, err := v.run(whatif.Config{To: -1}, symbol+".maint_margin_req=8")
	if err != nil {
		t.Fatal(err)
	}
	if a := account(r, "ann"); len(r.Differences) != 1 || a.Added == nil || a.Added.First.Sequence != three {
		t.Errorf("%v, %+v", r.Different, r.Differences)
	}
}

// TestScheduling: on the recorded state, parameters that determine when the engine acts have no effect.
func TestScheduling(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	for _, set := range []string{"funding_interval_seconds=1800", "index_stale_seconds=60"} {
		if _, err := v.run(whatif.Config{To: -1}, symbol+"."+set); !invalid(err, "only a cumulative run") {
			t.Error(err)
		}
	}
}

func invalid(err error, says string) bool {
	var wrong *whatif.InvalidError
	return errors.As(err, &wrong) && strings.Contains(err.Error(), says)
}

// TestInvalidRuns checks that each error names what is wrong.
func TestInvalidRuns(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	for name, c := range map[string]struct {
		from, to int64
		set      []string
		says     string
	}{
		"no value":                  {0, -1, []string{symbol + ".taker_fee"}, "SYMBOL.parameter=value"},
		"no parameter":              {0, -1, []string{symbol + "=1"}, "SYMBOL.parameter=value"},
		"no symbol":                 {0, -1, []string{".taker_fee=1"}, "SYMBOL.parameter=value"},
		"an unknown parameter":      {0, -1, []string{symbol + ".tick=1"}, symbol + ".tick is not a parameter"},
		"the status":                {0, -1, []string{symbol + ".status=post_only"}, "status is not a parameter"},
		"an unknown symbol":         {0, -1, []string{"ETHUSDC_PERP.taker_fee=1"}, "ETHUSDC_PERP is not an instrument"},
		"words":                     {0, -1, []string{symbol + ".taker_fee=much"}, `taker_fee: "much" is not a value`},
		"a fraction of an integer":  {0, -1, []string{symbol + ".max_leverage=1.5"}, `max_leverage: "1.5" is not a value`},
		"tiers of another form":     {0, -1, []string{symbol + `.margin_tiers=[{"from":"0"}]`}, "margin_tiers: "},
		"a fee above the maximum":   {0, -1, []string{symbol + ".taker_fee=101"}, symbol + ".taker_fee must be from 0 to 100 basis points"},
		"a margin below another":    {0, -1, []string{symbol + ".init_margin_req=5"}, "maint_margin_req must be"},
		"the same at a later start": {9, -1, []string{symbol + ".init_margin_req=5"}, "maint_margin_req must be"},
		"a parameter twice":         {0, -1, []string{symbol + ".taker_fee=1", symbol + ".taker_fee=2"}, symbol + ".taker_fee is given twice"},
		"tiers and a margin":        {0, -1, []string{symbol + `.margin_tiers=[{"notional_from":"0","init_margin_req":"9","maint_margin_req":"5"}]`, symbol + ".init_margin_req=8"}, "contradict"},
		"an end before the start":   {5, 4, nil, "record 4 comes before record 5"},
		"a start after the end":     {1000, -1, nil, "record 1000 is after the last record"},
		"an end after the end":      {0, 1000, nil, "record 1000 is after the last record"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cumulative := range []bool{false, true} {
				if _, err := v.run(whatif.Config{From: c.from, To: c.to, Cumulative: cumulative}, c.set...); !invalid(err, c.says) {
					t.Errorf("%v, and not %q", err, c.says)
				}
			}
		})
	}
}

// TestAWithdrawnInstrument has no parameters to override.
func TestAWithdrawnInstrument(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.do(operator, &trading.DelistInstrument{Symbol: symbol})
	v.register("cal", 1)
	if _, err := v.run(whatif.Config{From: int64(len(v.values)) - 1, To: -1}, symbol+".taker_fee=1"); !invalid(err, symbol+" was withdrawn before") {
		t.Error(err)
	}
}

// TestARecordThatNoOwnerWrites: the log has a command before due work that blocks it. The difference says so.
func TestARecordThatNoOwnerWrites(t *testing.T) {
	v := open(t, trading.Rules().Newest())
	v.trade("bea", "ann", "0.19", "50000")
	give := func(actor decide.Actor, p decide.Payload) {
		c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: actor, Payload: p}
		d, err := v.state.Decide(v.stamp(), c)
		if err != nil {
			t.Fatal(err)
		}
		v.append(c.Recorded(), d)
	}
	give(operator, &trading.SetIndexPrice{Symbol: symbol, Price: number("47500")})
	give(broker, &trading.RegisterCustomer{CustomerCode: "cal"})
	r, err := v.run(whatif.Config{To: -1})
	if err != nil || len(r.Differences) != 1 || r.Differences[0].WhatIf[0] != "due work comes before the command" {
		t.Errorf("%v: %+v", err, r.Differences)
	}
}
