package columns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurnsShareABusyProcessor checks which part of the time an encoder works, for yields of several lengths.
func TestTurnsShareABusyProcessor(t *testing.T) {
	const values, perValue = 100_000, 50 * time.Microsecond
	for name, c := range map[string]struct {
		share    float64
		yield    time.Duration // how long others work
		min, max time.Duration // percent of the time in which the encoder works
	}{
		"an idle processor":                         {1, 0, 100, 100},
		"an idle processor, and a small share":      {1.0 / 16, 0, 100, 100},
		"an owner that decides an order":            {1, 60 * time.Microsecond, 45, 52},
		"an owner that decides many orders":         {1, time.Millisecond, 45, 52},
		"a node that catches up":                    {1, 20 * time.Millisecond, 33, 52},
		"young records, a few orders":               {1.0 / 16, 60 * time.Microsecond, 5, 7},
		"young records, many orders":                {1.0 / 16, 5 * time.Millisecond, 5, 7},
		"young records, and a node that catches up": {1.0 / 16, 20 * time.Millisecond, 5, 7},
		"older records":                             {0.5, time.Millisecond, 30, 34},
	} {
		t.Run(name, func(t *testing.T) {
			var now, last time.Time
			var longest, waited time.Duration
			turns := turns{now: func() time.Time { return now }, share: c.share, began: now}
			turns.yield = func() {
				longest = max(longest, now.Sub(last))
				now = now.Add(c.yield)
				waited, last = waited+c.yield, now
			}
			for range values {
				turns.value()
				now = now.Add(perValue)
			}
			require.LessOrEqual(t, longest, longestTurn+perValue)
			work := values * perValue
			require.GreaterOrEqual(t, 100*work, c.min*(work+waited), "%s of work and %s of waits", work, waited)
			require.LessOrEqual(t, 100*work, c.max*(work+waited), "%s of work and %s of waits", work, waited)
		})
	}
}

// TestTurnsForgetWhatOtherProcessesTook has another process take the processor while the encoder works on a value.
func TestTurnsForgetWhatOtherProcessesTook(t *testing.T) {
	var now time.Time
	yields := 0
	turns := turns{now: func() time.Time { return now }, share: 1, began: now}
	turns.yield = func() { now, yields = now.Add(time.Millisecond), yields+1 }
	now = now.Add(time.Hour)
	turns.value()
	require.LessOrEqual(t, yields, int(longestTurn/time.Millisecond)+1)
}
