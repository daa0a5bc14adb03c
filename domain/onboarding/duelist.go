package onboarding

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// dueKind is a kind of due work. At the same time, lower kinds come first.
type dueKind byte

const (
	dueStart    dueKind = iota // start a trigger
	dueDocument                // remind of a document's end of validity
	dueDeadline                // terminate a trigger at its deadline
	dueRotation                // replace a webhook's key by the next one
	dueErase                   // erase an owner at the end of its retention
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
	kind  dueKind
	about scalar.ID
}

func (k dueKey) String() string { return dueNames[k.kind] + "/" + k.about.String() }

type dueEntry struct {
	dueKey
	time  scalar.Time
	place int
	cause string // why it was set aside; such an entry is not on the heap
}

func (e *dueEntry) compare(o *dueEntry) int {
	return cmp.Or(cmp.Compare(e.time, o.time), cmp.Compare(e.kind, o.kind), bytes.Compare(e.about[:], o.about[:]))
}

// dueList contains the scheduled work, and the work that was set aside in the order in which that happened.
type dueList struct {
	heap  dueHeap
	known map[dueKey]*dueEntry // all entries, scheduled or set aside
	aside []*dueEntry
}

func newDueList() dueList { return dueList{known: make(map[dueKey]*dueEntry)} }

// dueHeap is a binary heap for package heap. The order of entries is total, so equal lists are processed in the same
// order.
type dueHeap []*dueEntry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *dueHeap) Push(e any) {
	entry := e.(*dueEntry)
	entry.place = len(*h)
	*h = append(*h, entry)
}

// Pop implements heap.Interface.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}

// set schedules work, or moves it to another time. Work that was set aside is scheduled again.
func (l *dueList) set(k dueKey, at scalar.Time) {
	l.drop(k)
	e := &dueEntry{dueKey: k, time: at}
	l.known[k] = e
	heap.Push(&l.heap, e)
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
	heap.Remove(&l.heap, e.place)
}

// first returns the next entry if it is due, or nil.
func (l *dueList) first(now scalar.Time) *dueEntry {
	if len(l.heap) == 0 || l.heap[0].time > now {
		return nil
	}
	return l.heap[0]
}

// restore adds an entry of a snapshot.
func (l *dueList) restore(e *dueEntry, aside bool) {
	l.known[e.dueKey] = e
	if aside {
		l.aside = append(l.aside, e)
		return
	}
	heap.Push(&l.heap, e)
}

func (l *dueList) setAside(name, cause string) {
	n := slices.IndexFunc(l.heap, func(e *dueEntry) bool { return e.String() == name })
	if n < 0 {
		return
	}
	e := heap.Remove(&l.heap, n).(*dueEntry)
	e.cause = cause
	l.aside = append(l.aside, e)
}

func (l *dueList) putBack(name string) {
	n := slices.IndexFunc(l.aside, func(e *dueEntry) bool { return e.String() == name })
	if n < 0 {
		return
	}
	e := l.aside[n]
	l.aside = slices.Delete(l.aside, n, n+1)
	e.cause = ""
	heap.Push(&l.heap, e)
}

func (e *dueEntry) shown() decide.DueEntry {
	return decide.DueEntry{Entry: e.String(), Time: e.time, Urgency: decide.Alternate, Error: e.cause}
}

// Due reports whether work is due. All work of this journal alternates with commands. It implements decide.State.
func (s *State) Due(now scalar.Time) decide.Urgency {
	if s.due.first(now) == nil {
		return decide.Nothing
	}
	return decide.Alternate
}

// NextDue returns the time of the next work. It implements decide.State.
func (s *State) NextDue() (scalar.Time, bool) {
	if len(s.due.heap) == 0 {
		return 0, false
	}
	return s.due.heap[0].time, true
}

// SetAside decides to set the next work aside. It implements decide.State.
func (s *State) SetAside(at decide.Stamp, cause string) decide.Decision {
	e := s.due.first(at.Time)
	if e == nil {
		return decide.Decision{}
	}
	return decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&Step{Work: workSetAside}, &decide.DueSetAside{Entry: e.String(), Error: cause}}}
}

// DueEntries skips the first entries and returns up to n of the following ones. It implements decide.Agenda.
func (s *State) DueEntries(first, n int) (entries []decide.DueEntry, total int) {
	sorted := slices.SortedFunc(slices.Values(s.due.heap), (*dueEntry).compare)
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
