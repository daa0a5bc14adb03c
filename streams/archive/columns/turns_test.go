package columns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurnsShareABusyProcessor checks which part of the time an encoder works, for yields of several lengths.
func TestTurnsShareABusyProcessor(t *testing.T) {
	const values, perValue = 100_000, 10 * time.Microsecond
	for name, c := range map[string]struct {
		yield   time.Duration // how long others work
		longest time.Duration // that the encoder works without a yield
		percent time.Duration // of the time in which it works, at least
	}{
		"an idle processor":                 {0, yieldEvery * perValue, 100},
		"an owner that decides an order":    {50 * time.Microsecond, yieldEvery * perValue, 75},
		"an owner that decides many orders": {time.Millisecond, time.Millisecond + yieldEvery*perValue, 50},
		"a node that catches up":            {20 * time.Millisecond, longestTurn + yieldEvery*perValue, 33},
	} {
		t.Run(name, func(t *testing.T) {
			var now, last time.Time
			var longest, waited time.Duration
			turns := turns{now: func() time.Time { return now }}
			turns.yield = func() {
				longest = max(longest, now.Sub(last))
				now = now.Add(c.yield)
				waited, last = waited+c.yield, now
			}
			for i := range values {
				turns.value(i)
				now = now.Add(perValue)
			}
			require.LessOrEqual(t, longest, c.longest)
			work := values * perValue
			require.GreaterOrEqual(t, 100*work, c.percent*(work+waited), "%s of work and %s of waits", work, waited)
		})
	}
}
