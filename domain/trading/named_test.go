package trading

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestANameLeadsToItsOrder: an order is found by the client's name for it however many others its customer has, without a
// walk through them. Here there is nothing to walk through: the lists of the customer's orders are gone.
func TestANameLeadsToItsOrder(t *testing.T) {
	d := newDesk(t)
	d.must(decide.Command{Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")}})
	d.customer("alice", "alpha")
	codes := make(map[string]scalar.ID)
	for n := range 3 {
		payload := limitOrder("alice", order.Buy, 640_000, 1)
		payload.ReferenceID = fmt.Sprint("name-", n)
		codes[payload.ReferenceID] = d.place("alpha", payload).Events[0].(OrderEvent).After().Code
	}
	for _, s := range []*State{reread(t, d.state), d.state} {
		for _, h := range s.accounts["alice"].positions {
			h.orders.first, h.orders.last = nil, nil
		}
		for name, code := range codes {
			if got, err := (request{s, d.stamp(), decide.Command{Actor: trader("alpha")}}).named("alice", name); err != nil || got != code {
				t.Errorf("%s is %s, not %s (%v)", name, got, code, err)
			}
		}
	}
}
