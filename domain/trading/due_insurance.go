package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// insuranceWork places and moves the orders with which the insurance fund reduces its positions. On each instrument the
// fund has one reduce-only order, at mark, for the whole position. The order moves when the mark or the position
// changes.
type insuranceWork struct{ aboutInstrument }

// fundOrder returns what the fund's order on an instrument should be. A price of 0 means no order.
func (s *State) fundOrder(h *position) (side book.Side, price, steps int64) {
	i := h.instrument
	switch {
	case h.size > 0:
		return book.Ask, max(1, i.contract.MarkTicks(i.mark, fixed.Ceiling)), h.size
	case h.size < 0:
		return book.Bid, max(1, i.contract.MarkTicks(i.mark, fixed.Floor)), -h.size
	}
	return book.Bid, 0, 0
}

// moveFund schedules a move of the fund's order if it differs from fundOrder and the instrument is open.
func (f *fold) moveFund(i *instrument) {
	h := f.fund.on(i)
	_, price, steps := f.fundOrder(h)
	moved := price != 0 && (h.orders.first == nil || h.orders.first.Price != price || h.orders.first.Remaining != steps)
	// A sweep of the fund's order continues on its own. moveFund is called again when it has ended.
	moved = moved && i.status() == market.Open && (h.orders.first == nil || h.orders.first.Resting())
	switch {
	case moved && i.fundMoves == nil:
		i.fundMoves = &dueEntry{Slot: schedule.At(f.at.Time, dueInsurance), instrument: i}
		f.due.push(i.fundMoves)
	case !moved && i.fundMoves != nil:
		f.cancelEntry(i.fundMoves)
		i.fundMoves = nil
	}
}

func (insuranceWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	i := entries[0].instrument
	d := s.newRecordBuilder(at, i)
	d.limit = s.bounds(single)
	d.events = append(d.events, &Step{Work: WorkInsuranceOrder})
	slot := d.reserveSlot()
	t := d.movingFund(slot)
	why := d.walk(t, d.limit)
	d.write()
	if why != stopFull {
		t.fate(why)
		d.finish(t, slot)
		return decide.Decision{Outcome: decide.Accepted, Events: d.check()}
	}
	t.status = order.PartiallyFilled
	if t.done() == 0 {
		t.status = order.Open
	}
	d.finish(t, slot)
	d.events = append(d.events, &WorkStarted{Work: WorkSweep, CustomerCode: FundCode, Symbol: i.contract.Symbol,
		OrderCode: t.order.Code, Bound: i.contract.Price(t.bound)})
	return decide.Decision{Outcome: decide.Accepted, Events: d.check()}
}

// movingFund returns the taker for the fund's order with its new price and size. It uses the resting order, or a new
// one if none rests.
func (d *recordBuilder) movingFund(slot int) *taker {
	p := d.viewOf(d.state.fund)
	side, price, steps := d.state.fundOrder(p.position)
	o := p.position.orders.first
	if o == nil {
		o = &resting{Code: d.at.Derive(slot), Side: side, Price: price, Remaining: steps}
		o.Value = live{instruction: instruction{kind: order.Limit, tif: order.GTC, reduceOnly: true}, position: p.position, amount: steps, created: d.at.Time}
	}
	t := &taker{order: o, party: p, bound: price, price: price, terms: termsOf(o)}
	t.amount += steps - t.remaining
	t.remaining, t.updated = steps, d.at.Time
	return t
}
