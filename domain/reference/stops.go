package reference

import "slices"

// reach marks the legs of waiting stops that a trade or mark price reached. They fire later, in their order.
func (a *Auditor) reach(i *instrument, kind string, price int64) {
	for _, o := range i.stops {
		if (o.Type == "take_profit_stop_loss") != (kind == "mark_price") {
			continue
		}
		for n := range o.legs {
			if l := &o.legs[n]; l.at(price) {
				l.reached = true
			}
		}
	}
}

func (l *leg) at(price int64) bool {
	return l.price != 0 && (l.below && price <= l.price || !l.below && price >= l.price)
}

// wait stores an order among the waiting stops, after those that arrived earlier. An order that only becomes smaller
// keeps its place.
func (a *Auditor) wait(before, o *order, v *orderView, fresh bool) {
	i := o.instrument
	must(o.filled == 0, "the order %s has filled and waits for its price", v.Code)
	prices := [2]dec{v.StopLossPrice, v.TakeProfitPrice}
	switch v.Type {
	case "stop_loss", "stop_loss_limit":
		prices[0] = v.TriggerPrice
	case "take_profit", "take_profit_limit":
		prices[1] = v.TriggerPrice
	}
	moves := fresh || o.price != before.price || o.amount > before.amount
	for n := range o.legs {
		price := i.ticks(prices[n])
		if price != o.legs[n].price {
			moves = true
		}
		o.legs[n].price = price
	}
	if !moves {
		return
	}
	a.remove(o)
	market := i.last
	if v.Type == "take_profit_stop_loss" {
		market = i.mark
	}
	for n := range o.legs {
		o.legs[n].reached = false
		must(market == 0 || !o.legs[n].at(market), "the order %s waits for a price that is there", v.Code)
	}
	a.arrivals++
	o.priority, o.waiting = a.arrivals, true
	i.stops = append(i.stops, o)
}

// nextStop returns the stop to fire next on an instrument, and its leg. Legs that fire at or below their price come
// first, the highest price before lower ones. Then come legs that fire at or above their price, the lowest first. At the
// same price, the earlier order comes first. If both legs of an order were reached, the stop-loss leg fires.
func (i *instrument) nextStop() (next *order, by int) {
	for _, o := range i.stops {
		n := 0
		if !o.legs[0].reached {
			n = 1
		}
		l := o.legs[n]
		if !l.reached {
			continue
		}
		if next == nil || before(l, o.priority, next.legs[by], next.priority) {
			next, by = o, n
		}
	}
	return next, by
}

func before(l leg, priority int64, o leg, other int64) bool {
	switch {
	case l.below != o.below:
		return l.below
	case l.price != o.price:
		return (l.price > o.price) == l.below
	}
	return priority < other
}

// fired checks and applies the firing of a stop: it must be the next one, and a price must have reached it.
func (a *Auditor) fired(e *firedShape) {
	i := a.instrument(e.Symbol)
	o := a.orders[e.OrderCode]
	must(a.r.work == "trigger" && i.open(), "the stop %s fires in a step of %s, while %s is %s", e.OrderCode, a.r.work, i.Symbol, i.inForce())
	must(o != nil && o.waiting, "the stop %s fires, and does not wait", e.OrderCode)
	must(i == a.r.due.instrument, "a stop fires on %s, and %s is due first", i.Symbol, a.r.due.instrument.Symbol)
	next, by := i.nextStop()
	must(next == o, "the stop %s fires, and not %s", e.OrderCode, codeOf(next))
	leg := [2]string{"stop_loss", "take_profit"}[by]
	must(e.Leg == leg && i.ticks(e.TriggerPrice) == o.legs[by].price, "the stop %s fires by its leg %s at %s, not by %s", o.Code, e.Leg, text(e.TriggerPrice.v), leg)
	must(!o.past(a.now), "the stop %s fires after its time", o.Code)
	a.remove(o)
	o.fired, a.r.fires = a.now, o
	a.judge(o.account, "the stop "+o.Code)
	a.Seen.Fired++
}

func codeOf(o *order) string {
	if o == nil {
		return "none"
	}
	return o.Code
}

// schedule determines since when an open instrument has a stop to fire.
func (a *Auditor) schedule(i *instrument) {
	due := i.open() && slices.ContainsFunc(i.stops, func(o *order) bool { return o.legs[0].reached || o.legs[1].reached })
	switch {
	case due && !i.firing.there:
		i.firing = duePosition{a.now, a.sequence, true}
	case !due:
		i.firing = duePosition{}
	}
}
