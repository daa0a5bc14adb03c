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
