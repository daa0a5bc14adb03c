package logclock_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
)

// TestTheClockFollowsTheLog reads records that are behind the node's clock and ahead of it, and lets time pass.
func TestTheClockFollowsTheLog(t *testing.T) {
	node := 1000 * scalar.Second
	c := logclock.New(func() scalar.Time { return node })
	for _, step := range []struct {
		name                      string
		pass, record, now, retry5 scalar.Time // retry5: when five seconds after now come, by the node's clock
	}{
		{"no record", 0, 0, 1000, 1005},
		{"an old record", 0, 10, 1000, 1005},
		{"time passes", 7, 0, 1007, 1012},
		{"a record that is ahead", 0, 9000, 9000, 1012},
		{"time passes", 3, 0, 9003, 1015},
		{"the log is ahead by less", 0, 9002, 9002, 1015},
		{"the clock has caught up", 8000, 9003, 9010, 9015},
	} {
		node += step.pass * scalar.Second
		if step.record != 0 {
			c.Reach(step.record * scalar.Second)
		}
		if got := c.Now(); got != step.now*scalar.Second {
			t.Errorf("%s: the time is %d s, want %d", step.name, got/scalar.Second, step.now)
		}
		if got := c.Node((step.now + 5) * scalar.Second); got != step.retry5*scalar.Second {
			t.Errorf("%s: five seconds later is %d s, want %d", step.name, got/scalar.Second, step.retry5)
		}
	}
}
