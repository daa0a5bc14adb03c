package trading

import (
	"slices"
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

// TestTheFundsPartOfADeleveragingNeedsRoom: what nobody can take goes to the insurance fund; where the record is full by then,
// the next one does that. (The figures: deleveraging_bounds.scenario.)
func TestTheFundsPartOfADeleveragingNeedsRoom(t *testing.T) {
	d := newDesk(t)
	const eth = "ETHUSDC_PERP"
	i := btc()
	i.MakerFee, i.TakerFee = fixed.Decimal{}, fixed.Decimal{}
	d.must(decide.Command{Payload: &ListInstrument{Instrument: i}})
	i.Symbol, i.Underlying = eth, "ETH"
	d.must(decide.Command{Payload: &ListInstrument{Instrument: i}})
	index := func(symbol, price string) {
		d.must(decide.Command{Payload: &SetIndexPrice{Symbol: symbol, Price: number(price)}})
	}
	index("BTCUSDC_PERP", "50000")
	index(eth, "2000")
	for code, deposit := range map[string]fixed.Money{"alice": 2000, "dave": 100_000, "erin": 13, "fay": 38} {
		d.must(decide.Command{Payload: &RegisterCustomer{CustomerCode: code, Broker: "alpha"}})
		d.must(decide.Command{Payload: &MakeDeposit{CustomerCode: code, Currency: currency, Amount: deposit * fixed.Unit}})
		d.must(decide.Command{Payload: &SetMarginProfile{CustomerCode: code, InitialMargin: number("5"), MaintenanceMargin: number("2.5")}})
	}
	for _, o := range []*PlaceOrder{limitOrder("erin", order.Sell, 500_000, 5), limitOrder("fay", order.Sell, 500_000, 15), limitOrder("alice", order.Buy, 500_000, 20),
		limitOrder("dave", order.Sell, 20_000, 10_000), limitOrder("alice", order.Buy, 20_000, 10_000)} {
		if o.LimitPrice.Cmp(number("2000")) == 0 {
			o.Symbol = eth
		}
		d.place("alpha", o)
	}
	index(eth, "1700")
	d.step(false) // all of it to dave
	d.state.limit.fills = 2
	for _, want := range []struct {
		alarm  string
		trades []string
		risk   margin.RiskState
	}{{AlarmDeleveraging, []string{"erin", "fay"}, margin.AutoDeleveraging}, {AlarmInsurance, []string{"insurance-fund"}, margin.Normal}} {
		decision := d.step(false)
		var makers []string
		for _, e := range decision.Events {
			if trade, ok := e.(*TradeExecuted); ok {
				makers = append(makers, trade.Maker.CustomerCode)
			}
		}
		if s, _ := d.state.Summary("alice"); decision.Alarm.Kind != want.alarm || !slices.Equal(makers, want.trades) || s.RiskState != want.risk {
			t.Errorf("%v take, the alarm is %q, the risk state %s; want %+v", makers, decision.Alarm.Kind, s.RiskState, want)
		}
	}
}
