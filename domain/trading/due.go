package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// dueKind is a kind of due work. At one time, kinds are done in this order: first what blocks clients, as the rules of the
// venue order it, then what alternates with their commands.
type dueKind uint8

const (
	dueTask dueKind = iota // a command's work that goes on in steps: it was due before anything that became due since
	dueStaleGuard
	dueFunding
	dueSettlement
	dueTrigger
	dueLiquidation
	dueInsurance // the orders of the insurance fund

	dueCancelAllAfter
	dueGateway
	dueSession
	duePosting
	dueExpiry

	dueKinds // how many there are
)

// dueWork is how one kind of due work is done. Each has a file of its own: due_task.go, due_expiry.go and so on.
type dueWork interface {
	// work is what steps and names say of an entry.
	work(e *dueEntry) Work
	// subject names what an entry is about: an order, a customer, a command. With the work it is the entry's name.
	subject(e *dueEntry) string
	// step decides the next record. The entries are due, of this kind and in order; there is at least one, and no more
	// than a record holds. With single set there is one, and no more than one order or fill of it is to be done.
	step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision
	// save writes which entry it is, for one that was set aside; load reads it, and returns nil for what can't be.
	save(v *saver, e *dueEntry)
	load(v *loader) *dueEntry
}

// dueTable says of every kind how it is done, and how it stands against the commands of clients.
var dueTable = [dueKinds]struct {
	urgency decide.Urgency
	dueWork
}{
	dueTask:           {decide.Blocking, taskWork{}},
	dueStaleGuard:     {decide.Blocking, staleGuardWork{}},
	dueFunding:        {decide.Blocking, fundingWork{}},
	dueSettlement:     {decide.Blocking, settlementWork{}},
	dueTrigger:        {decide.Blocking, triggerWork{}},
	dueLiquidation:    {decide.Blocking, liquidationWork{}},
	dueInsurance:      {decide.Blocking, insuranceWork{}},
	dueCancelAllAfter: {decide.Alternate, cancelAllAfterWork{}},
	dueGateway:        {decide.Alternate, gatewayWork{}},
	dueSession:        {decide.Alternate, sessionWork{}},
	duePosting:        {decide.Alternate, postingWork{}},
	dueExpiry:         {decide.Alternate, expiryWork{}},
}

// dueEntry is work that becomes due at a time.
type dueEntry struct {
	time       scalar.Time
	arrival    int64       // orders entries of one time and kind
	order      *resting    // of an expiry, or of a trigger that was set aside
	instrument *instrument // of a stale guard, funding, triggers, or the insurance fund's order
	account    *account    // of a dead-man switch or a liquidation
	session    *session    // that has ended
	gateway    *gateway
	task       *task
	instant    *instant // of postings
	place      int      // in the heap; -1 when not in it
	kind       dueKind
}

// name identifies the entry in events.
func (e *dueEntry) name() string {
	w := dueTable[e.kind]
	return string(w.work(e)) + "/" + w.subject(e)
}

// agenda is all that will be due: nothing that alternates with clients is done while something blocks them. Of what
// alternates, the times of orders stand on a list of their own, so that whoever asks which orders are past theirs need not
// look at anything else that is due.
type agenda struct {
	blocking    dueList
	alternating dueList // without expiries
	expiries    dueList
	arrived     int64 // entries so far
}

// list returns the list that an entry belongs on.
func (a *agenda) list(e *dueEntry) *dueList {
	switch {
	case dueTable[e.kind].urgency == decide.Blocking:
		return &a.blocking
	case e.kind == dueExpiry:
		return &a.expiries
	}
	return &a.alternating
}

// lists are all of them.
func (a *agenda) lists() [3]*dueList { return [...]*dueList{&a.blocking, &a.alternating, &a.expiries} }

// all returns everything on the lists, in no order.
func (a *agenda) all() []*dueEntry {
	return slices.Concat(a.blocking.heap, a.alternating.heap, a.expiries.heap)
}

// push puts a new entry on its list, behind all of its time and kind.
func (a *agenda) push(e *dueEntry) {
	a.arrived++
	e.arrival = a.arrived
	a.list(e).push(e)
}

// remove takes an entry off its list, if it is on it.
func (a *agenda) remove(e *dueEntry) { a.list(e).remove(e) }

// first returns the entries that the next step is about, at most n; none if nothing is due.
func (a *agenda) first(n int, now scalar.Time) []*dueEntry {
	if entries := a.blocking.first(n, now); len(entries) > 0 {
		return entries
	}
	list, other := &a.alternating, &a.expiries
	if len(list.heap) == 0 || len(other.heap) > 0 && other.heap[0].compare(list.heap[0]) < 0 {
		list, other = other, list
	}
	entries := list.first(n, now)
	if len(other.heap) > 0 { // what comes after the first of the other list is for the step after that
		next := other.heap[0]
		if at := slices.IndexFunc(entries, func(e *dueEntry) bool { return e.compare(next) > 0 }); at >= 0 {
			entries = entries[:at]
		}
	}
	return entries
}

// Due says whether work is due, and how it stands against what clients ask for. It implements decide.State.
func (s *State) Due(now scalar.Time) decide.Urgency {
	if first, ok := s.due.blocking.next(); ok && first <= now {
		return decide.Blocking
	}
	for _, l := range [...]*dueList{&s.due.alternating, &s.due.expiries} {
		if first, ok := l.next(); ok && first <= now {
			return decide.Alternate
		}
	}
	return decide.Nothing
}

// NextDue returns when the next work is due. It implements decide.State.
func (s *State) NextDue() (at scalar.Time, ok bool) {
	for _, l := range s.due.lists() {
		if first, some := l.next(); some && (!ok || first < at) {
			at, ok = first, true
		}
	}
	return at, ok
}

// Step decides the next piece of due work. It implements decide.State.
func (s *State) Step(at decide.Stamp, single bool) decide.Decision {
	entries := s.nextDue(s.most(single), at.Time)
	if len(entries) == 0 {
		return decide.Decision{}
	}
	return s.asOfRules(dueTable[entries[0].kind].step(s, at, entries, single))
}

// nextDue returns the entries that the next step is about, at most n; none if nothing is due. What is done at a price
// waits for the guards against old ones, though it may have been due before: nobody came to it while the price was fresh.
func (s *State) nextDue(n int, now scalar.Time) []*dueEntry {
	entries := s.due.first(n, now)
	if len(entries) == 0 || entries[0].kind < dueTrigger || entries[0].kind > dueInsurance {
		return entries
	}
	var guards []*dueEntry
	for _, i := range s.listing {
		if g := i.guard; g != nil && g.place >= 0 && g.time <= now {
			guards = append(guards, g)
		}
	}
	if len(guards) == 0 {
		return entries
	}
	slices.SortFunc(guards, (*dueEntry).compare)
	return guards[:min(n, len(guards))]
}

// most is how many orders, besides those that trade, a step may change.
func (s *State) most(single bool) int {
	if single {
		return 1
	}
	return s.limit.others
}

// stepped is the decision of a step's record.
func stepped(w Work, events ...decide.Event) decide.Decision {
	return decide.Decision{Outcome: decide.Accepted, Events: append([]decide.Event{&Step{Work: w}}, events...)}
}

// SetAside decides the event that takes the next due entry off the list. It implements decide.State.
func (s *State) SetAside(at decide.Stamp, cause string) decide.Decision {
	entries := s.nextDue(1, at.Time)
	if len(entries) == 0 {
		return decide.Decision{}
	}
	return stepped(WorkSetAside, &decide.DueSetAside{Entry: entries[0].name(), Error: cause})
}

// setAside applies the event.
func (s *State) setAside(name, cause string) {
	for _, l := range s.due.lists() {
		if n := slices.IndexFunc(l.heap, func(e *dueEntry) bool { return e.name() == name }); n >= 0 {
			e := l.heap[n]
			if e.kind == dueTrigger { // of many stops one
				e = s.holdStop(e)
			} else {
				l.remove(e)
			}
			s.aside = append(s.aside, asideEntry{e, cause})
			if e.task == s.running {
				s.running = nil
			}
			return
		}
	}
}

// asideEntry is due work that was set aside, and why.
type asideEntry struct {
	*dueEntry
	cause string
}

// putBack applies the event that puts it back. The entry is due as it was, at its own time and place.
func (s *State) putBack(name string) {
	n := slices.IndexFunc(s.aside, func(e asideEntry) bool { return e.name() == name })
	if n < 0 {
		return
	}
	e := s.aside[n].dueEntry
	s.aside = slices.Delete(s.aside, n, n+1)
	if e.kind == dueTrigger {
		s.putBackStop(e)
		return
	}
	s.due.list(e).push(e)
	switch e.kind {
	case dueTask:
		s.running = e.task
	case dueLiquidation: // what it waits for may have come and gone meanwhile
		s.schedule(e.account)
	}
}

// cancelEntry takes an entry off its list, or from what was set aside.
func (s *State) cancelEntry(e *dueEntry) {
	if e == nil {
		return
	}
	s.due.remove(e)
	if n := slices.IndexFunc(s.aside, func(a asideEntry) bool { return a.dueEntry == e }); n >= 0 {
		s.aside = slices.Delete(s.aside, n, n+1)
	}
}
