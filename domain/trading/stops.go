package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// stop holds the additional data of an order that waits for a price.
type stop struct {
	order   *resting
	arrival int64          // number among the stops of its instrument; 0 if not part of the state
	fired   scalar.Time    // when it fired; zero while it waits
	held    order.Leg      // the leg that was to fire when the order was set aside; kept after it was put back, until it fires
	legs    [len(legs)]leg // in the order of the variable legs; zero where the type has no such leg
}

// leg is a price that a stop waits for, in the lists of the instrument. Bids fire at their price or below it, the
// highest first. Asks fire at their price or above it, the lowest first.
type leg = book.Order[*stop]

// legs are the kinds of legs. If both legs of a combo were reached, the first kind fires.
var legs = [...]order.Leg{order.StopLossLeg, order.TakeProfitLeg}

// newStop returns a stop with these leg prices, in ticks. It returns nil if the order is not conditional.
func newStop(o *resting, prices [len(legs)]int64) *stop {
	if !o.Value.kind.Conditional() {
		return nil
	}
	s := &stop{order: o}
	for n, of := range legs {
		s.legs[n].Value, s.legs[n].Side, s.legs[n].Remaining = s, book.Ask, 1
		if of.Below(action(o.Side)) {
			s.legs[n].Side = book.Bid
		}
		if of.Of(o.Value.kind) {
			s.legs[n].Price = prices[n]
		}
	}
	return s
}

// prices returns the prices of the legs in ticks, 0 for a leg that the stop does not have.
func (s *stop) prices() (out [len(legs)]int64) {
	for n := range s.legs {
		out[n] = s.legs[n].Price
	}
	return out
}

// waiting reports whether the stop is in the instrument's lists: it has neither fired nor been set aside.
func (s *stop) waiting() bool { return s != nil && (s.legs[0].Resting() || s.legs[1].Resting()) }

// untriggered reports whether the order is a stop that has not fired.
func (l *live) untriggered() bool { return l.stop != nil && l.stop.fired.IsZero() }

// rests reports whether the remainder of the order stays in the book if it cannot trade immediately. An order without a
// limit price never does, despite its time in force.
func (l *live) rests() bool { return l.tif.Rests() && l.kind.Limited() }

// show writes the stop's prices to a view of the order.
func (s *stop) show(out *order.Order) {
	v := &s.order.Value
	c := v.position.instrument.contract
	out.TriggerPriceType = v.kind.Trigger()
	for n, of := range legs {
		switch price := s.legs[n].Price; {
		case price == 0:
		case v.kind != order.TakeProfitStopLoss:
			out.TriggerPrice = c.Price(price)
		case of == order.StopLossLeg:
			out.StopLossPrice = c.Price(price)
		default:
			out.TakeProfitPrice = c.Price(price)
		}
	}
}

// legPrices returns the prices of a view or a request for the legs of the order type, in ticks.
func legPrices(c *market.Contract, trigger, stopLoss, takeProfit fixed.Decimal) (out [len(legs)]int64) {
	out[0], _ = c.Ticks(stopLoss)
	out[1], _ = c.Ticks(takeProfit)
	if !trigger.IsZero() {
		out[0], _ = c.Ticks(trigger)
		out[1] = out[0]
	}
	return out
}

// passed reports whether the stop would fire at the last price of the kind that it watches. Without a last price it
// would not.
func (s *stop) passed() bool {
	v := &s.order.Value
	i := v.position.instrument
	low, high := i.last, i.last
	if v.kind.Trigger() == order.MarkPrice {
		low, high = i.contract.MarkTicks(i.mark, fixed.Ceiling), i.contract.MarkTicks(i.mark, fixed.Floor)
	}
	for n := range s.legs {
		if l := &s.legs[n]; l.Price != 0 && low != 0 && reaches(l.Side, l.Price, low, high) {
			return true
		}
	}
	return false
}

// discharge removes a stop from all lists in which it waits, because it fired or its order is final.
func (f *fold) discharge(of *stop) {
	of.unlist()
	if of.held == "" {
		return
	}
	i := of.order.Value.position.instrument
	i.putBack = slices.DeleteFunc(i.putBack, func(o *stop) bool { return o == of })
	f.aside = slices.DeleteFunc(f.aside, func(e asideEntry) bool { return e.Kind == dueTrigger && e.order == of.order })
}

// waitFor makes an order wait that is untriggered after the record. It moves behind the stops that came before it if a
// price is new or the amount is larger, as in the book.
func (f *fold) waitFor(o *resting, after *order.Order, price, remaining int64) {
	v := &o.Value
	i := v.position.instrument
	prices := legPrices(i.contract, after.TriggerPrice, after.StopLossPrice, after.TakeProfitPrice)
	now := newStop(o, prices)
	moves := v.stop.arrival == 0 || price != o.Price || remaining > o.Remaining || now.prices() != v.stop.prices()
	o.Price, o.Remaining = price, remaining
	v.position.limitTo(o)
	if moves && v.stop.held == "" {
		v.stop.unlist()
		v.stop = now
		i.enqueue(now)
	}
}

// triggerFired applies that a stop fired. The order's own event, which follows, has the result.
func (f *fold) triggerFired(e *TriggerFired) {
	o := f.orders.Get(e.OrderCode)
	if o == nil || !o.Value.untriggered() {
		panic("trading: an event fires what does not wait: " + e.OrderCode.String())
	}
	f.discharge(o.Value.stop)
	o.Value.position.unlimit(o) // until it rests
	o.Value.stop.fired, o.Value.stop.held = f.at.Time, ""
}

// waitable checks a new stop, or a stop with new terms, against the state of the instrument and the account's position.
// The limit price, crossing and margin are checked when the stop fires.
func (d *recordBuilder) waitable(t *taker) order.Reason {
	if d.instrument.status() != market.Open {
		return order.InstrumentHalted
	}
	if reason := d.reduces(t, true); reason != "" {
		return reason
	}
	if t.stop.passed() {
		return order.TriggerWouldFireImmediately
	}
	return ""
}

// stay decides that a stop waits.
func (d *recordBuilder) stay(t *taker, slot int) decide.Decision {
	t.status = order.Open
	d.finish(t, slot)
	return decide.Decision{Outcome: decide.Accepted, Events: d.check()}
}
