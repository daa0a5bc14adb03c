package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Due says whether work is due. A sweep blocks clients; expiries and dead-man switches take turns with them. It
// implements decide.State.
func (s *State) Due(now scalar.Time) decide.Urgency {
	if s.running != nil {
		return decide.Blocking
	}
	if first, ok := s.due.next(); ok && first <= now {
		return decide.Alternate
	}
	return decide.Nothing
}

// NextDue returns when the next work is due. It implements decide.State.
func (s *State) NextDue() (scalar.Time, bool) {
	if s.running != nil {
		return s.running.started, true
	}
	return s.due.next()
}

// Step decides the next piece of due work. It implements decide.State.
func (s *State) Step(at decide.Stamp, single bool) decide.Decision {
	n := s.limit.others
	if single {
		n = 1
	}
	if s.running != nil {
		if s.running.kind == WorkSweep {
			return s.stepTaker(at, single)
		}
		return s.stepMassCancel(at, n)
	}
	entries := s.due.first(n, at.Time)
	if len(entries) == 0 {
		return decide.Decision{}
	}
	if entries[0].kind == dueCancelAllAfter {
		return decide.Decision{Outcome: decide.Accepted, Events: fireDeadMan(at, []decide.Event{&Step{Work: WorkCancelAllAfter}}, entries[0].account, n)}
	}
	events := []decide.Event{&Step{Work: WorkExpiry}}
	for _, e := range entries {
		events = append(events, ended(e.order, at, order.Expired, ""))
	}
	return decide.Decision{Outcome: decide.Accepted, Events: events}
}

// fireDeadMan decides the cancellation of a customer's orders whose dead-man switch went off.
func fireDeadMan(at decide.Stamp, events []decide.Event, a *account, n int) []decide.Event {
	w := &sweep{kind: WorkMassCancel, account: a, reason: order.CancelAllAfter}
	events, canceled, more := w.end(at, append(events, &CancelAllAfterFired{CustomerCode: a.code, Broker: a.broker}), n)
	if more {
		events = append(events, &WorkStarted{Work: w.kind, CustomerCode: a.code, Reason: w.reason, Canceled: canceled})
	}
	return events
}

// stepMassCancel decides the next orders of a running mass cancel.
func (s *State) stepMassCancel(at decide.Stamp, n int) decide.Decision {
	w := s.running
	events, canceled, more := w.end(at, []decide.Event{&Step{Work: WorkSweep}}, n)
	if more {
		return decide.Decision{Outcome: decide.Accepted, Events: events}
	}
	return decide.Decision{Outcome: decide.Accepted, Events: append(events, w.finished(w.canceled+canceled)), Finishes: w.command.ID}
}

// stepTaker decides the next fills of an order that needs more than one record. Its margin was judged when it began,
// on all of its fills; and for what is past its time it counts when it began, so that what was judged is what is done.
func (s *State) stepTaker(at decide.Stamp, single bool) decide.Decision {
	w := s.running
	o := s.orders.Get(w.order)
	d := s.newDraft(at, w.symbol)
	d.now = w.started
	d.events = append(d.events, &Step{Work: WorkSweep})
	if o == nil { // it was canceled while the work was set aside
		return decide.Decision{Outcome: decide.Accepted, Events: append(d.events, w.finished(0)), Finishes: w.command.ID}
	}
	slot := d.reserveSlot()
	t := &taker{order: o, party: d.party(w.account), bound: w.bound, protected: w.protected, price: o.Price, terms: termsOf(o)}
	t.updated = at.Time
	if o.Value.cash != 0 {
		t.cashLeft = o.Value.cash.Sub(o.Value.filledQuote)
		if t.done() > 0 {
			t.at = d.instrument.last
		}
	}
	if o.Value.reduceOnly {
		t.capTo(reducible(t.party.size, action(o.Side)))
	}
	limit := s.limit
	if single {
		limit = bounds{1, 1, 1}
	}
	why := d.walk(t, limit)
	d.write()
	decision := decide.Decision{Outcome: decide.Accepted}
	if why == stopFull {
		t.status = order.PartiallyFilled
		if t.done() == 0 {
			t.status = order.Open
		}
	} else {
		t.fate(why)
		d.events = append(d.events, w.finished(0))
		decision.Finishes = w.command.ID
	}
	d.settleOrder(t, slot)
	decision.Events = d.check()
	return decision
}

// capTo cuts the taker down to what it may still trade.
func (t *taker) capTo(allowed int64) {
	if t.remaining > allowed {
		t.amount -= t.remaining - allowed
		t.remaining = allowed
	}
}

// SetAside decides the event that takes the next due entry off the list. It implements decide.State.
func (s *State) SetAside(at decide.Stamp, cause string) decide.Decision {
	name := ""
	if s.running != nil {
		name = (&dueEntry{kind: dueSweep, sweep: s.running}).name()
	} else if entries := s.due.first(1, at.Time); len(entries) == 1 {
		name = entries[0].name()
	} else {
		return decide.Decision{}
	}
	return decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&Step{Work: WorkSetAside}, &DueSetAside{Entry: name, Error: cause}}}
}

// setAside applies the event.
func (s *State) setAside(name string) {
	if s.running != nil && (&dueEntry{kind: dueSweep, sweep: s.running}).name() == name {
		s.aside = append(s.aside, &dueEntry{kind: dueSweep, sweep: s.running, place: -1, time: s.running.started})
		s.running = nil
		return
	}
	for _, e := range s.due.heap {
		if e.name() == name {
			s.due.remove(e)
			s.aside = append(s.aside, e)
			return
		}
	}
}

// putBackDue decides that work that was set aside is tried again.
func (s *State) putBackDue(payload *PutBackDue) (decide.Decision, error) {
	e := s.asideEntry(payload.Entry)
	if e == nil {
		return decide.Decision{}, decide.Refuse(decide.NotFound, "UNKNOWN_DUE_ENTRY", "no due work of this name was set aside")
	}
	return accepted(&DuePutBack{Entry: payload.Entry})
}

func (s *State) asideEntry(name string) *dueEntry {
	if n := slices.IndexFunc(s.aside, func(e *dueEntry) bool { return e.name() == name }); n >= 0 {
		return s.aside[n]
	}
	return nil
}

// putBack applies the event.
func (s *State) putBack(name string) {
	e := s.asideEntry(name)
	if e == nil {
		return
	}
	s.dropAside(e)
	if e.kind == dueSweep {
		s.running = e.sweep
		return
	}
	s.due.push(e)
}

func (s *State) dropAside(e *dueEntry) {
	if n := slices.Index(s.aside, e); n >= 0 {
		s.aside = slices.Delete(s.aside, n, n+1)
	}
}

// cancelEntry takes an entry off the list, or from what was set aside.
func (s *State) cancelEntry(e *dueEntry) {
	if e == nil {
		return
	}
	s.due.remove(e)
	s.dropAside(e)
}
