package journal

import (
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Clock is where an owner reads the time: the wall clock, which may be set, and a monotonic one, which may not.
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

// maxJump is how far the wall clock may move against the monotonic one between two readings and still be followed.
const maxJump = time.Second

// steady follows a wall clock as long as it moves with the monotonic one. Small differences are how a clock that is
// being disciplined looks, so each reading that is followed becomes the base of the next. A jump is not followed: time
// goes on with the monotonic clock until the wall clock is back where it should be.
type steady struct {
	clock   Clock
	wall    time.Time     // the last reading that was followed …
	elapsed time.Duration // … and the monotonic clock then
}

func newSteady(c Clock) *steady {
	return &steady{clock: c, wall: c.Wall(), elapsed: c.Elapsed()}
}

// now returns the time, and by how much the wall clock is off if it is not being followed.
func (s *steady) now() (t scalar.Time, off time.Duration) {
	wall, elapsed := s.clock.Wall(), s.clock.Elapsed()
	due := s.wall.Add(elapsed - s.elapsed)
	off = wall.Sub(due)
	if off > maxJump || off < -maxJump {
		return scalar.TimeOf(due), off
	}
	s.wall, s.elapsed = wall, elapsed
	return scalar.TimeOf(wall), 0
}
