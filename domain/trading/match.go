package trading

import (
	"math"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// taker is an order on its way through the book.
type taker struct {
	order     *resting // not in the book, or not where it takes
	party     *party
	bound     int64 // the last price at which it may trade
	protected bool  // the bound is the price band
	price     int64 // its limit in ticks, 0 for none
	terms
	stop          *stop       // of an order that waits for its price, with its new prices; such a one takes nothing
	amends        bool        // a live order gets other terms
	overleveraged bool        // the margin did not allow the leverage that came with it
	leverage      int         // that came with it
	cashLeft      fixed.Money // of a cash order
	at            int64       // the price of its last fill
	// liquidates is set on a step of a liquidation: its fills are of that type, and pay that fee.
	liquidates bool
}

func (t *taker) isCash() bool { return t.order.Value.cash != 0 }
func (t *taker) done() int64  { return t.amount - t.remaining }

// walkEnd says why a walk ended.
type walkEnd int

const (
	stopDone  walkEnd = iota // nothing remains
	stopBook                 // nothing is left to trade with
	stopBound                // the rest lies beyond the bound
	stopCash                 // what is left does not buy all of the level it stands at
	stopFull                 // the record is full
)

// bounds limit what a walk may put into a record.
type bounds struct{ fills, others, size, debts int }

// recordBounds are those of a record.
func recordBounds() bounds { return bounds{maxFills, maxChanges, maxRecord - nextBytes, maxDebts} }

// bounds are those of a step. With single set, after one that failed, there is no more in it than must be, and nothing of
// what an account owes on other instruments: one debt that can't be posted must not stop everybody who has to do with the
// account.
func (s *State) bounds(single bool) bounds {
	if single {
		return bounds{fills: 1, others: 1, size: 1, debts: 0}
	}
	return s.limit
}

// unbounded lets a walk go to its end.
func unbounded() bounds { return bounds{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt} }

// walk lets the taker trade with what rests on the other side, best price first and at one price in order of arrival.
// Orders past their time are expired on the way and the taker's own ones canceled, so that nothing is left in its way
// and the book never stands crossed.
func (d *draft) walk(t *taker, limit bounds) walkEnd {
	side := t.order.Side.Opposite()
	for l := d.instrument.book.Best(side); l != nil; l = l.Worse() {
		if t.bound != 0 && side.Better(t.bound, l.Price) {
			return stopBound
		}
		for o := l.Front(); o != nil; o = o.Next() {
			// The book is as it was before the record: only Evolve changes it. What this draft has ended or filled still
			// stands there, and would be met a second time.
			maker := d.look(o)
			if !maker.status.Live() || maker.remaining == 0 {
				continue
			}
			mine, late := o.Value.position.account == t.party.account, isOverdue(o, d.now)
			steps := min(t.remaining, maker.remaining)
			if t.isCash() {
				steps = min(steps, int64(t.cashLeft)/int64(d.instrument.contract.MustNotional(l.Price, 1)))
			}
			switch {
			case steps == 0 && !late && (!mine || t.order.Side == book.Bid): // behind its own order a buyer finds only dearer ones
				return stopCash
			case d.full(t, o, limit):
				// Before the order is touched in any way: an expiry and a self-trade take room in the record as a fill does.
				return stopFull
			case late:
				d.end(o, order.Expired, "")
				continue
			case mine:
				d.cancelOwn(t.party, o)
				continue
			}
			d.fill(t, o, steps)
			if t.remaining == 0 {
				return stopDone
			}
			if steps < maker.remaining { // both sides have something left: only cash can have run out
				return stopCash
			}
		}
	}
	return stopBook
}

// full reports whether the record might not hold what meeting one more order brings with it.
func (d *draft) full(t *taker, o *resting, limit bounds) bool {
	return d.crowded(len(t.party.position.reduceOnly)+len(o.Value.position.reduceOnly), o.Value.position.account, limit)
}

// crowded reports whether the record might not hold one more trade, with an account, that may cut so many orders.
func (d *draft) crowded(cuts int, with *account, limit bounds) bool {
	if d.fills+d.others == 0 {
		return false // one always fits
	}
	debts := 0
	if d.parties.get(with) == nil {
		owed, _ := d.firstDebts(with)
		debts = sizeOf(owed)
	}
	return d.fills >= limit.fills || d.others+max(cuts, 1) > limit.others || d.size+cuts*(orderBytes+200)+debts > limit.size
}

// cancelOwn cancels the taker's own order that stands in its way.
func (d *draft) cancelOwn(p *party, o *resting) {
	t := d.look(o)
	if !o.Value.reduceOnly {
		notional := d.instrument.contract.MustNotional(o.Price, t.remaining)
		if o.Side == book.Bid {
			p.bids = p.bids.Sub(notional)
		} else {
			p.asks = p.asks.Sub(notional)
		}
	}
	d.end(o, order.Canceled, order.SelfTrade)
}

// fill trades steps between the taker and a resting order, at the latter's price.
func (d *draft) fill(t *taker, o *resting, steps int64) {
	c, price := d.instrument.contract, o.Price
	notional := c.MustNotional(price, steps)
	signed := steps
	if t.order.Side == book.Ask {
		signed = -steps
	}
	if d.quiet && len(o.Value.position.reduceOnly) == 0 { // nothing that the taker meets depends on what becomes of the other side
		d.trade(nil, t.party, t.order.Code, price, signed, ledger.Trade)
		d.payTaker(nil, t, notional)
	} else {
		d.match(t, o, steps, signed, notional)
	}
	t.remaining -= steps
	t.quote = t.quote.Add(notional)
	t.at = price
	if t.isCash() {
		t.cashLeft = t.cashLeft.Sub(notional)
	}
	d.fills++
	// After each fill, not once at the end: the record may be full at the next order, and none may leave a reduce-only
	// order larger than the position behind.
	d.cut(t.party, t.order)
}

// match books both sides of a trade of signed steps, and the resting order.
func (d *draft) match(t *taker, o *resting, steps, signed int64, notional fixed.Money) {
	c, price := d.instrument.contract, o.Price
	mp := d.party(o.Value.position.account)

	e := &TradeExecuted{Type: Trade}
	if t.liquidates {
		e.Type = Liquidation
	}
	closesTaker, closesMaker := closings(e.Type)
	if !d.quiet {
		*e = TradeExecuted{Code: d.at.Derive(len(d.events)), Symbol: c.Symbol, Price: c.Price(price), Amount: c.Amount(steps),
			Notional: notional, Action: action(t.order.Side), Type: e.Type, Taker: tradeLeg(t.order), Maker: tradeLeg(o),
			Positions: make([]PositionHeld, 0, 2), Entries: make([]ledger.Posting, 0, 4)} // as they are read: never nil
		d.events = append(d.events, e)
		d.countTrade(e)
	}
	d.trade(e, t.party, t.order.Code, price, signed, closesTaker)
	e.Taker.Fee = d.payTaker(e, t, notional)
	d.trade(e, mp, o.Code, price, -signed, closesMaker)
	makerParts, _ := mp.position.fees()
	e.Maker.Fee = max(margin.Fee(notional, makerParts), -e.Taker.Fee) // a rebate is paid out of the taker's fee
	d.post(e, mp, o.Code, ledger.TradeFee, -e.Maker.Fee, ledger.Fees, &d.fees)

	m := d.touch(o)
	m.amended = false // even if it was cut before: a record has one event for each order, and that one tells of the trade
	m.remaining -= steps
	m.quote = m.quote.Add(notional)
	m.status = order.PartiallyFilled
	if m.remaining == 0 {
		m.status = order.Filled
	}
	d.cut(mp, nil)
}

func tradeLeg(o *resting) TradeLeg {
	a := o.Value.position.account
	return TradeLeg{OrderCode: o.Code, CustomerCode: a.code, Broker: a.broker, ReferenceID: referenceID(o)}
}

// closings are the types of the rows for what the two sides of a trade close.
func closings(kind TradeType) (taker, maker ledger.Type) {
	switch kind {
	case Liquidation:
		return ledger.Liquidation, ledger.Trade
	case AutoDeleveraging:
		return ledger.AutoDeleveraging, ledger.AutoDeleveraging
	}
	return ledger.Trade, ledger.Trade
}

// payTaker books the taker's fee of a fill that is booked already, and returns it. A liquidation pays its own fee, into
// the insurance fund, out of what equity it has left.
func (d *draft) payTaker(e *TradeExecuted, t *taker, notional fixed.Money) fixed.Money {
	if t.liquidates {
		fee := margin.LiquidationFee(notional, d.standing(t.party).Equity().Capped())
		d.post(e, t.party, t.order.Code, ledger.LiquidationFee, -fee, ledger.Insurance, &d.party(d.state.fund).balance)
		return fee
	}
	_, parts := t.party.position.fees()
	fee := margin.Fee(notional, parts)
	d.post(e, t.party, t.order.Code, ledger.TradeFee, -fee, ledger.Fees, &d.fees)
	return fee
}

// fate decides what becomes of a taker after its walk: its status and reason, and whether the rest of it rests.
func (t *taker) fate(why walkEnd) (rests bool) {
	v := &t.order.Value
	if t.isCash() {
		// The amount was a bound only. What was bought is the amount from here on, and nothing remains.
		t.amount = t.done()
		t.remaining = 0
		step := int64(0)
		if t.at != 0 {
			step = int64(v.position.instrument.contract.MustNotional(t.at, 1))
		}
		if t.amount > 0 && (why == stopCash || int64(t.cashLeft) < step) {
			t.status, t.reason = order.Filled, ""
			return false
		}
		t.status, t.reason = order.Canceled, t.leftover(why)
		return false
	}
	switch {
	case t.remaining == 0:
		t.status = order.Filled
	case v.rests():
		t.status = order.Open
		if t.done() > 0 {
			t.status = order.PartiallyFilled
		}
		return true
	default:
		t.status, t.reason = order.Canceled, t.leftover(why)
	}
	return false
}

// leftover is the reason for which what an order could not trade is canceled.
func (t *taker) leftover(why walkEnd) order.Reason {
	if why == stopBound && t.protected {
		return order.PriceProtection
	}
	return order.IOCRemainder
}
