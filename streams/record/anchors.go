package record

import (
	"cmp"
	"slices"
	"sync"
)

// anchorEvery is how far apart the positions are that Anchors keeps.
const anchorEvery = 1024

// Anchors keeps positions of a log at intervals, so that a seek doesn't begin at genesis. It is safe for concurrent
// use; the zero Anchors is empty.
type Anchors struct {
	mu   sync.Mutex
	kept []Position // ascending
}

// Note takes a position into account, in ascending order. Most are not kept.
func (a *Anchors) Note(p Position) {
	if p.Sequence%anchorEvery != 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.kept); n == 0 || a.kept[n-1].Sequence < p.Sequence {
		a.kept = append(a.kept, p)
	}
}

// Below returns the nearest position before a sequence: Before if none is kept.
func (a *Anchors) Below(sequence int64) Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, _ := slices.BinarySearchFunc(a.kept, sequence, func(p Position, n int64) int {
		if p.Sequence < n {
			return -1
		}
		return 1
	})
	if i == 0 {
		return Before
	}
	return a.kept[i-1]
}

// All returns the positions that are kept, in order.
func (a *Anchors) All() []Position {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.kept)
}

// Fill adds positions of the same log, in order, wherever they lie.
func (a *Anchors) Fill(more []Position) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := slices.Concat(a.kept, more)
	slices.SortStableFunc(all, func(p, q Position) int { return cmp.Compare(p.Sequence, q.Sequence) })
	a.kept = slices.CompactFunc(all, func(p, q Position) bool { return p.Sequence == q.Sequence })
}

// among reports whether a position is one of those in a list, which is in order.
func Among(list []Position, p Position) bool {
	i, found := slices.BinarySearchFunc(list, p.Sequence, func(p Position, n int64) int { return cmp.Compare(p.Sequence, n) })
	return found && list[i].Equal(p)
}
