package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
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

// stop is what an order that waits for a price has beside what every live order has.
type stop struct {
	order   *resting
	arrival int64          // among those of its instrument; 0 for one that is not part of the state
	fired   bool           // it is an order like others now
	held    order.Leg      // that was to fire when the order was set aside, or put back since
	legs    [len(legs)]leg // in the order of legs; those that it does not have are zero
}

// leg is a price that a stop waits for, and its place in the list. Bids fire at their price or below, the highest first;
// asks at their price or above, the lowest first.
type leg = book.Order[*stop]

// legs are what a stop may wait for. Of a combo whose both legs were reached the first one fires.
var legs = [...]order.Leg{order.StopLossLeg, order.TakeProfitLeg}

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
func (l *live) untriggered() bool { return l.stop != nil && !l.stop.fired }

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
	o.Value.stop.fired, o.Value.stop.held = true, ""
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
