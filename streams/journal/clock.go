package journal

import (
	"time"
)

// Clock is an owner's source of time: the wall clock, which may be set, and a monotonic clock, which may not.
type Clock interface {
	Wall() time.Time
	Elapsed() time.Duration // since any fixed instant
}

// SystemClock returns the machine's clocks.
func SystemClock() Clock { return systemClock{start: time.Now()} }

type systemClock struct{ start time.Time }

// Wall returns the wall clock's time, stripped of its monotonic part.
func (systemClock) Wall() time.Time { return time.Now().Round(0) }

// Elapsed returns the monotonic time since the clock was made.
func (c systemClock) Elapsed() time.Duration { return time.Since(c.start) }
