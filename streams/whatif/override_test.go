package whatif_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

// TestAMarginCapsTheLeverage: from rules 6 on, a higher margin lowers max_leverage in the other world too, at the start and in later
// changes, and the end of the override restores it. Earlier rules leave max_leverage.
func TestAMarginCapsTheLeverage(t *testing.T) {
	for rules, refused := range map[int]int{5: 0, 6: 3} {
		v := open(t, rules)
		leverage := func(n int) int64 {
			return v.do(broker, &trading.SetLeverage{CustomerCode: "ann", Symbol: symbol, Leverage: n})
		}
		from := leverage(2)
		leverage(3)
		v.change("price_band", "6")
		leverage(4)
		v.change("init_margin_req", "20")
		leverage(5)
		to := leverage(1)
		leverage(5)
		v.change("max_leverage", "5")
		leverage(4)
		v.kinds(func(t *testing.T, cfg whatif.Config) {
			cfg.From, cfg.To = from, to
			r, err := v.run(cfg, symbol+".init_margin_req=50")
			if err != nil {
				t.Fatal(err)
			}
			a := account(r, "ann")
			if n := r.Different[whatif.Acceptance]; n != int64(refused) || refused == 0 && a.Refused != nil || refused > 0 && a.Refused.First.Sequence != from+1 {
				t.Errorf("rules %d: %d commands are refused: %+v, %+v", rules, n, a, r.Differences)
			}
		})
	}
}

// TestALeverageThatEarlierRulesLeft: rules 6 leave an instrument with more leverage than its margin permits until its margin changes. An
// override of something else changes nothing of it, and the end of an override restores it.
func TestALeverageThatEarlierRulesLeft(t *testing.T) {
	v := open(t, 5)
	v.change("init_margin_req", "50")
	v.do(operator, &decide.ActivateRules{Rules: 6})
	from := v.do(broker, &trading.SetLeverage{CustomerCode: "ann", Symbol: symbol, Leverage: 1})
	v.do(broker, &trading.SetLeverage{CustomerCode: "ann", Symbol: symbol, Leverage: 10})
	v.kinds(func(t *testing.T, cfg whatif.Config) {
		cfg.From, cfg.To = from, from
		for _, set := range []string{".init_margin_req=60", ".max_leverage=2", ".maker_fee=3", `.margin_tiers=[{"notional_from":"0","init_margin_req":"40","maint_margin_req":"20"}]`} {
			if r, err := v.run(cfg, symbol+set); err != nil || !r.Equal() {
				t.Errorf("%s: %v, %+v", set, err, r.Differences)
			}
		}
		if r, err := v.run(whatif.Config{From: from, To: -1, Cumulative: cfg.Cumulative}, symbol+".maker_fee=3"); err != nil || !r.Equal() {
			t.Errorf("%v, %+v", err, r.Differences)
		}
		// An override is like a change, which caps though it gives the margin that the instrument has.
		if r, err := v.run(whatif.Config{From: from, To: from + 1, Cumulative: cfg.Cumulative}, symbol+".init_margin_req=50"); err != nil || r.Different[whatif.Acceptance] != 1 {
			t.Errorf("the same margin: %v, %+v", err, r.Differences)
		}
		if _, err := v.run(cfg, symbol+".max_leverage=3"); err == nil || !strings.HasSuffix(err.Error(), ".max_leverage must be at most 2, which init_margin_req permits") {
			t.Errorf("%v", err)
		}
	})
}

// change sets one parameter.
func (v *venue) change(name, value string) {
	v.t.Helper()
	p := &trading.ChangeInstrument{Symbol: symbol}
	if err := p.SetMember(name, value); err != nil {
		v.t.Fatal(err)
	}
	v.do(operator, p)
}
