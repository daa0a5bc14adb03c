package reference

import (
	"cmp"
	"container/heap"
	"math/big"
	"slices"
)

// order is a live order.
type order struct {
	orderShape
	account    *account
	instrument *instrument
	buy        bool
	price      int64 // the limit price in ticks; 0 for none
	amount     int64 // in steps
	filled     int64
	remaining  int64
	quote      int64
	priority   int64 // orders with a lower number come first
	resting    bool
	waiting    bool   // for its trigger price
	fired      moment // 0 if it did not fire
	legs       [2]leg // stop-loss and take-profit
}

// leg is one trigger price of a stop.
type leg struct {
	price   int64 // in ticks; 0 for none
	below   bool  // fires at or below its price
	reached bool  // a price reached it since the stop was placed
}

// past reports whether the order has expired at the given time.
func (o *order) past(now moment) bool { return o.ExpireTime != 0 && o.ExpireTime <= now }

func (o *order) live() bool { return o.Status == "open" || o.Status == "partially_filled" }

func (o *order) side() int {
	if o.buy {
		return 0
	}
	return 1
}

func conditional(kind string) bool { return kind != "market" && kind != "limit" }

func limited(kind string) bool {
	return kind == "limit" || kind == "stop_loss_limit" || kind == "take_profit_limit"
}

// newOrder returns the order of a view, with nothing filled.
func (a *Auditor) newOrder(v *orderView) *order {
	o := &order{account: a.customer(v.CustomerCode), instrument: a.instrument(v.Symbol), buy: v.Action == "buy"}
	o.orderShape = v.orderShape
	if same := a.orders[v.ReferenceID]; a.rules >= 6 && same != nil && v.ReferenceID != v.Code {
		must(same.account != o.account || same.ReferenceID != same.Code, "the order %s is named like the live order %s", v.Code, same.Code)
	}
	return o
}

// orderEvent checks an order's event in its place among the other events. It records the margin state for orders that
// trade in later events. finishOrders compares the event with the trades when all trades are known.
func (a *Auditor) orderEvent(n int, event string) {
	for _, v := range a.r.views {
		if v.index != n {
			continue
		}
		must(v.event == event, "the event of %s", v.Code)
		o := a.orders[v.Code]
		switch {
		case o == nil && a.r.work == "":
			a.settled(a.customer(v.CustomerCode), a.instrument(v.Symbol))
			a.judge(a.customer(v.CustomerCode), "the order "+v.Code)
		case o != nil && a.r.work == "" && a.r.Command.Type == "order.amend":
			a.judge(o.account, "the amended order "+v.Code)
		case a.r.work == "liquidation":
			a.liquidates(v, o)
		case a.r.work == "trigger" && o != nil && o == a.r.fires:
			a.settled(o.account, o.instrument)
		case a.r.work == "trigger" && o != nil && o.waiting && v.Status == "expired":
			next, _ := a.r.due.instrument.nextStop()
			must(next == o || o.ReduceOnly, "the stop %s is past its time, and %s is due first", v.Code, codeOf(next))
		}
	}
}

// finishOrders checks and applies the states of the record's orders.
func (a *Auditor) finishOrders() {
	for code := range a.r.fills {
		must(a.r.views[code] != nil, "the order %s traded, and has no event", code)
	}
	views := make([]*orderView, 0, len(a.r.views))
	for _, v := range a.r.views {
		views = append(views, v)
	}
	slices.SortFunc(views, func(x, y *orderView) int { return cmp.Compare(x.index, y.index) })
	for _, v := range views {
		if a.r.fills[v.Code] == nil {
			a.r.others++
		}
		a.finishOrder(v)
	}
	must(a.r.others <= 64+41, "%d orders change without a trade", a.r.others)
}

func (a *Auditor) finishOrder(v *orderView) {
	o, f := a.orders[v.Code], a.r.fills[v.Code]
	must(!a.final[v.Code], "the order %s was final", v.Code)
	fresh := o == nil
	if fresh {
		o = a.newOrder(v)
		must(v.Created == a.now, "the order %s is new, and of %d", v.Code, v.Created)
		for n, kind := range [2]string{"stop_loss", "take_profit"} {
			o.legs[n].below = o.buy != (kind == "stop_loss")
		}
	}
	before := *o
	i := o.instrument
	must(v.CustomerCode == o.CustomerCode && v.Symbol == o.Symbol && v.Action == o.Action && v.Type == o.Type && v.TimeInForce == o.TimeInForce &&
		v.PostOnly == o.PostOnly && v.ReduceOnly == o.ReduceOnly && v.ReferenceID == o.ReferenceID && v.Created == o.Created && v.CashAmount == o.CashAmount,
		"the order %s is another now", v.Code)
	a.checkRules2(o, v)
	must(v.Updated == a.now, "the order %s was changed at %d", v.Code, v.Updated)
	if f != nil {
		o.filled += f.steps
		o.quote += f.quote
	}
	amount := i.steps(v.Amount)
	must(i.steps(v.FilledAmount) == o.filled && v.FilledQuote.v == o.quote, "%s of the order %s are filled for %s, not %d for %s", text(v.FilledAmount.v),
		v.Code, text(v.FilledQuote.v), o.filled, text(o.quote))
	must(v.TimeInForce != "FOK" || o.filled == 0 || o.filled == amount || a.r.resumed != nil || a.task != nil, "%d of %d of the order %s are filled, all or none were to be", o.filled, amount, v.Code)
	must(o.filled <= amount, "%d of %d of the order %s are filled", o.filled, amount, v.Code)
	must(v.CashAmount.v == 0 || o.quote <= v.CashAmount.v, "the order %s spends %s of %s", v.Code, text(o.quote), text(v.CashAmount.v))
	a.averaged(o, v)
	o.orderShape = v.orderShape
	o.amount, o.remaining = amount, amount-o.filled
	a.status(v, o, &before, fresh, f)
	a.shelve(&before, o, v, fresh)
}

// checkRules2 checks the members of an order's event that rules 2 changed: the time when it fired, and the reason of orders
// that the end of a session canceled.
func (a *Auditor) checkRules2(o *order, v *orderView) {
	fired, reason := o.fired, "disconnect"
	if a.rules < 2 {
		fired, reason = 0, "cancel_all_after"
	}
	must(v.Triggered == fired, "the order %s says that it fired at %d, it did at %d", v.Code, v.Triggered, fired)
	ended := a.r.session != nil
	must(!ended || v.Status == "expired" || v.Reason == reason, "the order %s is canceled with its session as %s", v.Code, v.Reason)
	must(ended || v.Reason != "disconnect", "the order %s is canceled as disconnect, and no session ended", v.Code)
}

// averaged checks the average fill price, rounded half to even at 8 decimals.
func (a *Auditor) averaged(o *order, v *orderView) {
	must(v.AverageFillPrice.set == (o.filled != 0), "the order %s has filled %d, and an average price: %t", v.Code, o.filled, v.AverageFillPrice.set)
	if o.filled == 0 {
		return
	}
	contracts := times(rat(o.filled*o.instrument.AmountStep.v, one), rat(o.instrument.ContractSize.v, one))
	want := even(new(big.Rat).Quo(rat(o.quote, 1), contracts))
	must(v.AverageFillPrice.v == want, "the order %s filled at %s, not %s", v.Code, text(want), text(v.AverageFillPrice.v))
}

// status checks an order's new status.
func (a *Auditor) status(v *orderView, o, before *order, fresh bool, f *fills) {
	traded := f != nil
	i := o.instrument
	must(v.event == v.Status || v.event == "opened" && v.Status == "open" || v.event == "amended" && o.live(), "the order %s is %s by order.%s", v.Code, v.Status, v.event)
	switch v.Status {
	case "open":
		must(o.filled == 0 && (o.remaining > 0 || v.CashAmount.set), "the order %s is open, with %d of %d filled", v.Code, o.filled, o.amount)
	case "partially_filled":
		must(o.filled > 0 && (o.remaining > 0 || v.CashAmount.set), "the order %s is partially filled, with %d of %d", v.Code, o.filled, o.amount)
	case "filled":
		must(o.filled > 0 && o.remaining == 0 && traded, "the order %s is filled, with %d of %d", v.Code, o.filled, o.amount)
	case "canceled":
		must(v.Reason != "", "the order %s is canceled without a reason", v.Code)
	case "expired":
		must(before.past(a.now) && !traded && !fresh, "the order %s of %d expires at %d", v.Code, before.ExpireTime, a.now)
		a.Seen.Expired++
	case "rejected":
		must(fresh && !traded && v.Reason != "" && a.r.Outcome == "rejected", "the order %s is rejected: %s", v.Code, v.Reason)
		a.Seen.Rejected++
		a.refused(o, v.Reason)
	default:
		must(false, "the order %s is %s", v.Code, v.Status)
	}
	if v.event == "amended" {
		a.Seen.Amended++
	}
	if v.Reason == "self_trade" {
		a.Seen.SelfTrades++
	}
	if v.Reason == "price_protection" {
		a.Seen.PriceProtected++
	}
	entered := fresh && v.Status != "rejected" && !o.account.isFund && a.r.work == ""
	if status := i.inForce(); entered && status != "open" {
		must(status == "post_only" && v.Type == "limit" && o.live() && !traded, "the order %s came in while %s is %s", v.Code, i.Symbol, status)
	}
	if o.live() && o.past(a.now) {
		must(a.task != nil || !fresh, "the order %s is live after its time", v.Code)
	}
}

// refused checks the rejection reasons that depend only on the market.
func (a *Auditor) refused(o *order, reason string) {
	i := o.instrument
	switch reason {
	case "instrument_halted":
		must(!i.open(), "the order %s is refused since %s is halted, and it is open", o.Code, i.Symbol)
	case "price_out_of_band":
		must(o.beyond(i.ticks(o.LimitPrice), i.LimitBand), "the order %s is refused for its price, which is within the band", o.Code)
	case "post_only_would_cross":
		best := a.best(i, 1-o.side())
		must(best != 0 && o.crosses(i.ticks(o.LimitPrice), best), "the order %s is refused since it would cross, and it would not", o.Code)
	case "insufficient_margin":
		if best := a.best(i, 1-o.side()); o.Type == "limit" && o.TimeInForce[0] == 'G' && (best == 0 || !o.crosses(i.ticks(o.LimitPrice), best)) {
			a.unaffordable(o)
		}
	}
}

// unaffordable checks that the account could not have reserved margin for an order that would have rested.
func (a *Auditor) unaffordable(o *order) {
	c := o.account
	c.on(o.instrument)
	before := a.standing(c, a.now)
	o.price, o.remaining, o.resting = o.instrument.ticks(o.LimitPrice), o.instrument.steps(o.Amount), true
	c.orders[o.Code] = o
	after := a.standing(c, a.now)
	delete(c.orders, o.Code)
	// An order may also be rejected because the margin does not allow the leverage that came with it. This is not
	// checked.
	lacks := before.equity() < before.maintenance || after.available()-c.pending < 0
	must(lacks && after.reserved() > before.reserved() || a.r.overleveraged(), "the order %s is refused, and %s would be left",
		o.Code, text(after.available()-c.pending))
}

// overleveraged reports whether the rejected order came with a leverage.
func (r *reading) overleveraged() bool {
	for _, e := range r.Events {
		if e.Type == "order.rejected" && parse[struct {
			Leverage int `json:"leverage"`
		}](e.Data).Leverage != 0 {
			return true
		}
	}
	return false
}

// crosses reports whether the order's limit in ticks reaches a price of the other side.
func (o *order) crosses(limit, price int64) bool {
	if o.buy {
		return limit >= price
	}
	return limit <= price
}

// beyond reports whether a price in ticks is worse for the taker than the mark price by more than a percentage.
func (o *order) beyond(price int64, percent dec) bool {
	bound := times(rat(o.instrument.mark, 1), rat(100*one+sign(o.buy)*percent.v, 100*one))
	if o.buy {
		return price > max(1, down(bound))
	}
	return price < max(1, up(bound))
}

// shelve stores an order after the record: in the book, among the waiting stops, or, if it is no longer live, nowhere.
func (a *Auditor) shelve(before, o *order, v *orderView, fresh bool) {
	i := o.instrument
	o.account.on(i)
	if !o.live() {
		a.final[v.Code] = true
		if !fresh {
			a.remove(o)
		}
		delete(a.orders, v.Code)
		delete(o.account.orders, v.Code)
		return
	}
	a.orders[v.Code], o.account.orders[v.Code] = o, o
	if v.ExpireTime != 0 && v.ExpireTime != before.ExpireTime || fresh && v.ExpireTime != 0 {
		heap.Push(&a.expiries, expiry{v.ExpireTime, v.Code})
	}
	if limited(v.Type) {
		o.price = i.ticks(v.LimitPrice)
	}
	if conditional(v.Type) && o.fired == 0 {
		a.wait(before, o, v, fresh)
		return
	}
	if a.task != nil && a.task.kind == "sweep" && a.task.order == v.Code {
		a.remove(o)
		return
	}
	must(limited(v.Type) && (v.TimeInForce == "GTC" || v.TimeInForce == "GTD"), "the order %s of type %s, %s stays", v.Code, v.Type, v.TimeInForce)
	if !before.resting || o.price != before.price || o.amount > before.amount {
		if a.r.work == "" || a.r.work == "trigger" {
			must(!o.beyond(o.price, i.LimitBand) || i.mark == 0, "the order %s rests at a price out of the band", v.Code)
		}
		a.remove(o)
		a.arrivals++
		o.priority, o.resting = a.arrivals, true
		at, _ := slices.BinarySearchFunc(i.book[o.side()], o, compare)
		i.book[o.side()] = slices.Insert(i.book[o.side()], at, o)
	}
}

// compare orders one side of a book: better prices first, then earlier orders.
func compare(x, y *order) int {
	if x.buy {
		return cmp.Or(cmp.Compare(y.price, x.price), cmp.Compare(x.priority, y.priority))
	}
	return cmp.Or(cmp.Compare(x.price, y.price), cmp.Compare(x.priority, y.priority))
}

// remove removes an order from the book and from the waiting stops.
func (a *Auditor) remove(o *order) {
	i := o.instrument
	if o.resting {
		at := slices.Index(i.book[o.side()], o)
		i.book[o.side()] = slices.Delete(i.book[o.side()], at, at+1)
		o.resting = false
	}
	if o.waiting {
		i.stops = slices.DeleteFunc(i.stops, func(s *order) bool { return s == o })
		o.waiting = false
	}
}

// expiry is an entry of the heap of expiry times.
type expiry struct {
	time moment
	code string
}

type expiries []expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].time < e[j].time }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiries) Push(x any)        { *e = append(*e, x.(expiry)) }
func (e *expiries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// nextExpiry returns the earliest expiry time of a live order, or 0.
func (a *Auditor) nextExpiry() moment {
	for len(a.expiries) > 0 {
		if o := a.orders[a.expiries[0].code]; o != nil && o.ExpireTime == a.expiries[0].time {
			return o.ExpireTime
		}
		heap.Pop(&a.expiries)
	}
	return 0
}

// Level is the total amount that rests at a price. Both are in 10⁻⁸.
type Level struct{ Price, Amount int64 }

// Book returns the levels of an instrument's book, computed from its orders, best first.
func (a *Auditor) Book(symbol string) (bids, asks []Level) {
	sides := [2][]Level{{}, {}}
	for side, orders := range a.instruments[symbol].book {
		for _, o := range orders {
			price, amount := o.price*o.instrument.PriceTick.v, o.remaining*o.instrument.AmountStep.v
			if n := len(sides[side]); n > 0 && sides[side][n-1].Price == price {
				sides[side][n-1].Amount += amount
			} else {
				sides[side] = append(sides[side], Level{price, amount})
			}
		}
	}
	return sides[0], sides[1]
}
