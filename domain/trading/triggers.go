package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// Stops are the orders that wait for a price: the stop, take-profit and combo types. Until one fires it stands in no
// book and reserves nothing; its legs, one or two, stand in lists of the instrument by the price that they wait for.
//
// What is due is a bound: the lowest and the highest price reached since there was nothing to fire. A stop waits only for
// prices that the market has not reached when it is entered, and while a stop is due no client's order comes in: so what
// lies inside the bound is what was reached, each leg while it stood there, whatever the price has done since.

// watch is what waits for one kind of price on an instrument.
type watch struct {
	legs book.Book[*stop]
	// The bound of the prices reached, in ticks: the lowest rounded up and the highest down, since a price between two
	// ticks reaches neither. low is 0 where no price reached a leg.
	low, high int64
}

// watched are the kinds of prices, in the order of an instrument's watches.
var watched = [...]order.TriggerPriceType{order.TradePrice, order.MarkPrice}

func (i *instrument) watch(by order.TriggerPriceType) *watch {
	return &i.watches[slices.Index(watched[:], by)]
}

// watch is where the stop's legs stand while it waits.
func (s *stop) watch() *watch {
	v := &s.order.Value
	return v.position.instrument.watch(v.kind.Trigger())
}

// inside reports whether a leg at a price was reached, by prices between low and high.
func inside(side book.Side, price, low, high int64) bool {
	if side == book.Bid {
		return price >= low
	}
	return price <= high
}

// reached reports whether the leg lies inside the bound.
func (w *watch) reached(l *leg) bool { return w.low != 0 && inside(l.Side, l.Price, w.low, w.high) }

// reaches reports whether prices between low and high reach a leg.
func (w *watch) reaches(low, high int64) bool {
	for _, side := range [2]book.Side{book.Bid, book.Ask} {
		if l := w.legs.Best(side); l != nil && inside(side, l.Price, low, high) {
			return true
		}
	}
	return false
}

// first returns the leg of a side that is due first, or nil.
func (w *watch) first(side book.Side) *leg {
	for l := w.legs.Best(side); l != nil && w.reached(l.Front()); l = l.Worse() {
		for o := l.Front(); o != nil; o = o.Next() {
			// Of a combo whose both legs were reached the stop-loss leg fires, in its own place: the other is passed over,
			// even where it stands before it.
			if s := o.Value; o != &s.legs[0] && s.legs[0].Resting() && w.reached(&s.legs[0]) {
				continue
			}
			return o
		}
	}
	return nil
}

// isDue reports whether a stop of the instrument is to fire as soon as the instrument is open.
func (i *instrument) isDue() bool {
	if len(i.putBack) > 0 {
		return true
	}
	for n := range i.watches {
		if w := &i.watches[n]; w.low != 0 && w.reaches(w.low, w.high) {
			return true
		}
	}
	return false
}

// nextStop returns the stop that fires next, and by which leg; nil if none is due. First what an operator put back; then
// what fires at its price or below, the highest price first; then what fires at its price or above, the lowest first; at
// one price in order of arrival, whatever kind of price it waits for.
func (i *instrument) nextStop() (*stop, order.Leg) {
	if len(i.putBack) > 0 {
		return i.putBack[0], i.putBack[0].held
	}
	for _, side := range [2]book.Side{book.Bid, book.Ask} {
		var first *leg
		for n := range i.watches {
			l := i.watches[n].first(side)
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

// setLast takes over the price of a trade.
func (s *State) setLast(i *instrument, ticks int64) {
	i.last = ticks
	s.reach(i, order.TradePrice, ticks, ticks)
}

// setMark takes over a mark price.
func (s *State) setMark(i *instrument, marks int64) {
	i.mark = marks
	s.reach(i, order.MarkPrice, i.contract.MarkTicks(marks, fixed.Ceiling), i.contract.MarkTicks(marks, fixed.Floor))
}

// reach notes that a price was reached: of a price between two ticks the higher one is low, and the lower one high.
// A price that reaches no leg is no part of the bound, or it would fire what comes in later.
func (s *State) reach(i *instrument, by order.TriggerPriceType, low, high int64) {
	w := i.watch(by)
	if !w.reaches(low, high) {
		return
	}
	if w.low == 0 {
		w.low, w.high = low, high
	}
	w.low, w.high = min(w.low, low), max(w.high, high)
	s.noteFiring(i)
}

// noteFiring remembers that an instrument has a stop to fire, for scheduleTriggers.
func (s *State) noteFiring(i *instrument) {
	at, known := slices.BinarySearchFunc(s.firing, i, func(a, b *instrument) int { return cmp.Compare(a.index, b.index) })
	if !known {
		s.firing = slices.Insert(s.firing, at, i)
	}
}

// scheduleTriggers puts the triggers of instruments on the due list, or takes them off it: of those with a stop to fire, while they
// are open. It is done after every record, since much may open or close an instrument.
func (s *State) scheduleTriggers() {
	if len(s.firing) == 0 {
		return
	}
	s.firing = slices.DeleteFunc(s.firing, func(i *instrument) bool {
		due := i.isDue()
		switch open := due && i.status() == market.Open; {
		case open && i.triggers == nil:
			i.triggers = &dueEntry{time: s.time, kind: dueTrigger, instrument: i}
			s.due.push(i.triggers)
		case !open && i.triggers != nil:
			s.due.remove(i.triggers)
			i.triggers = nil
		}
		if !due { // all that was reached has fired: the bound begins anew
			for n := range i.watches {
				i.watches[n].low, i.watches[n].high = 0, 0
			}
		}
		return !due
	})
}

// enqueue lets a stop wait, behind those that came before it.
func (i *instrument) enqueue(s *stop) {
	i.stops++
	s.arrival = i.stops
	s.list()
}

// list puts the legs into their lists.
func (s *stop) list() {
	for n := range s.legs {
		if s.legs[n].Price != 0 {
			s.watch().legs.Add(&s.legs[n])
		}
	}
}

// unlist takes a stop out of its instrument's lists.
func (s *stop) unlist() {
	for n := range s.legs {
		if s.legs[n].Resting() {
			s.watch().legs.Remove(&s.legs[n])
		}
	}
}

// takeStops appends untriggered orders of an instrument until there are n, wherever they wait.
func (s *State) takeStops(i *instrument, orders []*resting, n int) (taken []*resting, more bool) {
	take := func(o *stop) bool {
		if len(orders) == n {
			more = true
			return false
		}
		orders = append(orders, o.order)
		return true
	}
	for w := range i.watches {
		for l := range i.watches[w].each() {
			if s := l.Value; l == &s.legs[0] || !s.legs[0].Resting() { // a combo stands there twice
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
		if e.kind == dueTrigger && e.order.Value.position.instrument == i && !take(e.order.Value.stop) {
			return orders, more
		}
	}
	return orders, more
}

// each yields the legs that wait, first those that fire at their price or below.
func (w *watch) each() func(yield func(*leg) bool) {
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
