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

// maxJump is how far the wall clock may move against the monotonic one between two readings and still be followed. It is
// also how far time may run ahead of the wall clock before that is an alarm.
const maxJump = time.Second

// maxDrift is how fast the wall clock may gain or lose against the monotonic one and still be followed, for longer than it
// takes to be maxJump away: one part in so many. Clocks are disciplined no faster than that.
const maxDrift = 10

// slower is how much slower than the monotonic clock time goes while it is ahead of the wall clock: by one part in so many.
// At the same pace the wall clock would never catch up.
const slower = 100

// steady makes the time of records out of a wall clock. It never goes back and never stands still.
//
// It follows the wall clock as long as that moves with the monotonic one. Small differences are how a clock that is being
// disciplined looks, and they add up: so the base that the next reading is held against goes along, as fast as clocks are
// disciplined. A jump is not followed, nor a clock that runs away in many small ones: time goes on with the monotonic clock
// until the wall clock is back where it should be.
//
// Where the wall clock is behind the time that was reached already, in the log or by an earlier reading, time goes on from
// there, by the monotonic clock and a hundredth slower, until the wall clock has caught up.
type steady struct {
	clock   Clock
	wall    time.Time     // the base: where the wall clock should have been …
	elapsed time.Duration // … when the monotonic clock was here

	reached time.Time     // a time that was reached …
	since   time.Duration // … and the monotonic clock then
}

// reading is what a steady clock says.
type reading struct {
	time  scalar.Time
	jump  time.Duration // by which the wall clock has jumped, while it isn't followed; else 0
	ahead time.Duration // of the wall clock as far as that is followed
}

// off returns by how much the time lies ahead of what the wall clock shows; less than 0 if it is behind.
func (r reading) off() time.Duration { return r.ahead - r.jump }

func newSteady(c Clock) *steady {
	s := &steady{clock: c}
	s.follow()
	return s
}

// follow makes the wall clock, wherever it is by now, the one that is followed. What was reached stays.
func (s *steady) follow() { s.wall, s.elapsed = s.clock.Wall(), s.clock.Elapsed() }

// goOn has time go on from that of a log's last record.
func (s *steady) goOn(last scalar.Time) {
	if t := last.Std(); t.After(s.atLeast(s.clock.Elapsed())) {
		s.reached, s.since = t, s.clock.Elapsed()
	}
}

// atLeast returns the earliest that the time can be.
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
