package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// recordBuilder builds a record. It holds the events so far, and the accounts and the orders on one instrument as they
// will be after those events. It never changes the state.
type recordBuilder struct {
	state      *State
	at         decide.Stamp
	now        scalar.Time // the time that decides which orders have expired: the record's, or the start of the sweep
	instrument *instrument
	events     []decide.Event
	views      smallMap[*account, *accountView]
	changed    smallMap[*resting, *change]
	touched    []*change // in the order of their first change
	houseAccounts
	fills  int
	others int // changed orders that did not trade
	size   int // estimated size of the record in bytes
	// dryRun is set for a dry run: a walk then changes the views and orders of the builder but writes no events.
	dryRun bool
	limit  bounds // of the record
}

// Estimated sizes of the parts of a record, without their variable strings. They are upper estimates; a test compares
// them with the encoding.
const (
	headBytes    = 2500
	tradeBytes   = 330
	legBytes     = 150
	heldBytes    = 125
	postingBytes = 235
	orderBytes   = 680
	firedBytes   = 330
	nextBytes    = 8 << 10 // room for one more fill and the closing events
)

func (s *State) newRecordBuilder(at decide.Stamp, i *instrument) *recordBuilder {
	return &recordBuilder{state: s, at: at, now: at.Time, instrument: i, houseAccounts: s.newHouseAccounts(), size: headBytes, limit: s.limit}
}

// accountView is the state of an account and its position on the builder's instrument after the builder's events.
type accountView struct {
	account    *account
	position   *position
	balance    fixed.Money
	unposted   fixed.Wide // net credit of unposted charges on other instruments: see firstCharges
	size       int64
	cost       fixed.Money
	bids, asks fixed.Money // without the reserves of expired orders
	floor      fixed.Rate
}

// viewOf returns the account's view. When the builder touches an account for the first time, viewOf posts what the account
// owes of charges, before any event that the builder adds for it.
func (d *recordBuilder) viewOf(a *account) *accountView {
	if p := d.views.get(a); p != nil {
		return p
	}
	h := a.on(d.instrument)
	p := &accountView{account: a, position: h, balance: a.balance, size: h.size, cost: h.cost, bids: h.bids, asks: h.asks, floor: h.floor()}
	// An expired order reserves nothing, even while its expiry is still due: the available margin must not depend on
	// when the engine expires it.
	bids, asks := d.state.overdue(h, d.now)
	p.bids, p.asks = p.bids.Sub(bids), p.asks.Sub(asks)
	owed, rest := d.firstCharges(a)
	p.unposted = rest
	for _, debt := range owed {
		d.postCharge(p, debt)
	}
	d.views.put(a, p)
	return p
}

// postCharge posts one charge of an account. In a dry run it changes the view but adds no event.
func (d *recordBuilder) postCharge(p *accountView, debt unpaidCharge) {
	p.balance = p.balance.Add(debt.amount)
	if debt.position == p.position {
		p.cost = debt.cost
	}
	if !d.dryRun {
		d.events = append(d.events, d.houseAccounts.post(d.at, len(d.events), debt, p.balance))
		d.size += debt.size()
	}
}

// standing returns the account's margin after the builder's events.
func (d *recordBuilder) standing(p *accountView) margin.Standing {
	e := p.position.exposure()
	e.Size, e.Cost, e.Bids, e.Asks, e.Floor = p.size, p.cost, p.bids, p.asks, p.floor
	m := d.state.standing(p.account, d.now, &e)
	m.Balance = p.balance.Wide().Add(p.unposted)
	return m
}

// reserveFor adds the notional of a resting order to the account's reserves. It returns false if the sum is more than any
// margin could cover.
func (p *accountView) reserveFor(side order.Action, notional fixed.Money) bool {
	sum := &p.bids
	if side == order.Sell {
		sum = &p.asks
	}
	total, ok := sum.Plus(notional)
	if !ok || total > maxNotional {
		return false
	}
	*sum = total
	return true
}

// change is the state of a resting order after the builder's events.
type change struct {
	order *resting
	terms
	amended bool // reduced, and not traded since
	written bool
}

// look returns an order's figures after the builder's events.
func (d *recordBuilder) look(o *resting) terms {
	if c := d.changed.get(o); c != nil {
		return c.terms
	}
	return termsOf(o)
}

// touch returns the change of an order, for the caller to modify.
func (d *recordBuilder) touch(o *resting) *change {
	c := d.changed.get(o)
	if c == nil {
		c = &change{order: o, terms: termsOf(o)}
		d.changed.put(o, c)
		d.touched = append(d.touched, c)
		v := &o.Value
		a := v.position.account
		d.size += orderBytes + len(a.code) + len(a.broker) + len(v.reference) + len(v.position.instrument.contract.Symbol)
	}
	c.updated = d.at.Time
	return c
}

// end closes a resting order that did not trade in the builder. A dry run meets every order once, so it remembers only
// reduce-only orders, which cut may meet again.
func (d *recordBuilder) end(o *resting, status order.Status, reason order.Reason) {
	if d.dryRun && !o.Value.reduceOnly {
		return
	}
	if d.changed.get(o) == nil {
		d.others++
	}
	c := d.touch(o)
	c.status, c.reason = status, reason
}

// write appends the events of all changed orders that are not written yet.
func (d *recordBuilder) write() {
	for _, c := range d.touched {
		if !c.written {
			d.events = append(d.events, orderEvent(c.order, c.order.Price, c.terms, c.amended))
			c.written = true
		}
	}
}

// posting returns an account's side of a movement. The insurance fund's postings are those of a venue's account.
func (a *account) posting(code scalar.ID, kind ledger.Type, amount, balance fixed.Money, symbol string) ledger.Posting {
	p := ledger.Posting{Type: kind, Currency: currency, Amount: amount, Balance: balance, Symbol: symbol}
	if a.isFund() {
		p.Account = ledger.Insurance
	} else {
		p.Code, p.CustomerCode = code, a.code
	}
	return p
}

// addTrade adds a trade without its positions and postings to the record.
func (d *recordBuilder) addTrade(kind TradeType, price, steps int64, notional fixed.Money, by order.Action, taker, maker TradeLeg) *TradeExecuted {
	c := d.instrument.contract
	e := &TradeExecuted{Code: d.at.Derive(len(d.events)), Symbol: c.Symbol, Price: c.Price(price), Amount: c.Amount(steps),
		Notional: notional, Action: by, Type: kind, Taker: taker, Maker: maker,
		Positions: make([]PositionHeld, 0, 2), Entries: make([]ledger.Posting, 0, 4)} // never nil, as when read
	d.events = append(d.events, e)
	d.countTrade(e)
	return e
}

// post adds a movement between a customer and one of the venue's accounts to a trade: one posting on each side. It adds
// no posting for a zero amount.
func (d *recordBuilder) post(e *TradeExecuted, p *accountView, code scalar.ID, kind ledger.Type, amount fixed.Money, venue ledger.Account, balance *fixed.Money) {
	if amount == 0 {
		return
	}
	before := p.balance
	p.balance = p.balance.Add(amount)
	*balance = balance.Sub(amount)
	if d.dryRun {
		return
	}
	if d.sheet.On() {
		explainPosting(d.sheet, p.account.code, e.Code.String()+" "+string(kind), before, amount, p.balance)
	}
	mine := p.account.posting(e.Code, kind, amount, p.balance, e.Symbol)
	mine.OrderCode = code
	e.Entries = append(e.Entries, mine,
		ledger.Posting{Account: venue, Type: kind, Currency: currency, Amount: -amount, Balance: *balance, Symbol: e.Symbol})
	d.size += 2*(postingBytes+len(e.Symbol)) + len(p.account.code)
}

// trade books one side of a trade: the new position, and the realized profit of the closed part as a row of type
// closing.
func (d *recordBuilder) trade(e *TradeExecuted, p *accountView, code scalar.ID, price, steps int64, closing ledger.Type) {
	size, cost, realized := positionAfter(d.instrument, p.size, p.cost, price, steps)
	if d.sheet.On() && !d.dryRun {
		d.explainTrade(p, e.Code.String(), price, steps, p.size, p.cost, cost, realized)
	}
	p.size, p.cost = size, cost
	d.post(e, p, code, closing, realized, ledger.Clearing, &d.clearing)
	if !d.dryRun {
		e.Positions = append(e.Positions, held(p.account.code, d.instrument.contract, size, cost))
	}
}

// countTrade adds the size of a trade, without its postings, to the size of the record.
func (d *recordBuilder) countTrade(e *TradeExecuted) {
	for _, l := range [2]*TradeLeg{&e.Taker, &e.Maker} {
		d.size += legBytes + heldBytes + 2*len(l.CustomerCode) + len(l.Broker) + len(e.Symbol) + len(l.ReferenceID)
	}
	d.size += tradeBytes + len(e.Symbol)
}

// positionAfter returns a position after a trade of signed steps, and the profit realized by closing part of it.
// Closing q of Q steps removes cost × q ÷ Q, rounded half to even, from the cost; the profit is the proceeds less that
// amount. So the cost changes by the signed notional plus the profit, and the sum of all costs always equals the sum of
// all realized profits.
func positionAfter(i *instrument, size int64, cost fixed.Money, price, steps int64) (int64, fixed.Money, fixed.Money) {
	closing := int64(0)
	if (size > 0) != (steps > 0) {
		closing = min(fixed.Abs(size), fixed.Abs(steps))
	}
	signed := func(steps, like int64) fixed.Money {
		n := i.contract.MustNotional(price, steps)
		if like < 0 {
			return -n
		}
		return n
	}
	var realized fixed.Money
	if closing > 0 {
		moved, _ := fixed.Mul(int64(cost), closing).Div(fixed.Abs(size), fixed.HalfEven).Money()
		realized = -signed(closing, steps) - moved
		cost = cost.Sub(moved)
	}
	if opening := fixed.Abs(steps) - closing; opening > 0 {
		cost = cost.Add(signed(opening, steps))
	}
	return size + steps, cost, realized
}

// cut reduces the account's reduce-only orders, resting or untriggered, to the size of the position, and cancels those
// that have nothing left to reduce.
func (d *recordBuilder) cut(p *accountView, except *resting) {
	for _, o := range p.position.reduceOnly {
		t := d.look(o)
		if o == except || !t.status.Live() {
			continue
		}
		allowed := reducible(p.size, action(o.Side))
		switch {
		case t.remaining <= allowed:
		case allowed == 0:
			d.end(o, order.Canceled, order.ReduceOnlyInvalid)
		default:
			if d.changed.get(o) == nil {
				d.others++
				d.touch(o).amended = true
			}
			c := d.touch(o)
			c.amount -= c.remaining - allowed
			c.remaining = allowed
		}
	}
}

// reducible returns by how many steps an order may reduce a position without reversing it.
func reducible(size int64, a order.Action) int64 {
	if a == order.Buy {
		return max(0, -size)
	}
	return max(0, size)
}
