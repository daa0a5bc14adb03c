package term

import (
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// maxJump is the largest difference between the wall clock and the monotonic clock, between two readings, at which
// monotonicClock still follows the wall clock. It is also how far record time may run ahead of the wall clock before an
// alarm is raised.
const maxJump = time.Second

// maxDrift is the highest rate at which monotonicClock follows a wall clock that gains or loses against the monotonic one:
// one part in maxDrift. A faster drift is followed only until the difference reaches maxJump. Clock discipline (NTP) is
// never that fast.
const maxDrift = 10

// slower is by how much record time runs slower than the monotonic clock while it is ahead of the wall clock: one part
// in slower. At the same rate the wall clock would never catch up.
const slower = 100

// maxOff is how far a node's wall clock may be behind the log's last record, or off a reference clock, for the node to
// take a term.
const maxOff = time.Minute

// monotonicClock derives the time of records from a wall clock. Within a term, it never goes back and never stops.
//
// It follows the wall clock while that agrees with the monotonic clock. A disciplined clock shows small differences,
// which add up. So the base for the next comparison moves along, at most at the rate of clock discipline. It does not
// follow a jump, nor a clock that drifts away in many small jumps: time then advances with the monotonic clock until the
// wall clock is correct again.
//
// If the wall clock is behind a time that the log or an earlier reading has already reached, time advances from that
// time with the monotonic clock, one hundredth slower, until the wall clock has caught up.
type monotonicClock struct {
	wall    time.Time     // the base: the expected wall clock time …
	elapsed time.Duration // … at this time of the monotonic clock

	reached time.Time     // a time that was reached …
	since   time.Duration // … at this time of the monotonic clock
}

// reading is the time of records at one reading of the clocks.
type reading struct {
	time  scalar.Time
	jump  time.Duration // the jump of the wall clock while it is not followed, else 0
	ahead time.Duration // of the wall clock, or of its expected time while it is not followed
}

// off returns how far record time is ahead of the wall clock; it is negative if behind.
func (r reading) off() time.Duration { return r.ahead - r.jump }

// follow makes the current wall clock time the base and drops the lower bound. No record has a time that was reached without a
// term; goOn restores the bound of the log.
func (s *monotonicClock) follow(c Clock) { *s = monotonicClock{wall: c.Wall, elapsed: c.Mono} }

// goOn makes the time of a log's last record the lower bound, if that is later than the present one.
func (s *monotonicClock) goOn(c Clock, last scalar.Time) {
	if t := last.Std(); t.After(s.atLeast(c.Mono)) {
		s.reached, s.since = t, c.Mono
	}
}

// atLeast returns the lower bound of the time.
func (s *monotonicClock) atLeast(elapsed time.Duration) time.Time {
	gone := elapsed - s.since
	return s.reached.Add(gone - gone/slower)
}

func (s *monotonicClock) now(c Clock) (r reading) {
	gone := c.Mono - s.elapsed
	t := s.wall.Add(gone)
	if off := c.Wall.Sub(t); off > maxJump || off < -maxJump {
		r.jump = off
	} else {
		drift := min(max(off, -gone/maxDrift), gone/maxDrift)
		s.wall, s.elapsed, t = t.Add(drift), c.Mono, c.Wall
	}
	if least := s.atLeast(c.Mono); least.After(t) {
		r.ahead, t = least.Sub(t), least
	} else {
		s.reached, s.since = t, c.Mono
	}
	r.time = scalar.TimeOf(t)
	return r
}

// ReferenceClock is the reading of a clock outside of this node, if it answered.
type ReferenceClock struct {
	Known bool
	Time  time.Time     // the time of the reference clock
	Off   time.Duration // how far this node's wall clock is ahead of it; negative if behind
}

// CheckClock returns a *ClockError if a node's wall clock is too far from the time of the log's last record or from the
// reference clock.
func CheckClock(s submit.Shard, wall time.Time, last scalar.Time, reference ReferenceClock) error {
	switch {
	case reference.Known && (reference.Off > maxOff || reference.Off < -maxOff):
		return &ClockError{Journal: s.Journal, Partition: s.Partition, Wall: wall, Of: "another clock", Other: reference.Time}
	case last.Std().Sub(wall) > maxOff:
		return &ClockError{Journal: s.Journal, Partition: s.Partition, Wall: wall, Of: "the log's last record", Other: last.Std()}
	}
	return nil
}

// setClock checks the node's clock and makes the log's last time the lower bound of the time of records. It also follows the
// wall clock from its current time, unless the wall clock has jumped by more than maxOff since this process began to follow
// it and neither a reference clock nor AcceptClock confirms the new time.
func (m *Machine) setClock(reference ReferenceClock) error {
	if err := CheckClock(m.cfg.Shard, m.now.Wall, m.t.last, reference); err != nil {
		if !m.cfg.AcceptClock {
			return err
		}
		m.note(slog.LevelWarn, "this node's clock is off and accepted", "error", err)
	}
	if jump := m.clock.now(m.now).jump; reference.Known || m.cfg.AcceptClock || jump <= maxOff && jump >= -maxOff {
		m.clock.follow(m.now)
	}
	m.clock.goOn(m.now, m.t.last)
	return nil
}

// Time returns the time that a record would have now.
func (m *Machine) Time(now Clock) scalar.Time { return m.clock.now(now).time }

// recordTime returns the time for the next decision, which is never before the last record's. It raises alarms for a wall
// clock that jumps and for a log time ahead of the wall clock.
func (m *Machine) recordTime() scalar.Time {
	r, t := m.clock.now(m.now), &m.t
	t.clockOff = r.off()
	if jumped := r.jump != 0; jumped != t.jumped {
		if t.jumped = jumped; jumped {
			m.alarm("clock", "the wall clock jumped and is not followed", "by", r.jump)
		} else {
			m.note(slog.LevelInfo, "the wall clock is followed again")
		}
	}
	if ahead := r.ahead > maxJump; ahead != t.ahead {
		if t.ahead = ahead; ahead {
			m.alarm("clock", "the log's time is ahead of the wall clock and goes on from there", "by", r.ahead)
		} else {
			m.note(slog.LevelInfo, "the wall clock has caught up with the log's time")
		}
	}
	return max(t.last, r.time)
}
