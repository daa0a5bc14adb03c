package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// Stops are the orders that wait for a price: the stop, take-profit and combo types. Until a stop fires it is not in
// the book and reserves nothing. Its one or two legs are in lists of the instrument, by the price that they wait for.
//
//
// The stops that are due are defined by a bound: the lowest and the highest price reached since no stop was due. A stop
// may only wait for a price that the market has not reached when the stop is placed, and no client order is accepted
// while a stop is due. So every leg inside the bound was reached while it waited, even if the price has moved back
// since.

// triggerIndex holds the legs on an instrument that wait for one kind of price.
type triggerIndex struct {
	legs book.Book[*stop]
	// low and high are the bound of the prices reached, in ticks. A price between two ticks reaches neither of them, so
	// the lowest price is rounded up and the highest down. low is 0 if no price has reached a leg.
	low, high int64
}

// watched lists the kinds of prices, in the order of an instrument's watches.
var watched = [...]order.TriggerPriceType{order.TradePrice, order.MarkPrice}

func (i *instrument) triggerIndex(by order.TriggerPriceType) *triggerIndex {
	return &i.triggerIndexes[slices.Index(watched[:], by)]
}

// triggerIndex returns the lists in which the stop's legs wait.
func (s *stop) triggerIndex() *triggerIndex {
	v := &s.order.Value
	return v.position.instrument.triggerIndex(v.kind.Trigger())
}

// reaches reports whether prices between low and high reach a leg at price.
func reaches(side book.Side, price, low, high int64) bool {
	if side == book.Bid {
		return price >= low
	}
	return price <= high
}

// reached reports whether the leg is inside the bound.
func (w *triggerIndex) reached(l *leg) bool {
	return w.low != 0 && reaches(l.Side, l.Price, w.low, w.high)
}

// reaches reports whether prices between low and high reach any leg.
func (w *triggerIndex) reaches(low, high int64) bool {
	for _, side := range [2]book.Side{book.Bid, book.Ask} {
		if l := w.legs.Best(side); l != nil && reaches(side, l.Price, low, high) {
			return true
		}
	}
	return false
}

// first returns the leg of a side that fires first, or nil.
func (w *triggerIndex) first(side book.Side) *leg {
	for l := w.legs.Best(side); l != nil && w.reached(l.Front()); l = l.Worse() {
		for o := l.Front(); o != nil; o = o.Next() {
			// If both legs of a combo were reached, the stop-loss leg fires, at its own place. The other leg is
			// skipped, even if it comes first.
			if s := o.Value; o != &s.legs[0] && s.legs[0].Resting() && w.reached(&s.legs[0]) {
				continue
			}
			return o
		}
	}
	return nil
}

// isDue reports whether a stop of the instrument must fire as soon as the instrument is open.
func (i *instrument) isDue() bool {
	if len(i.putBack) > 0 {
		return true
	}
	for n := range i.triggerIndexes {
		if w := &i.triggerIndexes[n]; w.low != 0 && w.reaches(w.low, w.high) {
			return true
		}
	}
	return false
}

// nextStop returns the stop that fires next and its leg, or nil if none is due. First are the stops that operators
// returned, then those that fire at their price or below it, highest price first, then those that fire at their price
// or above it, lowest price first. Stops at the same price fire in the order of arrival, for both kinds of prices
// together.
func (i *instrument) nextStop() (*stop, order.Leg) {
	if len(i.putBack) > 0 {
		return i.putBack[0], i.putBack[0].held
	}
	for _, side := range [2]book.Side{book.Bid, book.Ask} {
		var first *leg
		for n := range i.triggerIndexes {
			l := i.triggerIndexes[n].first(side)
			if l != nil && (first == nil || side.Better(l.Price, first.Price) || l.Price == first.Price && l.Value.arrival < first.Value.arrival) {
				first = l
			}
		}
		if first != nil {
			return first.Value, first.Value.legOf(first)
		}
	}
	return nil, ""
}

func (s *stop) legOf(l *leg) order.Leg {
	for n := range s.legs {
		if l == &s.legs[n] {
			return legs[n]
		}
	}
	panic("trading: a leg is none of its stop's")
}

// setLast sets the price of the last trade.
func (f *fold) setLast(i *instrument, ticks int64) {
	i.last = ticks
	f.reach(i, order.TradePrice, ticks, ticks)
}

// setMark sets the mark price.
func (f *fold) setMark(i *instrument, marks int64) {
	i.mark = marks
	f.reach(i, order.MarkPrice, i.contract.MarkTicks(marks, fixed.Ceiling), i.contract.MarkTicks(marks, fixed.Floor))
}

// reach extends the bound to a price. If the price is between two ticks, low is the higher tick and high the lower one.
// A price that reaches no leg does not extend the bound, since it would otherwise fire stops that are placed later.
func (f *fold) reach(i *instrument, by order.TriggerPriceType, low, high int64) {
	w := i.triggerIndex(by)
	if !w.reaches(low, high) {
		return
	}
	if w.low == 0 {
		w.low, w.high = low, high
	}
	w.low, w.high = min(w.low, low), max(w.high, high)
	f.noteFiring(i)
}

// noteFiring adds an instrument with a stop to fire to State.firing, for scheduleTriggers.
func (s *State) noteFiring(i *instrument) {
	at, known := slices.BinarySearchFunc(s.firing, i, func(a, b *instrument) int { return cmp.Compare(a.index, b.index) })
	if !known {
		s.firing = slices.Insert(s.firing, at, i)
	}
}

// scheduleTriggers updates the due list: it has an entry for every instrument that is open and has a stop to fire. It
// runs after every record, since many events may open or close an instrument.
func (f *fold) scheduleTriggers() {
	if len(f.firing) == 0 {
		return
	}
	f.firing = slices.DeleteFunc(f.firing, func(i *instrument) bool {
		due := i.isDue()
		switch open := due && i.status() == market.Open; {
		case open && i.triggers == nil:
			i.triggers = &dueEntry{Slot: schedule.At(f.time, dueTrigger), instrument: i}
			f.due.push(i.triggers)
		case !open && i.triggers != nil:
			f.due.remove(i.triggers)
			i.triggers = nil
		}
		if !due { // all stops inside the bound have fired, so the bound restarts
			for n := range i.triggerIndexes {
				i.triggerIndexes[n].low, i.triggerIndexes[n].high = 0, 0
			}
		}
		return !due
	})
}

// enqueue makes a stop wait, after those that came before it.
func (i *instrument) enqueue(s *stop) {
	i.stops++
	s.arrival = i.stops
	s.list()
}

// list adds the legs to their lists.
func (s *stop) list() {
	for n := range s.legs {
		if s.legs[n].Price != 0 {
			s.triggerIndex().legs.Add(&s.legs[n])
		}
	}
}

// unlist removes the legs from their lists.
func (s *stop) unlist() {
	for n := range s.legs {
		if s.legs[n].Resting() {
			s.triggerIndex().legs.Remove(&s.legs[n])
		}
	}
}

// takeStops appends untriggered orders of an instrument, from all lists in which they wait, until there are n. It
// reports whether there are more.
func (s *State) takeStops(i *instrument, orders []*resting, n int) (taken []*resting, more bool) {
	take := func(o *stop) bool {
		if len(orders) == n {
			more = true
			return false
		}
		orders = append(orders, o.order)
		return true
	}
	for w := range i.triggerIndexes {
		for l := range i.triggerIndexes[w].each() {
			if s := l.Value; l == &s.legs[0] || !s.legs[0].Resting() { // a combo is listed twice
				if !take(s) {
					return orders, more
				}
			}
		}
	}
	for _, o := range i.putBack {
		if !take(o) {
			return orders, more
		}
	}
	for _, e := range s.aside {
		if e.Kind == dueTrigger && e.order.Value.position.instrument == i && !take(e.order.Value.stop) {
			return orders, more
		}
	}
	return orders, more
}

// each yields the legs that wait, first those that fire at their price or below it.
func (w *triggerIndex) each() func(yield func(*leg) bool) {
	return func(yield func(*leg) bool) {
		for _, side := range [2]book.Side{book.Bid, book.Ask} {
			for l := w.legs.Best(side); l != nil; l = l.Worse() {
				for o := l.Front(); o != nil; o = o.Next() {
					if !yield(o) {
						return
					}
				}
			}
		}
	}
}
