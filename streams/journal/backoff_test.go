package journal

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestAPauseEndsForImpatientCallers: calls that are each shorter than the pause wait for it together.
func TestAPauseEndsForImpatientCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const call = 100 * time.Millisecond
		r := &Reader{attempts: 20}
		start := time.Now()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), call)
			err := r.backOff(ctx)
			cancel()
			if err == nil {
				break
			}
			if time.Since(start) > time.Minute {
				t.Fatalf("a pause of %v has not ended after %d attempts", pauseBefore(21), r.attempts)
			}
		}
		if waited := time.Since(start); waited != pauseBefore(21) || r.attempts != 21 {
			t.Errorf("%v, %d attempts", waited, r.attempts)
		}
		if err := r.backOff(t.Context()); err != nil || r.attempts != 22 || time.Since(start) != 2*pauseBefore(22) {
			t.Errorf("the next pause: %v, %d attempts, %v", err, r.attempts, time.Since(start))
		}
	})
}
