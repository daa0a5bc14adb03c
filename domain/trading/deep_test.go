package trading

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestWhatIsRefusedTakesNoMemory gives orders that would take all of a deep book and come to nothing: for want of money,
// of depth, or of others to trade with. Anybody may send them, one after another, so what a walk through the book costs
// beyond the record that it fills must not grow with the book.
func TestWhatIsRefusedTakesNoMemory(t *testing.T) {
	payload := func(customer string, kind order.Type, tif order.TimeInForce) *PlaceOrder {
		o := &PlaceOrder{CustomerCode: customer, Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: kind, TimeInForce: tif,
			Amount: fixed.Decimal{Coef: 1000}}
		if kind == order.Limit {
			o.LimitPrice = fixed.Decimal{Coef: 66_000}
		}
		return o
	}
	for name, test := range map[string]struct {
		payload *PlaceOrder
		want    order.Reason
	}{
		"no money":         {payload("poor", order.Market, order.IOC), order.InsufficientMargin},
		"no money to rest": {payload("poor", order.Limit, order.GTC), order.InsufficientMargin},
		"no depth":         {payload("c0", order.Limit, order.FOK), order.FOKNotFillable},
		"one's own orders": {payload("owner", order.Limit, order.FOK), order.FOKNotFillable},
	} {
		t.Run(name, func(t *testing.T) {
			allocs := func(depth int) float64 {
				e := newEngine(t, 3)
				for _, code := range []string{"poor", "owner"} {
					e.do(decide.Command{Actor: operator, Payload: &RegisterCustomer{CustomerCode: code, Broker: "alpha"}})
				}
				e.do(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: "owner", Currency: currency, Amount: 10_000_000 * fixed.Unit}})
				for n := range depth {
					maker := fmt.Sprint("c", n%3)
					if name == "one's own orders" {
						maker = "owner"
					}
					e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder(maker, order.Sell, 650_000+int64(n%500), 1)})
				}
				at := e.at
				at.Sequence++
				at.Time++
				return testing.AllocsPerRun(1, func() {
					d, err := e.state.Decide(at, decide.Command{Type: test.payload.CommandType(), Actor: trader("alpha"), Payload: test.payload})
					if err != nil || len(d.Events) != 1 || d.Events[0].(OrderEvent).After().Reason != test.want {
						t.Fatalf("%v, %v", d, err)
					}
				})
			}
			if shallow, deep := allocs(500), allocs(5000); deep > shallow+5 {
				t.Errorf("%.0f allocations in a book of 500 orders, and %.0f in one of 5000", shallow, deep)
			}
		})
	}
}
