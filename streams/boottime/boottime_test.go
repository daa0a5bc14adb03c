package boottime

import (
	"testing"
	"time"
)

// TestNow: the clock never goes back, and as long as the machine is not suspended it runs like Go's monotonic clock.
func TestNow(t *testing.T) {
	began, start := Now(), time.Now()
	last := began
	for time.Since(start) < time.Millisecond {
		now := Now()
		if now < last {
			t.Fatalf("%v after %v", now, last)
		}
		last = now
	}
	if passed := Now() - began; passed < time.Millisecond {
		t.Errorf("%v have passed", passed)
	}
}
