package blob

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestABlobIsReadForAsLongAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		n, err := ask(t.Context(), newLine(), Patience, func(_ context.Context, alive func()) (int, error) {
			for range 5 {
				time.Sleep(Patience - time.Millisecond)
				alive()
			}
			return 5, nil
		})
		if n != 5 || err != nil || time.Since(start) <= Patience {
			t.Errorf("%d after %v: %v", n, time.Since(start), err)
		}
	})
}

// TestARestIsMeasuredByTheMonotonicClock: if the wall clock is set back by an hour, the store must not rest for an hour.
func TestARestIsMeasuredByTheMonotonicClock(t *testing.T) {
	l := newLine()
	l.failed()
	if l.resting() == nil {
		t.Error("the store does not rest")
	}
	if at := *l.silent.Load(); at == at.Round(0) { // not in a bubble of synctest, whose times have no such reading
		t.Errorf("%v has no reading of the monotonic clock", at)
	}
}
