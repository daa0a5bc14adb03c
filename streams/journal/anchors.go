package journal

import (
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
