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

// dueKind is a kind of due work. At one time the lower ones come first.
type dueKind byte

const (
	dueStart    dueKind = iota // a trigger was created
	dueDocument                // the end of a document draws near
	dueDeadline                // a trigger was open for as long as it may be
	dueRotation                // the next key of a webhook takes the old one's place
	dueErase                   // an owner was kept for as long as it has to be
)

var dueNames = [...]string{dueStart: "trigger_start", dueDocument: "document_expiring", dueDeadline: "trigger_deadline",
	dueRotation: "webhook_rotation", dueErase: "owner_erase"}

// workSetAside is no due work: some is taken off the list.
const workSetAside = "set_aside"

// Step opens every record that the engine writes for due work.
type Step struct {
	Work string `json:"work"` // its kind
}

// EventType returns "engine.step".
func (*Step) EventType() string { return "engine.step" }

// dueKey names due work: there is one entry of a kind about one thing.
type dueKey struct {
	kind  dueKind
	about scalar.ID
}

func (k dueKey) String() string { return dueNames[k.kind] + "/" + k.about.String() }

type dueEntry struct {
	dueKey
	time  scalar.Time
	place int
	cause string // why it was set aside; then it is not on the heap
}

func (e *dueEntry) compare(o *dueEntry) int {
	return cmp.Or(cmp.Compare(e.time, o.time), cmp.Compare(e.kind, o.kind), bytes.Compare(e.about[:], o.about[:]))
}

// dueList is what will be due, and what was set aside, in the order in which that happened.
type dueList struct {
	heap  dueHeap
	known map[dueKey]*dueEntry // all of them
	aside []*dueEntry
}

func newDueList() dueList { return dueList{known: make(map[dueKey]*dueEntry)} }

// dueHeap is a binary heap for package heap; the order of entries is total, so equal lists are drained alike.
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

// set puts work on the list, or at another time, also if it was set aside.
func (l *dueList) set(k dueKey, at scalar.Time) {
	l.drop(k)
	e := &dueEntry{dueKey: k, time: at}
	l.known[k] = e
	heap.Push(&l.heap, e)
}

// drop takes work off the list, if it is on it or was set aside.
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

// first returns the next entry if it is due.
func (l *dueList) first(now scalar.Time) *dueEntry {
	if len(l.heap) == 0 || l.heap[0].time > now {
		return nil
	}
	return l.heap[0]
}

// restore puts back an entry that was saved.
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

// Due says whether something is due. All work of this journal alternates with commands. It implements decide.State.
func (s *State) Due(now scalar.Time) decide.Urgency {
	if s.due.first(now) == nil {
		return decide.Nothing
	}
	return decide.Alternate
}

// NextDue returns when the next work is due. It implements decide.State.
func (s *State) NextDue() (scalar.Time, bool) {
	if len(s.due.heap) == 0 {
		return 0, false
	}
	return s.due.heap[0].time, true
}

// SetAside decides that the next work is set aside. It implements decide.State.
func (s *State) SetAside(at decide.Stamp, cause string) decide.Decision {
	e := s.due.first(at.Time)
	if e == nil {
		return decide.Decision{}
	}
	return decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&Step{Work: workSetAside}, &decide.DueSetAside{Entry: e.String(), Error: cause}}}
}

// DueEntries returns up to n entries, the first ones left out. It implements decide.Agenda.
func (s *State) DueEntries(first, n int) (entries []decide.DueEntry, total int) {
	sorted := slices.SortedFunc(slices.Values(s.due.heap), (*dueEntry).compare)
	total = len(sorted)
	for _, e := range sorted[min(first, total):min(first+n, total)] {
		entries = append(entries, e.shown())
	}
	return entries, total
}

// SetAsideEntries returns what failed and waits to be put back. It implements decide.Agenda.
func (s *State) SetAsideEntries() []decide.DueEntry {
	var out []decide.DueEntry
	for _, e := range s.due.aside {
		out = append(out, e.shown())
	}
	return out
}

// NamesDueWork reports whether a name is one of an entry's of the due list. It implements decide.Agenda.
func (s *State) NamesDueWork(entry string) bool {
	kind, _, ok := strings.Cut(entry, "/")
	return ok && slices.Contains(dueNames[:], kind)
}
