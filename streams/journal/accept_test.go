package journal_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// wrongClock is the machine's, with a wall clock that is wrong by so many nanoseconds.
type wrongClock struct {
	journal.Clock
	by atomic.Int64
}

func newWrongClock(by time.Duration) *wrongClock {
	c := &wrongClock{Clock: journal.SystemClock()}
	c.by.Store(int64(by))
	return c
}

func (c *wrongClock) Wall() time.Time { return c.Clock.Wall().Add(time.Duration(c.by.Load())) }

// ahead writes a log with a clock that is ahead, and returns the time of its last record.
func (r *rig) ahead(by time.Duration) scalar.Time {
	r.t.Helper()
	cfg := r.ownerConfig("ahead")
	cfg.Client = r.newClient(newWrongClock(by), nil)
	o := r.run(cfg).ready()
	last := o.do(command(&add{"a", 1})).Entry.Record.Time
	if err := o.end(); err != nil {
		r.t.Fatal(err)
	}
	return last
}

func (r *rig) alarms(kind string) float64 {
	return testutil.ToFloat64(r.metrics.Alarms.WithLabelValues("trading", kind))
}

// What is due by a time that the log has reached already, and by one that it reaches soon, must come although the wall
// clock is an hour away from either.
func TestTimeGoesOnAfterAClockThatWasAhead(t *testing.T) {
	r := newRig(t)
	last := r.ahead(time.Hour)
	cfg := r.ownerConfig("right")
	cfg.Client, cfg.AcceptClock = r.newClient(nil, nil), true
	o := r.run(cfg).ready()
	first := o.do(command(&later{"soon", 1, last + 50*scalar.Millisecond, ""})).Entry.Record.Time
	if first <= last || first > last+scalar.Minute {
		t.Errorf("the log's last time was %v, the next one is %v", last, first)
	}
	o.until("it is due and done", func() bool { got, _ := o.total("soon"); return got == "1" })
	before := o.do(command(&add{"b", 1})).Entry.Record.Time
	began := time.Now()
	o.until("some time passes", func() bool { return time.Since(began) > 200*time.Millisecond })
	if after := o.do(command(&add{"b", 1})).Entry.Record.Time; after-before < 190*scalar.Millisecond {
		t.Errorf("in 200 ms the time went on by %d microseconds", after-before)
	}
	if got := r.alarms("clock"); got < 1 { // one for each term
		t.Errorf("%v alarms", got)
	}
	o.until("the metric says how far ahead it is", func() bool {
		off := testutil.ToFloat64(r.metrics.ClockOff.WithLabelValues("trading"))
		return off > 3500 && off < 3700
	})
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	var time scalar.Time
	for _, e := range r.all() {
		if e.Record.Time <= time {
			t.Errorf("record %d has the time of the one before it, or an earlier one", e.Record.Sequence)
		}
		time = e.Record.Time
	}
}

func TestANodeTakesNoTermWithAClockThatIsOff(t *testing.T) {
	answer := func(by time.Duration) func(context.Context) (time.Time, error) {
		return func(context.Context) (time.Time, error) { return time.Now().Add(by), nil }
	}
	silent := func(context.Context) (time.Time, error) { return time.Time{}, errors.New("away") }
	for name, c := range map[string]struct {
		log    time.Duration // ahead by so much, where there is one
		other  func(context.Context) (time.Time, error)
		accept bool
		takes  bool
	}{
		"a log that is an hour ahead":                {time.Hour, nil, false, false},
		"a log that is half a minute ahead":          {30 * time.Second, nil, false, true},
		"an hour ahead, accepted":                    {time.Hour, nil, true, true},
		"another clock that is ahead":                {-time.Second, answer(2 * time.Minute), false, false},
		"another clock that is behind":               {-time.Second, answer(-2 * time.Minute), false, false},
		"another clock on a new log":                 {0, answer(2 * time.Minute), false, false},
		"another clock, accepted":                    {0, answer(2 * time.Minute), true, true},
		"another clock that agrees":                  {0, answer(time.Second), false, true},
		"another clock that agrees, a log far ahead": {time.Hour, answer(0), false, false},
		"another clock that does not answer":         {-time.Second, silent, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if c.log != 0 {
				r.ahead(c.log)
			}
			before, err := r.client.Tip(r.context(), "trading", 0)
			if err != nil {
				t.Fatal(err)
			}
			cfg := r.ownerConfig("n")
			cfg.Client, cfg.OtherClock, cfg.AcceptClock = r.newClient(nil, nil), c.other, c.accept
			o := r.run(cfg)
			if c.takes {
				o.ready()
				return
			}
			<-o.done
			var off *term.ClockError
			if !errors.As(o.err, &off) || r.alarms("clock") != 1 {
				t.Errorf("ended with %v and %v alarms", o.err, r.alarms("clock"))
			}
			if end, err := r.client.Tip(r.context(), "trading", 0); err != nil || end != before {
				t.Errorf("the log ended at %d and ends at %d, %v", before, end, err)
			}
		})
	}
}

// A wall clock that jumps while its node serves is not followed in that term, nor in the next unless another clock agrees.
func TestAJumpIsFollowedInALaterTermOnlyIfAnotherClockAgrees(t *testing.T) {
	r := newFake(t)
	var agrees atomic.Bool
	clock := newWrongClock(0)
	cfg := r.ownerConfig("n")
	cfg.Client = r.newClient(clock, nil)
	cfg.OtherClock = func(context.Context) (time.Time, error) {
		if agrees.Load() {
			return clock.Wall(), nil
		}
		return time.Time{}, errors.New("away")
	}
	o := r.run(cfg).ready()
	at := func() time.Duration { return time.Until(o.do(command(&add{"a", 1})).Entry.Record.Time.Std()) }
	clock.by.Store(int64(48 * time.Hour))
	if ahead := at(); ahead > time.Minute {
		t.Errorf("in its term it is followed by %v", ahead)
	}
	r.refuseOne()
	if ahead := at(); ahead > time.Minute {
		t.Errorf("in the next term, which nothing confirms, by %v", ahead)
	}
	agrees.Store(true)
	r.refuseOne()
	if ahead := at(); ahead < 47*time.Hour {
		t.Errorf("when another clock says so, by %v", ahead)
	}
}
