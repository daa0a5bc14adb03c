package journal

import (
	"testing"
	"time"
)

// TestBackoffGrowsWithinBounds: it is short at first and bounded, and not the same for everybody.
func TestBackoffGrowsWithinBounds(t *testing.T) {
	differ := false
	for fails := range 40 {
		d := backoff(fails)
		if d < 40*time.Millisecond || d > 500*time.Millisecond || fails > 6 && d < 400*time.Millisecond {
			t.Errorf("after %d failures: %v", fails, d)
		}
		differ = differ || d != backoff(fails)
	}
	if !differ {
		t.Error("all clients come at once")
	}
}

// TestBriefTermsAreFailedAttempts: brokers that refuse each record end each term soon, and the pauses grow.
func TestBriefTermsAreFailedAttempts(t *testing.T) {
	for _, c := range []struct {
		opened bool
		lasted time.Duration
		want   int
	}{{false, time.Hour, 7}, {true, time.Second, 7}, {true, briefTerm + 1, 0}} {
		if got := attemptAfter(7, c.opened, c.lasted); got != c.want {
			t.Errorf("%v for %v: %d, want %d", c.opened, c.lasted, got, c.want)
		}
	}
}
