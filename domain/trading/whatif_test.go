package trading

import (
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestADeleveragingUnderOtherParameters applies the records of a deleveraging to a state in which the account is not in liquidation.
// There it leaves nothing to continue.
func TestADeleveragingUnderOtherParameters(t *testing.T) {
	d := newDesk(t)
	i := btc()
	i.MakerFee, i.TakerFee = fixed.Decimal{}, fixed.Decimal{}
	d.must(decide.Command{Payload: &ListInstrument{Instrument: i}})
	index := func(price string) {
		d.must(decide.Command{Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number(price)}})
	}
	index("50000")
	for _, c := range []struct {
		code    string
		deposit fixed.Money
	}{{"alice", 2010}, {"bob", 5000}, {"carol", 5000}} {
		d.must(decide.Command{Payload: &RegisterCustomer{CustomerCode: c.code, Broker: "alpha"}})
		d.must(decide.Command{Payload: &MakeDeposit{CustomerCode: c.code, Currency: currency, Amount: c.deposit * fixed.Unit}})
	}
	d.must(decide.Command{Payload: &SetMarginProfile{CustomerCode: "alice", InitialMargin: number("5"), MaintenanceMargin: number("0.01")}})
	for _, o := range []*PlaceOrder{limitOrder("bob", order.Sell, 500_000, 200), limitOrder("carol", order.Sell, 500_000, 200), limitOrder("alice", order.Buy, 500_000, 400)} {
		d.place("alpha", o)
	}
	d.state.limit.fills = 1
	other := reread(t, d.state)
	i.InitMarginReq, i.MaintMarginReq, i.Tiers = number("5"), number("0.01"), nil
	at := decide.Stamp{Time: d.now}
	other.Evolve(at, decide.Recorded{}, decide.Accepted, []decide.Event{&InstrumentChanged{i.Normal()}})
	apply := func(decision decide.Decision) {
		at.Time = d.now
		other.Evolve(at, decide.Recorded{}, decide.Accepted, decision.Events)
	}
	apply(d.must(decide.Command{Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number("45000")}})) // alice has 2,010 − 0.4 × 5,000 = 10
	if !d.state.InLiquidation("alice") || other.InLiquidation("alice") || d.state.InLiquidation("bob") || d.state.InLiquidation("nobody") {
		t.Fatal("others are in liquidation")
	}
	if got, none := d.state.InLiquidations(), other.InLiquidations(); !slices.Equal(got, []string{"alice"}) || len(none) > 0 {
		t.Errorf("%s and %s are in liquidation", got, none)
	}
	if got := d.state.LastAffected(); !slices.Contains(got, "alice") {
		t.Errorf("the index price affected %s", got)
	}
	if decision := other.StepOf(d.state, at, false); len(decision.Events) > 0 {
		t.Errorf("the other state does what is not due there: %v", decision.Events)
	}
	apply(d.step(false))
	if d.state.accounts["alice"].deleveraging == nil {
		t.Error("nothing is deleveraged")
	}
	if other.accounts["alice"].deleveraging != nil {
		t.Error("the other state continues a deleveraging that it did not begin")
	}
}

// TestStepOfAnInstantThatIsLater: funding that is due in one state is due later in the other, so a step of it decides nothing there.
func TestStepOfAnInstantThatIsLater(t *testing.T) {
	d := newDesk(t)
	d.must(decide.Command{Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Payload: &SetIndexPrice{Symbol: btc().Symbol, Price: number("50000")}})
	other := reread(t, d.state)
	i := btc()
	i.FundingIntervalSeconds *= 2
	at := decide.Stamp{Time: d.now}
	other.Evolve(at, decide.Recorded{}, decide.Accepted, []decide.Event{&InstrumentChanged{i.Normal()}})
	at.Time, _ = d.state.NextDue()
	if later, _ := other.NextDue(); later <= at.Time {
		t.Fatalf("funding is due at %s and %s", at.Time, later)
	}
	if decision := other.StepOf(d.state, at, false); len(decision.Events) > 0 {
		t.Errorf("the other state does what is not due there: %v", decision.Events)
	}
	if decision := d.state.StepOf(other, at, false); len(decision.Events) > 0 {
		t.Errorf("the state does what is not due in the other one: %v", decision.Events)
	}
}
