// Package schedule is a queue of work that becomes due at certain times. Entries are in the order of time, then of kind,
// then of a tie breaker, for example their arrival. The order is total, so queues with the same entries
// return them in the same order.
package schedule

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/heap"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Kind is a kind of work. Of the work that becomes due at the same time, lower kinds come first.
type Kind uint8

// Slot is the part of an entry that a queue needs. Entries embed it. Time and Kind MUST NOT change while the entry is in
// a queue. The zero Slot is in no queue.
type Slot struct {
	Time   scalar.Time // when the work is due
	Kind   Kind
	number int32 // 1 + the index in the queue, or 0 if the entry is in no queue
}

// At returns the slot of an entry with this time and kind.
func At(due scalar.Time, kind Kind) Slot { return Slot{Time: due, Kind: kind} }

// Queued reports whether the entry is in a queue.
func (s *Slot) Queued() bool { return s.number > 0 }

func (s *Slot) slot() *Slot { return s }

// Entry is a pointer to a struct that embeds a Slot.
type Entry[E any] interface {
	comparable
	// Tie compares the entry with another one of the same time and kind. It returns 0 only for the entry itself.
	Tie(E) int
	slot() *Slot
}

// Compare compares two entries in the order of a queue.
func Compare[E Entry[E]](a, b E) int {
	x, y := a.slot(), b.slot()
	switch {
	case x.Time != y.Time:
		return cmp.Compare(x.Time, y.Time)
	case x.Kind != y.Kind:
		return cmp.Compare(x.Kind, y.Kind)
	}
	return a.Tie(b)
}

type order[E Entry[E]] struct{}

func (order[E]) Before(a, b E) bool   { return Compare(a, b) < 0 }
func (order[E]) Moved(e E, index int) { e.slot().number = int32(index) + 1 }

// Queue is a priority queue of work. The zero Queue is empty. It is not safe for concurrent use.
type Queue[E Entry[E]] struct{ heap heap.Heap[E, order[E]] }

// Push adds an entry that is in no queue.
func (q *Queue[E]) Push(e E) { q.heap.Push(e) }

// Append adds an entry of a saved state. After the last call, Restore MUST be called. In between, only Remove may be
// called.
func (q *Queue[E]) Append(e E) { q.heap.Append(e) }

// Restore makes the queue ready after calls to Append.
func (q *Queue[E]) Restore() { q.heap.Restore() }

// Remove removes an entry, if it is in the queue. It MUST NOT be in another one.
func (q *Queue[E]) Remove(e E) {
	if s := e.slot(); s.Queued() {
		q.heap.Remove(int(s.number) - 1)
		s.number = 0
	}
}

// First returns the first entry, or false if the queue is empty.
func (q *Queue[E]) First() (E, bool) { return q.heap.First() }

// Next returns when the first entry is due, or false if the queue is empty.
func (q *Queue[E]) Next() (scalar.Time, bool) {
	if first, ok := q.heap.First(); ok {
		return first.slot().Time, true
	}
	return 0, false
}

// Entries returns all entries in no particular order. The caller MUST NOT change the slice, and MUST NOT use it after the
// next change of the queue.
func (q *Queue[E]) Entries() []E { return q.heap.Entries() }

// Sorted returns all entries in their order.
func (q *Queue[E]) Sorted() []E {
	return slices.SortedFunc(slices.Values(q.heap.Entries()), Compare[E])
}

// Batch returns, in order and without removing them, at most n entries that are due at now and of the same kind as the
// first.
func (q *Queue[E]) Batch(n int, now scalar.Time) []E {
	var batch []E
	for e := range q.heap.InOrder() {
		if s := e.slot(); len(batch) == n || s.Time > now || len(batch) > 0 && s.Kind != batch[0].slot().Kind {
			break
		}
		batch = append(batch, e)
	}
	return batch
}

// EachDue calls take with the entries that are due at now, in no particular order. It stops and returns false if there are
// more than most entries.
func (q *Queue[E]) EachDue(now scalar.Time, most int, take func(E)) bool {
	q.heap.Descend(func(e E) bool {
		if most < 0 || e.slot().Time > now {
			return false
		}
		if most--; most < 0 {
			return false
		}
		take(e)
		return true
	})
	return most >= 0
}
