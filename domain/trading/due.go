package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// The kinds of due work. Kinds that are due at the same time are done in this order: first those that block clients, as
// the rules of the venue order them, then those that alternate with client commands.
const (
	dueTask schedule.Kind = iota // the rest of a command's work, which was due before anything that became due since
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

	dueKinds // number of kinds
)

// dueHandler does one kind of due work. Each kind has a file: due_task.go, due_expiry.go and so on.
type dueHandler interface {
	// work returns the kind of work that steps and entry names state.
	work(e *dueEntry) Work
	// subject returns what an entry is about: an order, a customer or a command, for example. The work and the subject
	// together are the entry's name.
	subject(e *dueEntry) string
	// step decides the next record. entries holds at least one entry and no more than a record holds; all are due, of
	// this kind and in order. With single set there is one entry, and the step may do no more than one order or fill of
	// it.
	step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision
	// visit visits the identity of an entry that was set aside, and returns the entry. While reading, e is new, and nil
	// is returned if the entry cannot exist.
	visit(v *visit, e *dueEntry) *dueEntry
}

// aboutInstrument has the methods of a dueHandler for work of which each instrument has at most one entry.
type aboutInstrument struct {
	kind    Work
	entryOf func(*instrument) *dueEntry
}

func (w aboutInstrument) work(*dueEntry) Work      { return w.kind }
func (aboutInstrument) subject(e *dueEntry) string { return e.instrument.contract.Symbol }
func (w aboutInstrument) visit(v *visit, e *dueEntry) *dueEntry {
	if v.instrumentRef(&e.instrument); e.instrument == nil {
		return nil
	}
	return w.entryOf(e.instrument)
}

// aboutAccount has the methods of a dueHandler for work of which each customer has at most one entry.
type aboutAccount struct {
	kind    Work
	entryOf func(*account) *dueEntry
}

func (w aboutAccount) work(*dueEntry) Work      { return w.kind }
func (aboutAccount) subject(e *dueEntry) string { return e.account.code }
func (w aboutAccount) visit(v *visit, e *dueEntry) *dueEntry {
	if v.customerRef(&e.account); e.account == nil {
		return nil
	}
	return w.entryOf(e.account)
}

// dueTable has the handler of every kind of due work, and whether it blocks client commands or alternates with them.
var dueTable = [dueKinds]struct {
	urgency decide.Urgency
	dueHandler
}{
	dueTask:           {decide.Blocking, taskWork{}},
	dueStaleGuard:     {decide.Blocking, staleGuardWork{aboutInstrument{WorkStaleGuard, func(i *instrument) *dueEntry { return i.guard }}}},
	dueFunding:        {decide.Blocking, fundingWork{aboutInstrument{WorkFunding, func(i *instrument) *dueEntry { return i.funding }}}},
	dueSettlement:     {decide.Blocking, settlementWork{}},
	dueTrigger:        {decide.Blocking, triggerWork{}},
	dueLiquidation:    {decide.Blocking, liquidationWork{aboutAccount{WorkLiquidation, func(a *account) *dueEntry { return a.failing }}}},
	dueInsurance:      {decide.Blocking, insuranceWork{aboutInstrument{WorkInsuranceOrder, func(i *instrument) *dueEntry { return i.fundMoves }}}},
	dueCancelAllAfter: {decide.Alternate, cancelAllAfterWork{aboutAccount{WorkCancelAllAfter, func(a *account) *dueEntry { return a.cancelAllAfter }}}},
	dueGateway:        {decide.Alternate, gatewayWork{}},
	dueSession:        {decide.Alternate, sessionWork{}},
	duePosting:        {decide.Alternate, postingWork{}},
	dueExpiry:         {decide.Alternate, expiryWork{}},
}

// dueEntry is work that becomes due at a certain time.
type dueEntry struct {
	schedule.Slot
	arrival    int64       // number of the entry, which orders entries of the same time and kind
	order      *resting    // for an expiry, or for a trigger that was set aside
	instrument *instrument // for a stale guard, funding, triggers, or the insurance fund's order
	account    *account    // for a dead man's switch or a liquidation
	session    *session    // for a session that has ended
	gateway    *gateway
	task       *task
	instant    *charge // for postings
}

// Tie implements schedule.Entry.
func (e *dueEntry) Tie(o *dueEntry) int { return cmp.Compare(e.arrival, o.arrival) }

// name returns the name of the entry in events.
func (e *dueEntry) name() string {
	w := dueTable[e.Kind]
	return string(w.work(e)) + "/" + w.subject(e)
}

// dueList is a queue of due work.
type dueList = schedule.Queue[*dueEntry]

// agenda holds all future and due work. A task comes before everything else: it continues an earlier record, so work that
// was already due before that record waits for its end. Work that alternates with clients waits while blocking work is
// due. Expiries have a separate list, so that a search for expired orders looks at nothing else.
type agenda struct {
	tasks       dueList
	blocking    dueList // without tasks
	alternating dueList // without expiries
	expiries    dueList
	arrived     int64 // entries that were pushed so far
}

// list returns the list for an entry.
func (a *agenda) list(e *dueEntry) *dueList {
	switch {
	case e.Kind == dueTask:
		return &a.tasks
	case dueTable[e.Kind].urgency == decide.Blocking:
		return &a.blocking
	case e.Kind == dueExpiry:
		return &a.expiries
	}
	return &a.alternating
}

// lists returns the four lists, those of blocking work first.
func (a *agenda) lists() [4]*dueList {
	return [...]*dueList{&a.tasks, &a.blocking, &a.alternating, &a.expiries}
}

// all returns the entries of all lists, in no particular order.
func (a *agenda) all() []*dueEntry {
	return slices.Concat(a.tasks.Entries(), a.blocking.Entries(), a.alternating.Entries(), a.expiries.Entries())
}

// push adds a new entry to its list, after all entries of the same time and kind.
func (a *agenda) push(e *dueEntry) {
	a.arrived++
	e.arrival = a.arrived
	a.list(e).Push(e)
}

// remove removes an entry from its list. It does nothing if the entry is not on the list.
func (a *agenda) remove(e *dueEntry) { a.list(e).Remove(e) }

// first returns the entries for the next step, at most n. It returns none if nothing is due.
func (a *agenda) first(n int, now scalar.Time) []*dueEntry {
	for _, l := range [...]*dueList{&a.tasks, &a.blocking} {
		if entries := l.Batch(n, now); len(entries) > 0 {
			return entries
		}
	}
	first, exists := a.alternating.First()
	expiry, expires := a.expiries.First()
	switch {
	case !expires:
		return a.alternating.Batch(n, now)
	case !exists || schedule.Compare(expiry, first) < 0:
		return before(a.expiries.Batch(n, now), first)
	}
	return before(a.alternating.Batch(n, now), expiry)
}

// before returns the entries that come before another one, or all if there is no other one. The rest is left for a later
// step.
func before(entries []*dueEntry, other *dueEntry) []*dueEntry {
	if at := slices.IndexFunc(entries, func(e *dueEntry) bool { return other != nil && schedule.Compare(e, other) > 0 }); at >= 0 {
		return entries[:at]
	}
	return entries
}

// Due returns whether work is due, and whether it blocks client commands. It implements decide.State.
func (s *State) Due(now scalar.Time) decide.Urgency {
	for _, l := range s.due.lists() {
		if first, ok := l.First(); ok && first.Time <= now {
			return dueTable[first.Kind].urgency
		}
	}
	return decide.Nothing
}

// NextDue returns the earliest time at which work is due. It implements decide.State.
func (s *State) NextDue() (at scalar.Time, ok bool) {
	for _, l := range s.due.lists() {
		if first, exists := l.Next(); exists && (!ok || first < at) {
			at, ok = first, true
		}
	}
	return at, ok
}

// Step decides the record of the next due work. It implements decide.State.
func (s *State) Step(at decide.Stamp, single bool) decide.Decision {
	return s.stepOn(s.nextDue(s.most(single), at.Time), at, single)
}

// stepOn decides the record of these entries' work.
func (s *State) stepOn(entries []*dueEntry, at decide.Stamp, single bool) decide.Decision {
	if len(entries) == 0 {
		return decide.Decision{}
	}
	d := s.asOfRules(dueTable[entries[0].Kind].step(s, at, entries, single))
	if single && s.RecordsInputs() {
		d.Input = decide.EncodeInput(decide.StepInput{Single: true})
	}
	return d
}

// nextDue returns the entries for the next step, at most n. It returns none if nothing is due. Work that trades at a
// price (triggers to insurance orders) waits for all stale guards that are due, even if it was due earlier: it was not
// done while the price was fresh, and must not be done at a stale one.
func (s *State) nextDue(n int, now scalar.Time) []*dueEntry {
	entries := s.due.first(n, now)
	if len(entries) == 0 || entries[0].Kind < dueTrigger || entries[0].Kind > dueInsurance {
		return entries
	}
	var guards []*dueEntry
	for _, i := range s.listing {
		if g := i.guard; g != nil && g.Queued() && g.Time <= now {
			guards = append(guards, g)
		}
	}
	if len(guards) == 0 {
		return entries
	}
	slices.SortFunc(guards, schedule.Compare)
	return guards[:min(n, len(guards))]
}

// most returns how many orders, besides those that trade, a step may change.
func (s *State) most(single bool) int {
	if single {
		return 1
	}
	return s.limit.others
}

// stepped returns the decision on a step's record with these events.
func stepped(w Work, events ...decide.Event) decide.Decision {
	return decide.Decision{Outcome: decide.Accepted, Events: append([]decide.Event{&Step{Work: w}}, events...)}
}

// SetAside decides the event that removes the next due entry from its list. It implements decide.State.
func (s *State) SetAside(at decide.Stamp, cause string) decide.Decision {
	entries := s.nextDue(1, at.Time)
	if len(entries) == 0 {
		return decide.Decision{}
	}
	return stepped(WorkSetAside, &decide.DueSetAside{Entry: entries[0].name(), Error: cause})
}

func (f *fold) dueSetAside(event *decide.DueSetAside) {
	for _, l := range f.due.lists() {
		if n := slices.IndexFunc(l.Entries(), func(e *dueEntry) bool { return e.name() == event.Entry }); n >= 0 {
			e := l.Entries()[n]
			if e.Kind == dueTrigger { // set aside only the next of the instrument's due stops
				e = f.holdStop(e)
			} else {
				l.Remove(e)
			}
			f.aside = append(f.aside, asideEntry{e, event.Error})
			if e.task == f.running {
				f.running = nil
			}
			return
		}
	}
}

// asideEntry is due work that was set aside, with the error.
type asideEntry struct {
	*dueEntry
	cause string
}

// duePutBack returns an entry to its list. The entry keeps its time and its arrival number.
func (f *fold) duePutBack(event *decide.DuePutBack) {
	n := slices.IndexFunc(f.aside, func(e asideEntry) bool { return e.name() == event.Entry })
	if n < 0 {
		return
	}
	e := f.aside[n].dueEntry
	f.aside = slices.Delete(f.aside, n, n+1)
	if e.Kind == dueTrigger {
		f.putBackStop(e)
		return
	}
	f.due.list(e).Push(e)
	switch e.Kind {
	case dueTask:
		f.running = e.task
	case dueLiquidation: // what the liquidation waits for may have changed since
		f.schedule(e.account)
	}
}

// cancelEntry removes an entry from its list and from the entries that were set aside.
func (f *fold) cancelEntry(e *dueEntry) {
	if e == nil {
		return
	}
	f.due.remove(e)
	if n := slices.IndexFunc(f.aside, func(a asideEntry) bool { return a.dueEntry == e }); n >= 0 {
		f.aside = slices.Delete(f.aside, n, n+1)
	}
}
