package onboarding

import (
	"bytes"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// The kinds of due work. At the same time, lower kinds come first.
const (
	dueStart    schedule.Kind = iota // start a trigger
	dueDocument                      // remind of a document's end of validity
	dueDeadline                      // terminate a trigger at its deadline
	dueRotation                      // replace a webhook's key by the next one
	dueErase                         // erase an owner at the end of its retention
)

var dueNames = [...]string{dueStart: "trigger_start", dueDocument: "document_expiring", dueDeadline: "trigger_deadline",
	dueRotation: "webhook_rotation", dueErase: "owner_erase"}

// workSetAside is the Work of the step that sets due work aside.
const workSetAside = "set_aside"

// Step is the first event of every record that the engine writes for due work.
type Step struct {
	Work string `json:"work"` // the kind of due work
}

// EventType returns "engine.step".
func (*Step) EventType() string { return "engine.step" }

// dueKey identifies due work. The list has at most one entry for a kind and a subject.
type dueKey struct {
	kind  schedule.Kind
	about scalar.ID
}

func (k dueKey) String() string { return dueNames[k.kind] + "/" + k.about.String() }

type dueEntry struct {
	schedule.Slot
	about scalar.ID
	cause string // why it was set aside; such an entry is not in the queue
}

func (e *dueEntry) key() dueKey { return dueKey{e.Kind, e.about} }

// Tie implements schedule.Entry.
func (e *dueEntry) Tie(o *dueEntry) int { return bytes.Compare(e.about[:], o.about[:]) }

// dueList contains the scheduled work, and the work that was set aside in the order in which that happened.
type dueList struct {
	queue schedule.Queue[*dueEntry]
	known map[dueKey]*dueEntry // all entries, scheduled or set aside
	aside []*dueEntry
}

func newDueList() dueList { return dueList{known: make(map[dueKey]*dueEntry)} }

// set schedules work, or moves it to another time. Work that was set aside is scheduled again.
func (l *dueList) set(k dueKey, at scalar.Time) {
	l.drop(k)
	e := &dueEntry{Slot: schedule.At(at, k.kind), about: k.about}
	l.known[k] = e
	l.queue.Push(e)
}

// drop removes work from the list, whether it is scheduled or set aside.
func (l *dueList) drop(k dueKey) {
	e, known := l.known[k]
	if !known {
		return
	}
	delete(l.known, k)
	if n := slices.Index(l.aside, e); n >= 0 {
		l.aside = slices.Delete(l.aside, n, n+1)
		return
	}
	l.queue.Remove(e)
}

// first returns the next entry if it is due, or nil.
func (l *dueList) first(now scalar.Time) *dueEntry {
	if e, ok := l.queue.First(); ok && e.Time <= now {
		return e
	}
	return nil
}

// restore adds an entry of a snapshot.
func (l *dueList) restore(e *dueEntry, aside bool) {
	l.known[e.key()] = e
	if aside {
		l.aside = append(l.aside, e)
		return
	}
	l.queue.Push(e)
}

func (l *dueList) setAside(name, cause string) {
	n := slices.IndexFunc(l.queue.Entries(), func(e *dueEntry) bool { return e.key().String() == name })
	if n < 0 {
		return
	}
	e := l.queue.Entries()[n]
	l.queue.Remove(e)
	e.cause = cause
	l.aside = append(l.aside, e)
}

func (l *dueList) putBack(name string) {
	n := slices.IndexFunc(l.aside, func(e *dueEntry) bool { return e.key().String() == name })
	if n < 0 {
		return
	}
	e := l.aside[n]
	l.aside = slices.Delete(l.aside, n, n+1)
	e.cause = ""
	l.queue.Push(e)
}

func (e *dueEntry) shown() decide.DueEntry {
	return decide.DueEntry{Entry: e.key().String(), Time: e.Time, Urgency: decide.Alternate, Error: e.cause}
}

// Due reports whether work is due. All work of this journal alternates with commands. It implements decide.State.
func (s *State) Due(now scalar.Time) decide.Urgency {
	if s.due.first(now) == nil {
		return decide.Nothing
	}
	return decide.Alternate
}

// NextDue returns the time of the next work. It implements decide.State.
func (s *State) NextDue() (scalar.Time, bool) { return s.due.queue.Next() }

// SetAside decides to set the next work aside. It implements decide.State.
func (s *State) SetAside(at decide.Stamp, cause string) decide.Decision {
	e := s.due.first(at.Time)
	if e == nil {
		return decide.Decision{}
	}
	return decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&Step{Work: workSetAside}, &decide.DueSetAside{Entry: e.key().String(), Error: cause}}}
}

// DueEntries skips the first entries and returns up to n of the following ones. It implements decide.Agenda.
func (s *State) DueEntries(first, n int) (entries []decide.DueEntry, total int) {
	sorted := s.due.queue.Sorted()
	total = len(sorted)
	for _, e := range sorted[min(first, total):min(first+n, total)] {
		entries = append(entries, e.shown())
	}
	return entries, total
}

// SetAsideEntries returns the entries that failed and were set aside. It implements decide.Agenda.
func (s *State) SetAsideEntries() []decide.DueEntry {
	var out []decide.DueEntry
	for _, e := range s.due.aside {
		out = append(out, e.shown())
	}
	return out
}

// NamesDueWork reports whether an entry of the due list may have this name. It implements decide.Agenda.
func (s *State) NamesDueWork(entry string) bool {
	kind, _, ok := strings.Cut(entry, "/")
	return ok && slices.Contains(dueNames[:], kind)
}
