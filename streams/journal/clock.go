package journal

import (
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
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

// maxJump is the largest difference between the wall clock and the monotonic clock, between two readings, at which
// steady still follows the wall clock. It is also how far record time may run ahead of the wall clock before an alarm
// is raised.
const maxJump = time.Second

// maxDrift is the highest rate at which steady follows a wall clock that gains or loses against the monotonic one: one
// part in maxDrift. A faster drift is followed only until the difference reaches maxJump. Clock discipline (NTP) is
// never that fast.
const maxDrift = 10

// slower is by how much record time runs slower than the monotonic clock while it is ahead of the wall clock: one part
// in slower. At the same rate the wall clock would never catch up.
const slower = 100

// steady derives the time of records from a wall clock. It never goes back and never stops.
//
// It follows the wall clock while that agrees with the monotonic clock. A disciplined clock shows small differences,
// which add up. So the base for the next comparison moves along, at most at the rate of clock discipline. steady does
// not follow a jump, nor a clock that drifts away in many small jumps: time then advances with the monotonic clock
// until the wall clock is correct again.
//
// If the wall clock is behind a time that the log or an earlier reading has already reached, time advances from that
// time with the monotonic clock, one hundredth slower, until the wall clock has caught up.
type steady struct {
	clock   Clock
	wall    time.Time     // the base: the expected wall clock time …
	elapsed time.Duration // … at this time of the monotonic clock

	reached time.Time     // a time that was reached …
	since   time.Duration // … at this time of the monotonic clock
}

// reading is one reading of a steady clock.
type reading struct {
	time  scalar.Time
	jump  time.Duration // the jump of the wall clock while it is not followed, else 0
	ahead time.Duration // of the wall clock, or of its expected time while it is not followed
}

// off returns how far record time is ahead of the wall clock; it is negative if behind.
func (r reading) off() time.Duration { return r.ahead - r.jump }

func newSteady(c Clock) *steady {
	s := &steady{clock: c}
	s.follow()
	return s
}

// follow makes the current wall clock time the base. The time reached so far stays the lower bound.
func (s *steady) follow() { s.wall, s.elapsed = s.clock.Wall(), s.clock.Elapsed() }

// goOn makes the time of a log's last record the lower bound, if that is later than the present one.
func (s *steady) goOn(last scalar.Time) {
	if t := last.Std(); t.After(s.atLeast(s.clock.Elapsed())) {
		s.reached, s.since = t, s.clock.Elapsed()
	}
}

// atLeast returns the lower bound of the time.
func (s *steady) atLeast(elapsed time.Duration) time.Time {
	gone := elapsed - s.since
	return s.reached.Add(gone - gone/slower)
}

func (s *steady) now() (r reading) {
	wall, elapsed := s.clock.Wall(), s.clock.Elapsed()
	gone := elapsed - s.elapsed
	t := s.wall.Add(gone)
	if off := wall.Sub(t); off > maxJump || off < -maxJump {
		r.jump = off
	} else {
		drift := min(max(off, -gone/maxDrift), gone/maxDrift)
		s.wall, s.elapsed, t = t.Add(drift), elapsed, wall
	}
	if least := s.atLeast(elapsed); least.After(t) {
		r.ahead, t = least.Sub(t), least
	} else {
		s.reached, s.since = t, elapsed
	}
	r.time = scalar.TimeOf(t)
	return r
}
