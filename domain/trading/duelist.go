package trading

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// compare orders entries: a task before all else, then by time, at one time by kind, of one kind by arrival. A task goes
// on from where a record left it, and what was due before that record is for after its end.
func (e *dueEntry) compare(o *dueEntry) int {
	return cmp.Or(cmp.Compare(min(e.kind, dueTask+1), min(o.kind, dueTask+1)), cmp.Compare(e.time, o.time), cmp.Compare(e.kind, o.kind), cmp.Compare(e.arrival, o.arrival))
}

// dueList is what will be due, as a binary heap in which every entry knows its place.
type dueList struct{ heap []*dueEntry }

// next returns when the first entry is due.
func (l *dueList) next() (scalar.Time, bool) {
	if len(l.heap) == 0 {
		return 0, false
	}
	return l.heap[0].time, true
}

// push puts an entry on the list.
func (l *dueList) push(e *dueEntry) {
	e.place = len(l.heap)
	l.heap = append(l.heap, e)
	l.up(e.place)
}

// remove takes an entry off the list, if it is on it.
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

// first returns, in order, the first n entries that are due at a time and of the kind of the first, without taking
// them off the list.
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

// each passes the entries that are due at a time, one before those below it in the heap, and reports whether these were
// all: it ends when there are more than so many.
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
		for i > 0 && i%2 == 0 { // from the right child up
			i = (i - 1) / 2
		}
		if i == 0 {
			return true
		}
		i++ // from the left child to the right one
	}
}
