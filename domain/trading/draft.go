package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// draft is a record in the making: its events so far, and what accounts and orders on one instrument look like after
// them. The state itself is only read.
type draft struct {
	state      *State
	at         decide.Stamp
	now        scalar.Time // by which orders are past their time: the record's, or when the sweep began
	instrument *instrument
	events     []decide.Event
	parties    few[*account, *party]
	changed    few[*resting, *change]
	touched    []*change // in the order in which they were touched first
	till
	fills  int
	others int // changed orders that did not trade
	size   int // estimate of the record in bytes
	// quiet is set while a walk only finds out where it leads: it changes the view and writes no events.
	quiet bool
	limit bounds // of the record
}

// Estimates of what parts of a record take, without their variable strings. They err on the large side; a test holds
// them against the encoding.
const (
	headBytes    = 2500
	tradeBytes   = 330
	legBytes     = 150
	heldBytes    = 125
	postingBytes = 235
	orderBytes   = 680
	firedBytes   = 330
	nextBytes    = 8 << 10 // what one more fill and the closing events may need
)

func (s *State) newDraft(at decide.Stamp, i *instrument) *draft {
	return &draft{state: s, at: at, now: at.Time, instrument: i, till: s.newTill(), size: headBytes, limit: s.limit}
}

// party is an account as the draft leaves it, on the draft's instrument.
type party struct {
	account    *account
	position   *position
	balance    fixed.Money
	unposted   fixed.Wide // of what it owes on other instruments: see firstDebts
	size       int64
	cost       fixed.Money
	bids, asks fixed.Money // without what orders past their time reserve
	floor      fixed.Rate
}

// party returns the account's. If the draft has not touched it, what it owes is posted first: the events before those of
// what the draft does to it.
func (d *draft) party(a *account) *party {
	if p := d.parties.get(a); p != nil {
		return p
	}
	h := a.on(d.instrument)
	p := &party{account: a, position: h, balance: a.balance, size: h.size, cost: h.cost, bids: h.bids, asks: h.asks, floor: h.floor()}
	// An order past its time reserves nothing, even if its expiry is still due: what is available must not depend on when
	// the engine gets to it.
	bids, asks := d.state.overdue(h, d.now)
	p.bids, p.asks = p.bids.Sub(bids), p.asks.Sub(asks)
	owed, rest := d.firstDebts(a)
	p.unposted = rest
	for _, debt := range owed {
		d.postDebt(p, debt)
	}
	d.parties.put(a, p)
	return p
}

// postDebt posts what an account owes. On paper nothing is posted: the account is as it would be after it.
func (d *draft) postDebt(p *party, debt debt) {
	p.balance = p.balance.Add(debt.amount)
	if debt.position == p.position {
		p.cost = debt.cost
	}
	if !d.quiet {
		d.events = append(d.events, d.till.post(d.at, len(d.events), debt, p.balance))
		d.size += debt.size()
	}
}

// standing is the account's margin as the draft leaves it.
func (d *draft) standing(p *party) margin.Standing {
	e := p.position.exposure()
	e.Size, e.Cost, e.Bids, e.Asks, e.Floor = p.size, p.cost, p.bids, p.asks, p.floor
	m := d.state.standing(p.account, d.now, &e)
	m.Balance = p.balance.Wide().Add(p.unposted)
	return m
}

// reserveFor adds the notional of a resting order to what the party's margin is computed from; false if the sum is
// beyond anything that margin could cover.
func (p *party) reserveFor(side order.Action, notional fixed.Money) bool {
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

// change is a resting order as the draft leaves it.
type change struct {
	order *resting
	terms
	amended bool // cut, and not traded since
	written bool
}

// look returns an order's figures as the draft leaves them.
func (d *draft) look(o *resting) terms {
	if c := d.changed.get(o); c != nil {
		return c.terms
	}
	return termsOf(o)
}

// touch returns the order's change, to be written to.
func (d *draft) touch(o *resting) *change {
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

// end closes a resting order that did not trade in the draft. A quiet walk, which meets every order once, has no need to
// remember it but for what cuts may look at.
func (d *draft) end(o *resting, status order.Status, reason order.Reason) {
	if d.quiet && !o.Value.reduceOnly {
		return
	}
	if d.changed.get(o) == nil {
		d.others++
	}
	c := d.touch(o)
	c.status, c.reason = status, reason
}

// write appends the events of all orders that were touched and not written yet.
func (d *draft) write() {
	for _, c := range d.touched {
		if !c.written {
			d.events = append(d.events, orderEvent(c.order, c.order.Price, c.terms, c.amended))
			c.written = true
		}
	}
}

// post appends a movement between a customer and one of the venue's accounts to a trade: a posting on each. Nothing
// is posted for nothing.
func (d *draft) post(e *TradeExecuted, p *party, code scalar.ID, kind ledger.Type, amount fixed.Money, venue ledger.Account, balance *fixed.Money) {
	if amount == 0 {
		return
	}
	p.balance = p.balance.Add(amount)
	*balance = balance.Sub(amount)
	if d.quiet {
		return
	}
	mine := ledger.Posting{Code: e.Code, CustomerCode: p.account.code, Type: kind, Currency: currency, Amount: amount, Balance: p.balance, Symbol: e.Symbol, OrderCode: code}
	if p.account.isFund() {
		mine.Code, mine.CustomerCode, mine.Account = scalar.ID{}, "", ledger.Insurance
	}
	e.Entries = append(e.Entries, mine,
		ledger.Posting{Account: venue, Type: kind, Currency: currency, Amount: -amount, Balance: *balance, Symbol: e.Symbol})
	d.size += 2*(postingBytes+len(e.Symbol)) + len(p.account.code)
}

// trade books one side of a trade: the position, and the profit realised by what it closes, as a row of a type.
func (d *draft) trade(e *TradeExecuted, p *party, code scalar.ID, price, steps int64, closing ledger.Type) {
	size, cost, realised := positionAfter(d.instrument, p.size, p.cost, price, steps)
	p.size, p.cost = size, cost
	d.post(e, p, code, closing, realised, ledger.Clearing, &d.clearing)
	if !d.quiet {
		e.Positions = append(e.Positions, held(p.account.code, d.instrument.contract, size, cost))
	}
}

// countTrade adds what a trade takes of the record, without its postings.
func (d *draft) countTrade(e *TradeExecuted) {
	for _, l := range [2]*TradeLeg{&e.Taker, &e.Maker} {
		d.size += legBytes + heldBytes + 2*len(l.CustomerCode) + len(l.Broker) + len(e.Symbol) + len(l.ReferenceID)
	}
	d.size += tradeBytes + len(e.Symbol)
}

// positionAfter returns a position after a trade of signed steps, and the profit that closing part of it realises. Closing q
// of Q moves cost × q ÷ Q, rounded half to even; the profit is the proceeds less that. So the cost changes by the
// signed notional plus the profit, and over all positions costs and realised profits stay equal.
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
	var realised fixed.Money
	if closing > 0 {
		moved, _ := fixed.Mul(int64(cost), closing).Div(fixed.Abs(size), fixed.HalfEven).Money()
		realised = -signed(closing, steps) - moved
		cost = cost.Sub(moved)
	}
	if opening := fixed.Abs(steps) - closing; opening > 0 {
		cost = cost.Add(signed(opening, steps))
	}
	return size + steps, cost, realised
}

// cut brings the party's reduce-only orders, resting or untriggered, down to its position, and cancels those for which nothing is left.
func (d *draft) cut(p *party, except *resting) {
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

// reducible returns how much an order may take from a position without turning it.
func reducible(size int64, a order.Action) int64 {
	if a == order.Buy {
		return max(0, -size)
	}
	return max(0, size)
}
