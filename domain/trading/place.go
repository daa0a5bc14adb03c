package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// placeOrder decides a new order.
func (r request) placeOrder(payload *PlaceOrder) (decide.Decision, error) {
	a, err := r.customerOf(payload.CustomerCode)
	if err != nil {
		return decide.Decision{}, err
	}
	if ref := a.references.find(payload.ReferenceID, r.core.Counted(r.at.Time)); ref != nil && payload.ReferenceID != "" {
		return repeat(ref.fingerprint, r.command.Metadata.Fingerprint, ref.sequence)
	}
	if r.ownsNames() && r.isCodeOf(a, payload.ReferenceID) {
		return decide.Decision{}, ReferenceReused()
	}
	if err := r.checkSession(); err != nil {
		return decide.Decision{}, err
	}
	i, err := r.listed(payload.Symbol)
	if err != nil {
		return decide.Decision{}, err
	}
	if err := refuseFirst(CheckOrder(i.contract, payload, r.at.Time)); err != nil {
		return decide.Decision{}, err
	}
	d := r.newRecordBuilder(r.at, i)
	t, err := d.newTaker(a, payload)
	if err != nil {
		return decide.Decision{}, err
	}
	t.leverage = payload.Leverage
	t.overleveraged = d.overrideLeverage(t.party, payload.Leverage) != ""
	// The code is derived from the index of the order's event, which leverage.set may have moved by one, so these lines
	// cannot come earlier. The handler that answers the command finds the order by deriving the code from the index
	// again.
	t.order.Code = r.at.Derive(len(d.events))
	slot := d.reserveSlot()
	// The first reason to reject the order applies. Margin, including that of the order's leverage, is the last.
	switch reason := d.admissible(t); {
	case reason != "":
		return d.reject(t, slot, reason), nil
	case t.stop == nil:
		return d.execute(t, slot, r.command.Recorded()), nil
	case t.overleveraged:
		return d.reject(t, slot, order.InsufficientMargin), nil
	}
	return d.stay(t, slot), nil
}

// newTaker returns the taker for a new order.
func (d *recordBuilder) newTaker(a *account, payload *PlaceOrder) (*taker, error) {
	c := d.instrument.contract
	p := d.viewOf(a)
	n := &struct {
		taker
		order resting
	}{}
	t, o := &n.taker, &n.order
	o.Side = sideOf(payload.Action)
	o.Value = live{instruction: payload.instruction(), position: p.position, created: d.at.Time, updated: d.at.Time}
	t.order, t.party, t.cashLeft = o, p, payload.CashAmount
	t.expires = payload.ExpireTime
	t.amount, _ = c.Steps(payload.Amount)
	if o.Value.cash != 0 {
		t.amount = c.MaxSteps
	}
	t.price, _ = c.Ticks(payload.LimitPrice)
	t.remaining, t.updated = t.amount, d.at.Time
	o.Price, o.Value.amount, o.Remaining = t.price, t.amount, t.amount
	o.Value.stop = newStop(o, legPrices(c, payload.TriggerPrice, payload.StopLossPrice, payload.TakeProfitPrice))
	t.stop = o.Value.stop
	if err := t.mayGrow(); err != nil {
		return nil, err
	}
	return t, d.fits(t)
}

// mayGrow refuses a new or larger order if the account's profit may soon be more than the ledger can count. It permits
// reduce-only orders, and is not called for an order that shrinks or a stop that fires: these may be how the account
// gets out of that situation.
func (t *taker) mayGrow() error {
	if t.party.account.equity().Abs().Cmp(maxNotional.Wide()) > 0 && !t.order.Value.reduceOnly {
		return decide.Refuse(decide.Conflict, "ACCOUNT_ABOVE_MAXIMUM", "the account's equity is beyond "+maxNotional.String()+" "+currency+
			": it takes only orders that reduce a position")
	}
	return nil
}

// fits refuses an order if its notional, including all open positions on the instrument, could not be counted.
func (d *recordBuilder) fits(t *taker) error {
	i, price := d.instrument, max(t.price, 1)
	if i.mark != 0 {
		price = max(price, i.contract.LimitBound(true, i.mark))
	}
	total, ok := fixed.AddInt64(i.openInterest, t.amount)
	if n, fits := i.contract.Notional(price, total); !ok || !fits || n > maxNotional {
		if t.isCash() {
			return nil // its amount is a bound, and its notional the cash amount
		}
		return &decide.Refusal{Kind: decide.Invalid, Code: "AMOUNT_ABOVE_MAXIMUM", Field: "amount", Message: "the order's notional, with the instrument's open interest, is too large"}
	}
	return nil
}

// reserveSlot reserves the index of the order's own event, which is complete only at the end. The order's code is
// derived from the index.
func (d *recordBuilder) reserveSlot() int {
	d.events = append(d.events, nil)
	d.size += orderBytes + 256
	return len(d.events) - 1
}

// admissible checks a taker against the state of the instrument and the account's position before it meets the book,
// and sets its bound. It returns the first applicable reason to reject the taker, or "".
func (d *recordBuilder) admissible(t *taker) order.Reason {
	if t.stop != nil {
		return d.waitable(t)
	}
	i, v := d.instrument, &t.order.Value
	limited := v.kind.Limited()
	if !limited && i.mark == 0 && i.contract.Status == market.Open && !d.state.forClients() {
		return order.NoLiquidity
	}
	t.bound, t.protected = t.price, false
	if !limited {
		t.bound, t.protected = i.contract.MarketBound(t.order.Side == book.Bid, i.mark), true
		d.explainBound(t, "market_bound", i.contract.PriceBand, t.bound)
	}
	crosses := func() bool { return d.opposite(t, false) != nil }
	switch status := i.status(); {
	case status == market.Open:
	case status == market.PostOnly && v.rests() && !crosses():
	default:
		return order.InstrumentHalted
	}
	if limited && i.mark != 0 {
		bound := i.contract.LimitBound(t.order.Side == book.Bid, i.mark)
		d.explainBound(t, "limit_bound", i.contract.LimitBand, bound)
		if t.order.Side.Better(t.price, bound) {
			return order.PriceOutOfBand
		}
	}
	if reason := d.reduces(t, v.postOnly); reason != "" {
		return reason
	}
	if v.postOnly && crosses() {
		return order.PostOnlyWouldCross
	}
	return d.liquidity(t)
}

// reduces limits a reduce-only order to the position. An order that certainly stays (stays is set) needs a free place
// among the account's reduce-only orders. For an order that may trade in full, this is checked at the end.
func (d *recordBuilder) reduces(t *taker, stays bool) order.Reason {
	if !t.order.Value.reduceOnly {
		return ""
	}
	allowed := reducible(t.party.size, action(t.order.Side))
	if allowed == 0 || stays && t.crowded() {
		return order.ReduceOnlyInvalid
	}
	t.capTo(allowed)
	return ""
}

// crowded reports whether a new reduce-only order would exceed the maximum number of such orders.
func (t *taker) crowded() bool {
	h := t.party.position
	return t.order.Value.reduceOnly && len(h.reduceOnly) >= MaxReduceOnly && !h.has(t.order)
}

// liquidity checks that a market or cash order has something to trade with.
func (d *recordBuilder) liquidity(t *taker) order.Reason {
	best := d.opposite(t, true)
	if best == nil {
		if !t.order.Value.kind.Limited() {
			return order.NoLiquidity
		}
		return ""
	}
	if t.isCash() {
		c := d.instrument.contract
		if int64(t.cashLeft)/int64(c.MustNotional(best.Price, 1)) < min(c.MinSteps, t.remaining) {
			return order.CashAmountTooSmall
		}
	}
	return ""
}

// opposite returns the first live order that the taker would meet within its bound. With others set it ignores the
// taker's own orders.
func (d *recordBuilder) opposite(t *taker, others bool) *resting {
	side := t.order.Side.Opposite()
	for l := d.instrument.book.Best(side); l != nil && (t.bound == 0 || !side.Better(t.bound, l.Price)); l = l.Worse() {
		for o := l.Front(); o != nil; o = o.Next() {
			if !isOverdue(o, d.now) && !(others && o.Value.position.account == t.party.account) {
				return o
			}
		}
	}
	return nil
}

// execute lets the taker trade, judges the outcome as a whole, and decides the record, or the first of several.
func (d *recordBuilder) execute(t *taker, slot int, c decide.Recorded) decide.Decision {
	before := d.standing(t.party)
	d.explainStanding(t.party, "before")
	d.releaseOld(t)
	why := d.walk(t, d.limit)
	// The record ends here, and first is the order at its end. The makers' events are written now, because the dry run
	// below continues to change the same orders, and those changes belong to later records.
	first := *t
	d.write()
	if why == stopFull {
		// The first record accepts or rejects the order as a whole. So the walk continues to its end as a dry run: if
		// the margin ran out three records later, the fills already in the log could not be reversed.
		d.dryRun = true
		why = d.walk(t, unbounded())
	}
	rests := t.fate(why)
	if t.order.Value.tif == order.FOK && t.status != order.Filled && !t.overleveraged { // it gets no fills, so there is nothing to judge
		return d.unfilled(t, slot)
	}
	if reason := d.judge(t, before, rests); reason != "" {
		return d.reject(t, slot, reason)
	}
	if !d.dryRun {
		d.finish(t, slot)
		return decide.Decision{Outcome: decide.Accepted, Events: d.check()}
	}
	// The order is accepted. The record has the first fills. Steps make the fills that the dry run found, before
	// anything else is decided.
	first.status = order.PartiallyFilled
	if first.done() == 0 {
		first.status = order.Open
	}
	d.finish(&first, slot)
	opened := &WorkStarted{Work: WorkSweep, CommandID: c.ID, CustomerCode: t.party.account.code,
		Symbol: d.instrument.contract.Symbol, OrderCode: t.order.Code, PriceProtection: t.protected}
	if t.bound != 0 {
		opened.Bound = d.instrument.contract.Price(t.bound)
	}
	d.events = append(d.events, opened)
	return decide.Decision{Outcome: decide.Accepted, Events: d.check(), Pending: true}
}

// judge applies the margin rule to everything that the taker would do.
func (d *recordBuilder) judge(t *taker, before margin.Standing, rests bool) order.Reason {
	switch {
	case rests && t.crowded():
		return order.ReduceOnlyInvalid
	case !t.order.Value.kind.Limited() && t.done() == 0:
		return order.NoLiquidity
	case t.overleveraged:
		return order.InsufficientMargin
	}
	if rests && !t.order.Value.reduceOnly {
		n, ok := d.instrument.contract.Notional(t.price, t.remaining)
		if !ok || !t.party.reserveFor(action(t.order.Side), n) {
			return order.InsufficientMargin
		}
	}
	after := d.standing(t.party)
	fits := acceptable(before, after)
	d.explainStanding(t.party, "after")
	if d.sheet.On() {
		margin.ExplainRule(d.sheet, t.party.account.code, before, after, fits)
	}
	if !fits {
		return order.InsufficientMargin
	}
	return ""
}

// finish puts the order's event into its slot.
func (d *recordBuilder) finish(t *taker, slot int) {
	e, out := blank(t.status, t.amends && t.done() == filled(t.order))
	show(out, t.order, t.price, t.terms)
	if t.stop != nil { // adds its new prices
		t.stop.show(out)
	}
	if e, ok := e.(*OrderRejected); ok {
		e.Leverage = t.leverage
	}
	d.events[slot] = e
}

// reject drops all events of the builder but those before the slot, and rejects the order.
func (d *recordBuilder) reject(t *taker, slot int, reason order.Reason) decide.Decision {
	t.terms = terms{amount: t.order.Value.amount, remaining: t.order.Value.amount, status: order.Rejected, reason: reason,
		expires: t.expires, triggered: t.triggered, updated: d.at.Time}
	d.events = d.events[:slot+1]
	d.finish(t, slot)
	return decide.Decision{Outcome: decide.Rejected, Events: d.events}
}

// unfilled drops the same events and cancels an order that had to fill immediately in full.
func (d *recordBuilder) unfilled(t *taker, slot int) decide.Decision {
	decision := d.reject(t, slot, "")
	t.status, t.reason = order.Canceled, order.FOKNotFillable
	d.finish(t, slot)
	decision.Outcome = decide.Accepted
	return decision
}

// check panics if the events' postings are not balanced, and returns the events.
func (d *recordBuilder) check() []decide.Event {
	balanced(d.events)
	return d.events
}
