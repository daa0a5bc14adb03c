package columns

import (
	"runtime"
	"time"
)

const (
	// yieldEvery is the number of values after which an encoder may let other goroutines run. A chunk takes seconds, and an owner
	// on the same processors decides orders in microseconds.
	yieldEvery = 16
	// longestTurn limits the time for which an encoder does not yield. The scheduler preempts other goroutines after as long.
	longestTurn = 10 * time.Millisecond
)

// turns lets other goroutines run while an encoder works. On an idle processor a yield takes no time, and turns yields whenever it
// is asked to. If all processors are busy, a yield takes as long as the other goroutines work. So after a yield the encoder works
// for as long as the yield took, up to longestTurn. Otherwise it would get a hundredth of a busy node, and never finish a range.
type turns struct {
	now   func() time.Time
	yield func()
	until time.Time // no yield before
}

func newTurns() turns { return turns{now: time.Now, yield: runtime.Gosched} }

// value yields before value i of a pass if that is due.
func (t *turns) value(i int) {
	if i%yieldEvery != 0 {
		return
	}
	from := t.now()
	if from.Before(t.until) {
		return
	}
	t.yield()
	back := t.now()
	t.until = back.Add(min(back.Sub(from), longestTurn))
}
