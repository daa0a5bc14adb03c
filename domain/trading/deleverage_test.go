package trading

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestTheRiskStateAndTheAlarmTellOfDeleveraging: while the rest of a position waits for the next record, since this one was
// full, the account's risk state is auto_deleveraging; and each record that takes from the other side raises an alarm. (What
// the fund has to take whatever it has, and what it can afford: deleveraging_bounds.scenario, takeover.scenario.)
func TestTheRiskStateAndTheAlarmTellOfDeleveraging(t *testing.T) {
	d := newDesk(t)
	i := btc()
	i.MakerFee, i.TakerFee = fixed.Decimal{}, fixed.Decimal{}
	d.must(decide.Command{Payload: &ListInstrument{Instrument: i}})
	index := func(price string) {
		d.must(decide.Command{Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number(price)}})
	}
	index("50000")
	for code, deposit := range map[string]fixed.Money{"alice": 2000, "bob": 5000, "carol": 5000, "dave": 20} {
		d.must(decide.Command{Payload: &RegisterCustomer{CustomerCode: code, Broker: "alpha"}})
		d.must(decide.Command{Payload: &MakeDeposit{CustomerCode: code, Currency: currency, Amount: deposit * fixed.Unit}})
	}
	d.must(decide.Command{Payload: &SetMarginProfile{CustomerCode: "alice", InitialMargin: number("5"), MaintenanceMargin: number("2.5")}})
	for _, o := range []*PlaceOrder{limitOrder("bob", order.Sell, 500_000, 200), limitOrder("carol", order.Sell, 500_000, 198),
		limitOrder("dave", order.Sell, 500_000, 2), limitOrder("alice", order.Buy, 500_000, 400), limitOrder("bob", order.Buy, 400_000, 1)} {
		d.place("alpha", o)
	}
	risk := func() margin.RiskState {
		s, _ := d.state.Summary("alice")
		return s.RiskState
	}
	step := func(kind string, after margin.RiskState) {
		t.Helper()
		decision := d.step(false)
		if decision.Alarm.Kind != kind || (kind != "") != (decision.Alarm.Message != "") {
			t.Errorf("the alarm of %v is %+v, not %q", decision.Events, decision.Alarm, kind)
		}
		if risk() != after {
			t.Errorf("the risk state is %s, not %s", risk(), after)
		}
	}
	d.state.limit.fills = 1
	index("45000") // alice has 2,000 − 0.4 × 5,000 = 0, so that her price is the mark
	if risk() != margin.Liquidation {
		t.Errorf("the risk state is %s", risk())
	}
	step(AlarmDeleveraging, margin.AutoDeleveraging) // to one of them
	step(AlarmDeleveraging, margin.AutoDeleveraging) // to another
	step(AlarmDeleveraging, margin.Normal)           // and the last
	if d.state.Due(d.now) == decide.Blocking {
		t.Error("something is still due")
	}
}
