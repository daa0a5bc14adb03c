package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// compare orders entries: a task first, then by time, then by kind, then by arrival. A task continues an earlier
// record, so work that was already due before that record waits for the end of the task.
func (e *dueEntry) compare(o *dueEntry) int {
	return cmp.Or(cmp.Compare(min(e.kind, dueTask+1), min(o.kind, dueTask+1)), cmp.Compare(e.time, o.time), cmp.Compare(e.kind, o.kind), cmp.Compare(e.arrival, o.arrival))
}

// dueList is a priority queue of future and due work. It is a binary heap; every entry has its index.
type dueList struct{ heap []*dueEntry }

// next returns when the first entry is due.
func (l *dueList) next() (scalar.Time, bool) {
	if len(l.heap) == 0 {
		return 0, false
	}
	return l.heap[0].time, true
}

// push adds an entry.
func (l *dueList) push(e *dueEntry) {
	e.place = len(l.heap)
	l.heap = append(l.heap, e)
	l.up(e.place)
}

// remove removes an entry, if it is on the list.
func (l *dueList) remove(e *dueEntry) {
	i, last := e.place, len(l.heap)-1
	if i < 0 {
		return
	}
	l.put(i, l.heap[last])
	l.heap[last] = nil
	l.heap = l.heap[:last]
	e.place = -1
	if i < last {
		l.down(i)
		l.up(i)
	}
}

func (l *dueList) put(i int, e *dueEntry) {
	l.heap[i] = e
	e.place = i
}

func (l *dueList) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if l.heap[i].compare(l.heap[parent]) >= 0 {
			return
		}
		l.swap(i, parent)
		i = parent
	}
}

func (l *dueList) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(l.heap) && l.heap[child].compare(l.heap[least]) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		l.swap(i, least)
		i = least
	}
}

func (l *dueList) swap(i, j int) {
	a, b := l.heap[i], l.heap[j]
	l.put(i, b)
	l.put(j, a)
}

// first returns, in order and without removing them, at most n entries that are due at now and of the same kind as the
// first.
func (l *dueList) first(n int, now scalar.Time) []*dueEntry {
	var out []*dueEntry
	if len(l.heap) == 0 {
		return nil
	}
	// The next entry is always among the children of those taken.
	candidates := []*dueEntry{l.heap[0]}
	for len(candidates) > 0 && len(out) < n {
		e := slices.MinFunc(candidates, (*dueEntry).compare)
		if e.time > now || len(out) > 0 && e.kind != out[0].kind {
			break
		}
		out = append(out, e)
		at := slices.Index(candidates, e)
		candidates = slices.Delete(candidates, at, at+1)
		for _, child := range [2]int{2*e.place + 1, 2*e.place + 2} {
			if child < len(l.heap) {
				candidates = append(candidates, l.heap[child])
			}
		}
	}
	return out
}

// each calls take with the entries that are due at now, every parent in the heap before its children. It stops and
// returns false if there are more than most entries.
func (l *dueList) each(now scalar.Time, most int, take func(*dueEntry)) bool {
	for i := 0; ; {
		if i < len(l.heap) && l.heap[i].time <= now {
			if most--; most < 0 {
				return false
			}
			take(l.heap[i])
			i = 2*i + 1
			continue
		}
		for i > 0 && i%2 == 0 { // up from right children
			i = (i - 1) / 2
		}
		if i == 0 {
			return true
		}
		i++ // from the left child to the right one
	}
}
