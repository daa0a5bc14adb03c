package reference_test

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// TestReduceOnlyOrdersFillOnlyTheirPosition: two reduce-only orders of one account rest, each as large as its position. Together
// they fill the position once, so a larger fill-or-kill order gets nothing, and the auditor agrees. The position trades in full.
func TestReduceOnlyOrdersFillOnlyTheirPosition(t *testing.T) {
	v := openVenue(t, 1, scalar.TimeOf(time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)))
	p := listed()[0]
	v.give(operator, decide.Metadata{}, &trading.ListInstrument{Instrument: p.Instrument})
	v.give(operator, decide.Metadata{}, &trading.SetIndexPrice{Symbol: p.Symbol, Price: p.price(0)})
	broker := decide.Actor{Sub: "b", Broker: "b"}
	for _, code := range []string{"holder", "other"} {
		v.give(broker, decide.Metadata{}, &trading.RegisterCustomer{CustomerCode: code})
		v.give(operator, decide.Metadata{Fingerprint: "d"}, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 10_000_000 * fixed.Unit, ReferenceID: "d"})
	}
	place := func(code string, side order.Action, amount string, of float64, more func(*trading.PlaceOrder)) {
		o := &trading.PlaceOrder{CustomerCode: code, Symbol: p.Symbol, Action: side, Type: order.Limit, Amount: decimal(amount), LimitPrice: p.price(of)}
		more(o)
		v.give(broker, decide.Metadata{}, o)
		v.drain()
	}
	plain := func(*trading.PlaceOrder) {}
	reduceOnly := func(o *trading.PlaceOrder) { o.ReduceOnly = true }
	kill := func(o *trading.PlaceOrder) { o.TimeInForce = order.FOK }
	holds := func(want string) {
		t.Helper()
		if position, _ := v.state.Position("holder", p.Symbol); position.Amount != decimal(want) {
			t.Fatalf("the holder has %s, not %s", position.Amount, want)
		}
	}
	place("other", order.Sell, "1", 0, plain)
	place("holder", order.Buy, "1", 0, plain)
	holds("1.000")
	place("holder", order.Sell, "1", 0.001, reduceOnly)
	place("holder", order.Sell, "1", 0.002, reduceOnly)
	place("other", order.Buy, "1.5", 0.01, kill)
	holds("1.000")
	place("other", order.Buy, "1", 0.01, kill)
	holds("0.000")
}
