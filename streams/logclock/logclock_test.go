package logclock

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

func entry(kind string, at scalar.Time) *record.Entry {
	return &record.Entry{Record: &record.Record{Time: at, Command: decide.Recorded{Type: kind}}}
}

// TestTheClockFollowsTheLog reads records that are behind the node's clock and ahead of it, lets time pass, and sets the
// node's clock. All times are in seconds.
func TestTheClockFollowsTheLog(t *testing.T) {
	now := reading{wall: 1000 * scalar.Second}
	c := &Clock{node: func() reading { return now }}
	for _, step := range []struct {
		name          string
		pass, set     int64 // set: by how much the wall clock is set forward
		record, taken int64 // the time of a record; zero for none
		now           float64
	}{
		{name: "no record", now: 1000},
		{name: "an old record", record: 10, now: 1000},
		{name: "time passes", pass: 100, now: 1100},
		{name: "a record just read", record: 1099, now: 1100},
		{name: "the wall clock is set forward", set: 5000, now: 6100},
		{name: "the wall clock is set back, which the log does not follow", set: -5900, now: 1099},
		{name: "time passes slower", pass: 100, now: 1198},
		{name: "a record was long on its way", record: 1150, now: 1198},
		{name: "a record that is ahead", record: 9000, now: 9000},
		{name: "time passes slower", pass: 200, now: 9198},
		{name: "the owner's time did not pass slower", record: 9199, now: 9199},
		{name: "another owner begins where the log ended", taken: 9050, now: 9050},
		{name: "the wall clock has caught up", set: 9000, now: 9500},
		{name: "time passes", pass: 100, now: 9600},
	} {
		now.wall += scalar.Time(step.pass+step.set) * scalar.Second
		now.mono += time.Duration(step.pass) * time.Second
		if step.record != 0 {
			c.Reach(entry("trading.place_order", scalar.Time(step.record)*scalar.Second))
		}
		if step.taken != 0 {
			c.Reach(entry(decide.TypeTaken, scalar.Time(step.taken)*scalar.Second))
		}
		want := scalar.Time(step.now * float64(scalar.Second))
		if got := c.Now(); got != want {
			t.Errorf("%s: the time is %v s, want %v", step.name, float64(got)/float64(scalar.Second), step.now)
		}
		if got := c.Node(want + 5*scalar.Second); got != now.wall+5*scalar.Second {
			t.Errorf("%s: five seconds later the node's clock shows %v s more, want 5", step.name, float64(got-now.wall)/float64(scalar.Second))
		}
	}
}

// TestTheClockDoesNotGoBack reads records that were on their way for different times, from a log that is ahead.
func TestTheClockDoesNotGoBack(t *testing.T) {
	const ahead = 4 * scalar.Day
	var now reading
	c := &Clock{node: func() reading { return now }}
	last := c.Now()
	for _, delay := range []time.Duration{0, 300 * time.Millisecond, time.Millisecond, 2 * time.Second, 0, time.Second} {
		now.mono += time.Second / 10
		now.wall += scalar.Second / 10
		c.Reach(entry("trading.place_order", now.wall+ahead-scalar.Time(delay.Microseconds())))
		if got := c.Now(); got < last || got > now.wall+ahead {
			t.Errorf("after a delay of %v: %v, want %v to %v", delay, got, last, now.wall+ahead)
		} else {
			last = got
		}
	}
}

// TestTheMonotonicClock gives the clock real times.
func TestTheMonotonicClock(t *testing.T) {
	now := time.Now()
	c := New(func() time.Time { return now })
	c.Reach(entry("trading.place_order", scalar.TimeOf(now)+scalar.Day))
	was := c.Now()
	now = now.Add(100 * time.Second)
	if got := c.Now() - was; got != 99*scalar.Second {
		t.Errorf("100 s later, the time is %d µs later, want 99 s", got)
	}
	now = now.Round(0).Add(-time.Hour) // without monotonic reading
	if got := c.Now(); got != was {
		t.Errorf("the clock was set back: %v, want %v", got, was)
	}
}
