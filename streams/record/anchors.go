package record

import (
	"cmp"
	"slices"
	"sync"
)

// anchorEvery is the distance between the positions that Anchors keeps, in records.
const anchorEvery = 1024

// Anchors keeps one position of a log per 1,024 records, so that a reader that seeks need not start at the genesis. Its zero
// value is empty. It is safe for concurrent use.
type Anchors struct {
	mu        sync.Mutex
	positions []Position // ascending
}

// Note adds a position if its sequence is a multiple of 1,024 and higher than those that are kept.
func (a *Anchors) Note(p Position) {
	if p.Sequence%anchorEvery != 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.positions); n == 0 || a.positions[n-1].Sequence < p.Sequence {
		a.positions = append(a.positions, p)
	}
}

// Below returns the last kept position with a sequence below the given one, or Before if there is none.
func (a *Anchors) Below(sequence int64) Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearchFunc(a.positions, sequence, func(p Position, n int64) int {
		if p.Sequence < n {
			return -1
		}
		return 1
	})
	if i == 0 {
		return Before
	}
	return a.positions[i-1]
}

// All returns the kept positions in ascending order.
func (a *Anchors) All() []Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.positions)
}

// Fill adds positions of the same log, in ascending order. They may be before, between and after the kept ones.
func (a *Anchors) Fill(more []Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Concat(a.positions, more)
	slices.SortStableFunc(all, func(p, q Position) int { return cmp.Compare(p.Sequence, q.Sequence) })
	a.positions = slices.CompactFunc(all, func(p, q Position) bool { return p.Sequence == q.Sequence })
}

// Contains reports whether a list of positions in ascending order contains p.
func Contains(list []Position, p Position) bool {
	i, found := slices.BinarySearchFunc(list, p.Sequence, func(p Position, n int64) int { return cmp.Compare(p.Sequence, n) })
	return found && list[i].Equal(p)
}
