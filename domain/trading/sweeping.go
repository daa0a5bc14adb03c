package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Sweeping returns the order that continues to trade in a record after the one with these events, or zero if there
// is none. Until then the order is live, but not in the book.
func Sweeping(events []decide.Event) scalar.ID {
	var code scalar.ID
	for _, e := range events {
		switch e := e.(type) {
		case *Step:
			if e.Work == WorkSweep {
				code = takerOf(events)
			}
		case *WorkStarted:
			code = e.OrderCode
		case *WorkFinished:
			code = scalar.ID{}
		}
	}
	return code
}

// takerOf returns the taker of a step of a sweep, or zero if the sweep has ended. Without a trade, all other orders of the
// record have ended: they expired, or were canceled so that an account does not trade with itself.
func takerOf(events []decide.Event) scalar.ID {
	var live scalar.ID
	for _, e := range events {
		switch e := e.(type) {
		case *TradeExecuted:
			return e.Taker.OrderCode
		case OrderEvent:
			if o := e.After(); o.Status.Live() {
				live = o.Code
			}
		}
	}
	return live
}

// Sweeps reports whether an order is live and neither in the book nor waiting for a price: it continues to trade in another
// record.
func (s *State) Sweeps(code scalar.ID) bool {
	o := s.orders.Get(code)
	return o != nil && !o.Resting() && !o.Value.untriggered()
}
