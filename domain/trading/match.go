package trading

import (
	"math"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/margin"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// taker is an order that trades with the orders in the book.
type taker struct {
	order     *resting // not in the book, or not at the place where it takes
	party     *accountView
	bound     int64 // the last price at which it may trade; 0 for none
	protected bool  // whether the bound is the price band
	price     int64 // limit price in ticks; 0 for none
	terms
	stop          *stop       // set on an order that waits for a price, with its new prices; such an order takes nothing
	amends        bool        // whether a live order gets new terms
	overleveraged bool        // whether the margin did not permit the leverage that came with the order
	leverage      int         // leverage that came with the order; 0 for none
	cashLeft      fixed.Money // cash that is left of a cash order
	at            int64       // price of the last fill; 0 for none
	// liquidates is set for a step of a liquidation: its fills are of type Liquidation and pay the liquidation fee.
	liquidates bool
}

func (t *taker) isCash() bool { return t.order.Value.cash != 0 }
func (t *taker) done() int64  { return t.amount - t.remaining }

// walkEnd is the reason for which a walk ended.
type walkEnd int

const (
	stopDone  walkEnd = iota // nothing remains of the taker
	stopBook                 // nothing is left to trade with
	stopBound                // the other orders are beyond the bound
	stopCash                 // the cash left does not buy all of the next order
	stopFull                 // the record is full
)

// bounds limit what a record may contain: fills, other changed orders, bytes, and postings of unpaid charges per account.
type bounds struct{ fills, others, size, charges int }

// recordBounds returns the bounds of a record.
func recordBounds() bounds { return bounds{maxFills, maxChanges, maxRecord - nextBytes, maxCharges} }

// bounds returns the bounds of a step. With single set, after a step that failed, a step does the least that it can and
// posts no unpaid charges on other instruments: one charge that cannot be posted must not block everything that
// involves the account.
func (s *State) bounds(single bool) bounds {
	if single {
		return bounds{fills: 1, others: 1, size: 1, charges: 0}
	}
	return s.limit
}

// unbounded returns bounds without limits, for a walk to its end.
func unbounded() bounds { return bounds{math.MaxInt, math.MaxInt, math.MaxInt, math.MaxInt} }

// walk lets the taker trade with the orders on the other side, best price first, and in order of arrival within a
// price. On the way it expires orders past their expiry time and cancels the taker's own orders. So neither is left in
// the taker's path, and the book is never crossed.
func (d *recordBuilder) walk(t *taker, limit bounds) walkEnd {
	side := t.order.Side.Opposite()
	for l := d.instrument.book.Best(side); l != nil; l = l.Worse() {
		if t.bound != 0 && side.Better(t.bound, l.Price) {
			return stopBound
		}
		for o := l.Front(); o != nil; o = o.Next() {
			// The book is unchanged, since only Evolve changes it. It still contains the orders that this builder has
			// closed or filled, which must not be met a second time.
			maker := d.look(o)
			if !maker.status.Live() || maker.remaining == 0 {
				continue
			}
			sameAccount, late := o.Value.position.account == t.party.account, isOverdue(o, d.now)
			steps := min(t.remaining, maker.remaining)
			if t.isCash() {
				steps = min(steps, int64(t.cashLeft)/int64(d.instrument.contract.MustNotional(l.Price, 1)))
			}
			switch {
			case steps == 0 && !late && (!sameAccount || t.order.Side == book.Bid): // behind its own order, a buyer meets higher prices
				return stopCash
			case d.full(t, o, limit):
				// Checked before the order changes: an expiry or a self-trade needs room in the record just like a
				// fill.
				return stopFull
			case late:
				d.end(o, order.Expired, "")
				continue
			case sameAccount:
				d.cancelOwn(t.party, o)
				continue
			}
			d.fill(t, o, steps)
			if t.remaining == 0 {
				return stopDone
			}
			if steps < maker.remaining { // both sides have something left, so the cash has run out
				return stopCash
			}
		}
	}
	return stopBook
}

// full reports whether the record might not have room for what happens when the taker meets one more order.
func (d *recordBuilder) full(t *taker, o *resting, limit bounds) bool {
	return d.crowded(len(t.party.position.reduceOnly)+len(o.Value.position.reduceOnly), o.Value.position.account, limit)
}

// crowded reports whether the record might not have room for one more trade, with an account, that may cut this many
// orders.
func (d *recordBuilder) crowded(cuts int, with *account, limit bounds) bool {
	if d.fills+d.others == 0 {
		return false // one always fits
	}
	debts := 0
	if d.views.get(with) == nil {
		owed, _ := d.firstCharges(with)
		debts = sizeOf(owed)
	}
	return d.fills >= limit.fills || d.others+max(cuts, 1) > limit.others || d.size+cuts*(orderBytes+200)+debts > limit.size
}

// cancelOwn cancels an order of the taker's own account that the taker meets.
func (d *recordBuilder) cancelOwn(p *accountView, o *resting) {
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

// fill trades steps between the taker and a resting order, at the price of the resting order.
func (d *recordBuilder) fill(t *taker, o *resting, steps int64) {
	c, price := d.instrument.contract, o.Price
	notional := c.MustNotional(price, steps)
	signed := steps
	if t.order.Side == book.Ask {
		signed = -steps
	}
	if d.dryRun && len(o.Value.position.reduceOnly) == 0 { // the taker's outcome does not depend on the maker's
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
	// The cut follows each fill, not the end of the walk: the record may be full at the next order, and a record must
	// not leave a reduce-only order larger than the position.
	d.cut(t.party, t.order)
}

// match books both sides of a trade of signed steps, and updates the resting order.
func (d *recordBuilder) match(t *taker, o *resting, steps, signed int64, notional fixed.Money) {
	price, kind := o.Price, Trade
	if t.liquidates {
		kind = Liquidation
	}
	mp := d.viewOf(o.Value.position.account)
	var e *TradeExecuted
	if d.dryRun {
		e = &TradeExecuted{}
	} else {
		e = d.addTrade(kind, price, steps, notional, action(t.order.Side), tradeLeg(t.order), tradeLeg(o))
	}
	closesTaker, closesMaker := closings(kind)
	d.trade(e, t.party, t.order.Code, price, signed, closesTaker)
	e.Taker.Fee = d.payTaker(e, t, notional)
	d.trade(e, mp, o.Code, price, -signed, closesMaker)
	makerParts, _ := mp.position.fees()
	e.Maker.Fee = max(margin.Fee(notional, makerParts), -e.Taker.Fee) // the taker's fee pays a rebate
	d.explainMakerFee(mp, e.Code.String(), notional, makerParts, e.Maker.Fee)
	d.post(e, mp, o.Code, ledger.TradeFee, -e.Maker.Fee, ledger.Fees, &d.fees)

	m := d.touch(o)
	m.amended = false // even if it was cut before: a record has one event per order, which then reports the trade
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

// closings returns the row types for the positions that the two sides of a trade close.
func closings(kind TradeType) (taker, maker ledger.Type) {
	switch kind {
	case Liquidation:
		return ledger.Liquidation, ledger.Trade
	case AutoDeleveraging:
		return ledger.AutoDeleveraging, ledger.AutoDeleveraging
	}
	return ledger.Trade, ledger.Trade
}

// payTaker books the taker's fee for a fill that is already booked, and returns it. A liquidation pays a separate fee
// to the insurance fund, out of the equity that is left.
func (d *recordBuilder) payTaker(e *TradeExecuted, t *taker, notional fixed.Money) fixed.Money {
	if t.liquidates {
		equity := d.standing(t.party).Equity().Capped()
		fee := margin.LiquidationFee(notional, equity)
		if d.sheet.On() && !d.dryRun {
			margin.ExplainLiquidationFee(d.sheet, t.party.account.code, e.Code.String(), notional, equity, fee)
		}
		d.post(e, t.party, t.order.Code, ledger.LiquidationFee, -fee, ledger.Insurance, &d.viewOf(d.state.fund).balance)
		return fee
	}
	_, parts := t.party.position.fees()
	fee := margin.Fee(notional, parts)
	if d.sheet.On() && !d.dryRun {
		margin.ExplainFee(d.sheet, t.party.account.code, "fee", e.Code.String(), notional, parts, fee)
	}
	d.post(e, t.party, t.order.Code, ledger.TradeFee, -fee, ledger.Fees, &d.fees)
	return fee
}

// fate sets the taker's status and reason after its walk, and reports whether the remainder rests.
func (t *taker) fate(why walkEnd) (rests bool) {
	v := &t.order.Value
	if t.isCash() {
		// The amount was only an upper bound. From now on it is the amount that was bought, and nothing remains.
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

// leftover returns the reason for which the remainder of a taker is canceled.
func (t *taker) leftover(why walkEnd) order.Reason {
	if why == stopBound && t.protected {
		return order.PriceProtection
	}
	return order.IOCRemainder
}
