package journal

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

type handClock struct {
	wall    time.Time
	elapsed time.Duration
}

func (c *handClock) Wall() time.Time        { return c.wall }
func (c *handClock) Elapsed() time.Duration { return c.elapsed }

func (c *handClock) move(wall, elapsed time.Duration) {
	c.wall, c.elapsed = c.wall.Add(wall), c.elapsed+elapsed
}

func TestAJumpOfTheWallClockIsNotFollowed(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &handClock{wall: start}
	s := newSteady(c)
	check := func(what string, want time.Duration, jumped bool) {
		t.Helper()
		now, off := s.now()
		if now != scalar.TimeOf(start.Add(want)) || (off != 0) != jumped {
			t.Errorf("%s: %v, off by %v", what, now, off)
		}
	}
	check("at the start", 0, false)
	c.move(time.Minute, time.Minute)
	check("after a minute", time.Minute, false)
	for range 10 { // a clock that is disciplined drifts, and the drift adds up
		c.move(time.Second+900*time.Millisecond, time.Second)
		s.now()
	}
	check("after a drift", time.Minute+19*time.Second, false)
	c.move(time.Hour, time.Second)
	check("after a jump forward", time.Minute+20*time.Second, true)
	c.move(time.Second, time.Second)
	check("a second later", time.Minute+21*time.Second, true)
	c.move(-time.Hour+2*time.Second, time.Second)
	check("when it is back", time.Minute+22*time.Second, false)
	c.move(-10*time.Second, 0)
	check("after a jump back", time.Minute+22*time.Second, true)
}
