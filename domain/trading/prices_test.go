package trading

import (
	"errors"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// TestARefusedPriceRaisesAnAlarm: where a price is refused for what is open at it, the mark stands still, and an operator has
// to know; a price that nobody could mean is the fault of who sent it alone.
func TestARefusedPriceRaisesAnAlarm(t *testing.T) {
	d := newDesk(t)
	i := btc()
	i.MaxAmount = number("1000000")
	d.must(decide.Command{Payload: &ListInstrument{Instrument: i}})
	d.must(decide.Command{Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number("10000")}})
	d.customer("alice", "alpha")
	d.customer("bob", "alpha")
	d.place("alpha", limitOrder("bob", order.Sell, 100_000, 1_000_000_000))
	d.place("alpha", limitOrder("alice", order.Buy, 100_000, 1_000_000_000))
	for _, tt := range []struct{ price, code, alarm string }{
		{"40000", "PRICE_ABOVE_MAXIMUM", AlarmPrice}, // 1,000,000 of them, and a fifth more
		{"-1", "INVALID_PRICE", ""}, {"30000", "", ""},
	} {
		_, err := d.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number(tt.price)}})
		refusal := new(decide.Refusal)
		if errors.As(err, &refusal); refusal.Code != tt.code || refusal.Alarm != tt.alarm {
			t.Errorf("%s: %s with the alarm %q", tt.price, refusal.Code, refusal.Alarm)
		}
	}
}
