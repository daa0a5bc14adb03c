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

// stop is what an order that waits for a price has beside what every live order has.
type stop struct {
	order   *resting
	arrival int64          // among those of its instrument; 0 for one that is not part of the state
	fired   scalar.Time    // when it became an order like any other; zero while it waits
	held    order.Leg      // that was to fire when the order was set aside, or put back since
	legs    [len(legs)]leg // in the order of legs; those that it does not have are zero
}

// leg is a price that a stop waits for, and its place in the list. Bids fire at their price or below, the highest first;
// asks at their price or above, the lowest first.
type leg = book.Order[*stop]

// legs are what a stop may wait for. Of a combo whose both legs were reached the first one fires.
var legs = [...]order.Leg{order.StopLossLeg, order.TakeProfitLeg}

// newStop returns what a conditional order waits for, at the prices of its legs in ticks, or nil for other orders.
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

// prices are those of the legs, in ticks; 0 for a leg that it does not have.
func (s *stop) prices() (out [len(legs)]int64) {
	for n := range s.legs {
		out[n] = s.legs[n].Price
	}
	return out
}

// waiting reports whether the stop stands in the lists of its instrument: it has not fired, and is not set aside.
func (s *stop) waiting() bool { return s != nil && (s.legs[0].Resting() || s.legs[1].Resting()) }

// untriggered reports whether the order has a price to wait for still.
func (l *live) untriggered() bool { return l.stop != nil && l.stop.fired.IsZero() }

// rests reports whether what the order can't trade at once stays in the book. What has no limit price can't, whatever its
// time in force.
func (l *live) rests() bool { return l.tif.Rests() && l.kind.Limited() }

// show puts the stop's prices into a view of its order.
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

// legPrices are the prices of a view, or a request, for the legs of its type.
func legPrices(c *market.Contract, trigger, stopLoss, takeProfit fixed.Decimal) (out [len(legs)]int64) {
	out[0], _ = c.Ticks(stopLoss)
	out[1], _ = c.Ticks(takeProfit)
	if !trigger.IsZero() {
		out[0], _ = c.Ticks(trigger)
		out[1] = out[0]
	}
	return out
}

// passed reports whether the market is where the stop would fire: of what it watches, the last price counts. Without one
// nothing is passed.
func (s *stop) passed() bool {
	v := &s.order.Value
	i := v.position.instrument
	low, high := i.last, i.last
	if v.kind.Trigger() == order.MarkPrice {
		low, high = i.contract.MarkTicks(i.mark, fixed.Ceiling), i.contract.MarkTicks(i.mark, fixed.Floor)
	}
	for n := range s.legs {
		if l := &s.legs[n]; l.Price != 0 && low != 0 && inside(l.Side, l.Price, low, high) {
			return true
		}
	}
	return false
}

// discharge takes a stop out of wherever it waits, since it fired or its order is final.
func (s *State) discharge(of *stop) {
	of.unlist()
	if of.held == "" {
		return
	}
	i := of.order.Value.position.instrument
	i.putBack = slices.DeleteFunc(i.putBack, func(o *stop) bool { return o == of })
	s.aside = slices.DeleteFunc(s.aside, func(e asideEntry) bool { return e.kind == dueTrigger && e.order == of.order })
}

// waitFor lets an order wait that is untriggered after the record. It loses its place to those that came before if a price
// or a larger size is new, as in the book.
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

// fire takes over that a stop fired. What became of its order is told by the order's own event, which follows.
func (f *fold) fire(e *TriggerFired) {
	o := f.orders.Get(e.OrderCode)
	if o == nil || !o.Value.untriggered() {
		panic("trading: an event fires what does not wait: " + e.OrderCode.String())
	}
	f.discharge(o.Value.stop)
	o.Value.position.unlimit(o) // until it rests
	o.Value.stop.fired, o.Value.stop.held = f.at.Time, ""
}

// waitable checks a new stop, or one with new terms, against the instrument's state and the account's position. What its
// limit price may be, whether it would cross and what margin it needs is looked at when it fires.
func (d *draft) waitable(t *taker) order.Reason {
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
func (d *draft) stay(t *taker, slot int) decide.Decision {
	t.status = order.Open
	d.finish(t, slot)
	return decide.Decision{Outcome: decide.Accepted, Events: d.check()}
}
