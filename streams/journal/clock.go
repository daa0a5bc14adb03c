package journal

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/boottime"
)

// Clock is an owner's source of time: the wall clock, which may be set, and a monotonic clock, which may not.
type Clock interface {
	Wall() time.Time
	Elapsed() time.Duration // since any fixed instant; MUST count the time during which the machine is suspended; boottime can on Linux only
}

// SystemClock returns the machine's clocks.
func SystemClock() Clock { return systemClock{} }

type systemClock struct{}

// Wall returns the wall clock's time, stripped of its monotonic part.
func (systemClock) Wall() time.Time { return time.Now().Round(0) }

// Elapsed returns the time since the machine was started.
func (systemClock) Elapsed() time.Duration { return boottime.Now() }
