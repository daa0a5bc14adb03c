package columns

import (
	"runtime"
	"time"
)

const (
	// longestTurn limits the time for which an encoder does not yield. The scheduler preempts other goroutines after as long.
	longestTurn = 10 * time.Millisecond
	// immediate is the duration of a yield for which no other goroutine waited.
	immediate = 2 * time.Microsecond
)

// turns lets other goroutines run while an encoder works: a chunk takes seconds, and an owner on the same processors decides orders
// in microseconds. On an idle processor a yield takes no time, and the encoder works on. If all processors are busy, a yield takes
// as long as the other goroutines work. The encoder then yields until they have worked 1/share times as long as it has, in turns of
// at most longestTurn.
type turns struct {
	now    func() time.Time
	yield  func()
	share  float64
	began  time.Time     // of the turn
	credit time.Duration // time for which the encoder may work before it yields
}

func newTurns(share float64) turns {
	return turns{now: time.Now, yield: runtime.Gosched, share: share, began: time.Now()}
}

// value yields before the next value of a pass if that is due.
func (t *turns) value() {
	from := t.now()
	t.credit -= min(from.Sub(t.began), longestTurn) // more is time that another process took
	for t.began = from; t.credit <= 0; {
		t.yield()
		back := t.now()
		waited := back.Sub(t.began)
		t.began = back
		if waited < immediate {
			t.credit = 0
			return
		}
		t.credit = min(t.credit+time.Duration(float64(waited)*t.share), longestTurn)
	}
}
