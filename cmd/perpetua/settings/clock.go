package settings

import (
	"time"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Clock returns the clock of this process's terms, or nil for the system clock.
func (s *Settings) Clock() journal.Clock {
	if s.ClockAhead == 0 {
		return nil
	}
	return ahead{journal.SystemClock(), s.ClockAhead}
}

// ahead is a clock with a shifted wall time.
type ahead struct {
	journal.Clock
	by time.Duration
}

// Wall implements journal.Clock.
func (c ahead) Wall() time.Time { return c.Clock.Wall().Add(c.by) }
