package trading

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestOrdersOfOthers checks that an order's code is of no use together with another customer, be that of the same
// broker: neither while the order is live nor when it is final.
func TestOrdersOfOthers(t *testing.T) {
	d := newDesk(t)
	d.must(decide.Command{Type: CommandListInstrument, Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")}})
	d.customer("alice", "alpha")
	d.customer("bob", "alpha")
	placed := d.place("alpha", limitOrder("alice", order.Buy, 640_000, 1))
	code := placed.Events[0].(OrderEvent).After().Code
	amount := number("0.002")
	refused := func(want string, customer string, actor decide.Actor) {
		t.Helper()
		for _, payload := range []any{&CancelOrder{CustomerCode: customer, OrderCode: code}, &AmendOrder{CustomerCode: customer, OrderCode: code, Amount: &amount}} {
			_, err := d.do(decide.Command{Actor: actor, Payload: payload})
			if refusal := new(decide.Refusal); !errors.As(err, &refusal) || refusal.Code != want {
				t.Errorf("%T for %s: %v, want %s", payload, customer, err, want)
			}
		}
	}
	others := func() {
		t.Helper()
		refused("UNKNOWN_ORDER", "bob", trader("alpha"))
		refused("UNKNOWN_ORDER", "bob", decide.Actor{Sub: "bob", Broker: "alpha", Customer: "bob"})
		refused("UNKNOWN_CUSTOMER", "alice", decide.Actor{Sub: "bob", Broker: "alpha", Customer: "bob"})
		refused("UNKNOWN_CUSTOMER", "alice", trader("beta"))
		refused("UNKNOWN_CUSTOMER", "alice", decide.Actor{})
	}
	others()
	d.must(decide.Command{Actor: trader("alpha"), Payload: &CancelOrder{CustomerCode: "alice", OrderCode: code}})
	others()
	refused("ORDER_NOT_LIVE", "alice", trader("alpha"))
}

// TestTheSystemActsForAll checks that what the system asks for is about any broker's customer.
func TestTheSystemActsForAll(t *testing.T) {
	d := newDesk(t)
	d.must(decide.Command{Type: CommandListInstrument, Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")}})
	d.customer("alice", "alpha")
	placed := d.must(decide.Command{Actor: decide.Actor{System: "demo"}, Payload: limitOrder("alice", order.Buy, 640_000, 1)})
	if o := placed.Events[0].(OrderEvent).After(); o.Status != order.Open || o.Broker != "alpha" {
		t.Errorf("%+v", o)
	}
}
