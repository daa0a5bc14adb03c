package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// triggerWork fires the stops with a reached price, one per record, each as an order that may take. An instrument has
// one entry, however many stops are due, and keeps it until no stop is inside the bound. An entry that was set aside is
// about one order.
type triggerWork struct{}

func (triggerWork) work(*dueEntry) Work { return WorkTrigger }

func (triggerWork) subject(e *dueEntry) string {
	if e.order != nil {
		return e.order.Code.String()
	}
	next, _ := e.instrument.nextStop()
	if next == nil { // the last one ended in the record that is being applied
		return e.instrument.contract.Symbol
	}
	return next.order.Code.String()
}

func (triggerWork) visit(v *visit, e *dueEntry) *dueEntry {
	o := v.number(e.order, new(int64))
	if pack.Int(v.Coder, &e.Time); v.Reading() {
		if o == nil || !o.Value.untriggered() || o.Value.stop.held == "" {
			return nil
		}
		e.order = o
	}
	return e
}

func (triggerWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	next, by := entries[0].instrument.nextStop()
	o := next.order
	if isOverdue(o, at.Time) {
		return stepped(WorkTrigger, ended(o, at, order.Expired, ""))
	}
	d := s.newRecordBuilder(at, entries[0].instrument)
	d.limit = s.bounds(single)
	return d.fire(next, by)
}

// fire decides the outcome of a stop with a reached price. It is now an ordinary order with these terms, except that it
// was accepted long ago: where a new order would be rejected, it is canceled.
func (d *recordBuilder) fire(s *stop, by order.Leg) decide.Decision {
	o := s.order
	e := fired(s, by, d.sheet)
	d.events = append(d.events, &Step{Work: WorkTrigger}, e)
	d.size += firedBytes + len(e.CustomerCode) + len(e.Broker) + len(e.Symbol)
	t := &taker{order: o, party: d.viewOf(o.Value.position.account), price: o.Price, terms: termsOf(o)}
	t.updated, t.triggered = d.at.Time, d.at.Time
	slot := d.reserveSlot()
	var decision decide.Decision
	if reason := d.takeable(t); reason != "" {
		decision = d.reject(t, slot, reason)
	} else {
		decision = d.execute(t, slot, decide.Recorded{})
	}
	if decision.Outcome == decide.Rejected {
		t.status = order.Canceled
		d.finish(t, slot)
	}
	return decide.Decision{Outcome: decide.Accepted, Events: decision.Events} // no client waits for it
}

// takeable checks a stop that fires as if it were a new order with these terms.
func (d *recordBuilder) takeable(t *taker) order.Reason {
	if reason := d.admissible(t); reason != "" {
		return reason
	}
	// Prices may have moved far since the stop was placed. No margin could cover a notional that cannot be counted.
	if d.fits(t) != nil {
		return order.InsufficientMargin
	}
	return ""
}

// fired returns the event that says which leg of a stop fired. It writes down why.
func fired(s *stop, by order.Leg, sheet *arithmetic.Sheet) *TriggerFired {
	v := &s.order.Value
	e := &TriggerFired{OrderCode: s.order.Code, CustomerCode: v.position.account.code, Broker: v.position.account.broker,
		Symbol: v.position.instrument.contract.Symbol, Leg: by, TriggerPriceType: v.kind.Trigger()}
	for n, of := range legs {
		if of == by {
			e.TriggerPrice = v.position.instrument.contract.Price(s.legs[n].Price)
			s.explainFired(sheet, s.legs[n].Price, s.legs[n].Side)
		}
	}
	return e
}

// holdStop sets aside the stop that was to fire next but failed, until an operator puts it back. The other stops of the
// instrument do not wait for it.
func (f *fold) holdStop(e *dueEntry) *dueEntry {
	next, by := e.instrument.nextStop()
	held := &dueEntry{Slot: schedule.At(e.Time, dueTrigger), order: next.order, arrival: e.arrival}
	f.discharge(next)
	next.held = by
	return held
}

// putBackStop applies that a stop which was set aside is to fire.
func (f *fold) putBackStop(e *dueEntry) {
	i := e.order.Value.position.instrument
	i.putBack = append(i.putBack, e.order.Value.stop)
	f.noteFiring(i)
}
