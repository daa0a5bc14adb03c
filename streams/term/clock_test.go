package term

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

type handClock struct {
	wall    time.Time
	elapsed time.Duration
}

func (c *handClock) read() Clock { return Clock{Wall: c.wall, Mono: c.elapsed} }

func (c *handClock) move(wall, elapsed time.Duration) {
	c.wall, c.elapsed = c.wall.Add(wall), c.elapsed+elapsed
}

// followed returns a clock that follows the wall clock from a reading.
func followed(c Clock) *monotonicClock {
	s := new(monotonicClock)
	s.follow(c)
	return s
}

func TestAJumpOfTheWallClockIsNotFollowed(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &handClock{wall: start}
	s := followed(c.read())
	check := func(what string, want time.Duration, jumped bool) {
		t.Helper()
		r := s.now(c.read())
		if r.time != scalar.TimeOf(start.Add(want)) || (r.jump != 0) != jumped || r.ahead != 0 {
			t.Errorf("%s: %v, jumped by %v, ahead by %v", what, r.time, r.jump, r.ahead)
		}
		if wall := scalar.TimeOf(c.wall); r.off() != (r.time - wall).Std().Sub(scalar.Time(0).Std()) {
			t.Errorf("%s: off by %v", what, r.off())
		}
	}
	check("at the start", 0, false)
	c.move(time.Minute, time.Minute)
	check("after a minute", time.Minute, false)
	for range 30 { // a clock that is disciplined drifts, and the drift adds up
		c.move(time.Second+90*time.Millisecond, time.Second)
		s.now(c.read())
	}
	check("after a drift", time.Minute+32700*time.Millisecond, false)
	c.move(time.Hour, time.Second)
	check("after a jump forward", time.Minute+33700*time.Millisecond, true)
	c.move(time.Second, time.Second)
	check("a second later", time.Minute+34700*time.Millisecond, true)
	c.move(-time.Hour+2*time.Second, time.Second)
	check("when it is back", time.Minute+35700*time.Millisecond, false)
	c.move(-10*time.Second, 0)
	check("after a jump back", time.Minute+35700*time.Millisecond, true)
}

// A clock may run away without ever jumping. Keys are remembered for a day of the log's time, so that must not follow.
func TestAClockThatRunsAwayIsNotFollowed(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, by := range []time.Duration{900 * time.Millisecond, -900 * time.Millisecond, 3 * time.Millisecond} {
		c := &handClock{wall: start}
		s := followed(c.read())
		last, jumped := s.now(c.read()).time, false
		for range 10_000 { // readings, ten milliseconds apart
			c.move(10*time.Millisecond+by, 10*time.Millisecond)
			r := s.now(c.read())
			if r.time < last {
				t.Fatalf("by %v: time goes back", by)
			}
			last, jumped = r.time, jumped || r.jump != 0
		}
		const gone = 100 * time.Second
		if off := last.Std().Sub(start) - gone; !jumped || off > gone/maxDrift+2*maxJump || off < -gone/maxDrift-2*maxJump {
			t.Errorf("by %v at each reading: time is off by %v after %v, and a jump was told: %v", by, off, gone, jumped)
		}
	}
}

func TestTimeGoesOnWhereTheLogIsAheadOfTheWallClock(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &handClock{wall: start}
	s := followed(c.read())
	check := func(what string, want, ahead time.Duration) {
		t.Helper()
		r := s.now(c.read())
		if r.time != scalar.TimeOf(start.Add(want)) || r.ahead != ahead || r.jump != 0 {
			t.Errorf("%s: %v, ahead by %v, jumped by %v", what, r.time.Std().Sub(start), r.ahead, r.jump)
		}
	}
	s.goOn(c.read(), scalar.TimeOf(start.Add(time.Hour)))
	check("at once", time.Hour, time.Hour)
	c.move(100*time.Second, 100*time.Second)
	check("a hundred seconds later", time.Hour+99*time.Second, time.Hour-time.Second)
	for range 20 {
		before := s.now(c.read()).time
		c.move(time.Millisecond, time.Millisecond)
		if now := s.now(c.read()).time; now-before < 980 || now-before > 1000 {
			t.Errorf("in a millisecond it went on by %d microseconds", now-before)
		}
	}
	c.move(-20*time.Millisecond, -20*time.Millisecond)
	c.move(100*time.Hour-200*time.Second, 100*time.Hour-200*time.Second)
	check("shortly before the wall clock has caught up", 100*time.Hour-99*time.Second, time.Second)
	c.move(200*time.Second, 200*time.Second)
	check("when it has", 100*time.Hour+100*time.Second, 0)
	s.goOn(c.read(), scalar.TimeOf(start))
	check("after a log that is behind", 100*time.Hour+100*time.Second, 0)

	c.move(-500*time.Millisecond, 0) // small enough to be followed
	last := s.now(c.read()).time
	for range 100 {
		c.move(time.Millisecond, time.Millisecond)
		now := s.now(c.read()).time
		if now <= last {
			t.Fatal("time stands still after a small step back")
		}
		last = now
	}
}

// TestTimeIsNotAheadOfACorrectedClock starts a process whose wall clock is a day ahead. The clock is corrected before the process takes
// a term. Then the log's time must not be ahead: no record has had the wrong time.
func TestTimeIsNotAheadOfACorrectedClock(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, reference := range []ReferenceClock{{Known: true, Time: start}, {}} {
		ahead := 24 * time.Hour
		if !reference.Known {
			ahead = maxOff - time.Second // a larger jump is not followed without a reference
		}
		c := &handClock{wall: start.Add(ahead)}
		m := &Machine{clock: *followed(c.read()), now: c.read()}
		m.t.last = scalar.TimeOf(start.Add(-time.Minute))
		m.Time(m.now)
		c.move(time.Second-ahead, time.Second)
		m.Time(c.read())
		m.now = c.read()
		if err := m.setClock(reference); err != nil {
			t.Fatal(err)
		}
		if off := m.Time(m.now) - scalar.TimeOf(c.wall); off != 0 {
			t.Errorf("with the reference %+v: the time is ahead of the corrected clock by %v", reference, off.Std().Sub(scalar.Time(0).Std()))
		}
	}
}

// TestTimeGoesOnAfterAnotherOwnersLastRecord has a record of an owner whose clock is ahead come before a term record. The time goes on from
// that record's, and an alarm says so: it does not stand still until the wall clock has caught up.
func TestTimeGoesOnAfterAnotherOwnersLastRecord(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &handClock{wall: start}
	m := &Machine{clock: *followed(c.read()), now: c.read(), sent: make(map[scalar.ID]struct{}), out: new(Output)}
	m.cfg.NewID = func(scalar.Time) scalar.ID { return scalar.ID{1} }
	m.t.last = scalar.TimeOf(start.Add(-time.Hour))
	if err := m.setClock(ReferenceClock{}); err != nil {
		t.Fatal(err)
	}
	ahead := scalar.TimeOf(start.Add(30 * time.Second))
	m.t.last = ahead // of the record that came first
	if err := m.take(); err != nil {
		t.Fatal(err)
	}
	if at := m.t.taking.record.Record.Time; at != ahead || !m.t.ahead {
		t.Errorf("the term record is at %v, the last record at %v; the alarm: %v", at.Std(), ahead.Std(), m.t.ahead)
	}
	c.move(10*time.Second, 10*time.Second)
	m.now = c.read()
	if gone := m.recordTime() - ahead; gone < 9*scalar.Second {
		t.Errorf("after ten seconds the time has gone on by %d µs", gone)
	}
}
