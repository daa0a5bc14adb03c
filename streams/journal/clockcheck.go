package journal

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// maxOff is how far a node's wall clock may be behind the log's last record, or off another clock, for it to take a term.
const maxOff = time.Minute

// clockWithin is how long another clock may take to answer.
const clockWithin = 2 * time.Second

// otherClock is what the clock beside this node's said, if it answered.
type otherClock struct {
	known bool
	time  time.Time     // of the other clock …
	off   time.Duration // … which this node's wall clock was ahead of by so much, or behind if less than 0
}

// askClock asks the other clock. The time that the answer takes counts for this node.
func (o *Owner) askClock(ctx context.Context) otherClock {
	if o.cfg.OtherClock == nil {
		return otherClock{}
	}
	ctx, cancel := context.WithTimeout(ctx, clockWithin)
	defer cancel()
	clock := o.cfg.Client.cfg.Clock
	before, began := clock.Wall(), clock.Elapsed()
	t, err := o.cfg.OtherClock(ctx)
	if err != nil {
		o.log.Info("the clock to hold this node's against does not answer", "error", err)
		return otherClock{}
	}
	took := clock.Elapsed() - began
	off := before.Sub(t)
	if off < 0 {
		off = min(off+took, 0)
	}
	return otherClock{known: true, time: t, off: off}
}

// checkClock returns a *ClockError if this node's wall clock is too far from the log's last time or from the other clock.
func (o *Owner) checkClock(last scalar.Time, other otherClock) error {
	wall := o.cfg.Client.cfg.Clock.Wall()
	fault := &ClockError{Journal: o.journal, Partition: o.cfg.Partition, Wall: wall}
	switch {
	case other.known && (other.off > maxOff || other.off < -maxOff):
		fault.Of, fault.Other = "another clock", other.time
	case last.Std().Sub(wall) > maxOff:
		fault.Of, fault.Other = "the log's last record", last.Std()
	default:
		return nil
	}
	if o.cfg.AcceptClock {
		o.log.Warn("this node's clock is off and accepted", "of", fault.Of, "theirs", fault.Other, "ours", wall)
		return nil
	}
	return fault
}

// ClockOff returns a *ClockError while this node's clock keeps it from taking a term; last is the time of the last record
// that is known. When that begins, there is an alarm. It may be called while the owner runs.
func (o *Owner) ClockOff(ctx context.Context, last scalar.Time) error {
	err := o.checkClock(last, o.askClock(ctx))
	o.noteClock(err)
	return err
}

// ClockRefused reports whether this node's clock keeps it from taking a term, by what was looked at last.
func (o *Owner) ClockRefused() bool { return o.clockOff.Load() }

// noteClock raises an alarm when the clock comes to keep this node from taking a term.
func (o *Owner) noteClock(err error) {
	if was := o.clockOff.Swap(err != nil); err != nil && !was {
		o.alarm("clock", "this node takes no term with its clock; --accept-clock has it do so", "error", err)
	}
}

// setClock has the time go on from the log's last record. The wall clock is followed from where it is, unless it has
// jumped since this process began to follow it and nothing says that it is right now.
func (t *term) setClock(other otherClock) {
	c := t.o.clock
	if jump := c.now().jump; other.known || t.o.cfg.AcceptClock || jump <= maxOff && jump >= -maxOff {
		c.follow()
	}
	c.goOn(t.last)
}

// now returns the time for the next decision: never before the last record's.
func (t *term) now() scalar.Time {
	r := t.o.clock.now()
	t.off = r.off()
	if jumped := r.jump != 0; jumped != t.jumped {
		if t.jumped = jumped; jumped {
			t.o.alarm("clock", "the wall clock jumped and is not followed", "by", r.jump)
		} else {
			t.o.log.Info("the wall clock is followed again")
		}
	}
	if ahead := r.ahead > maxJump; ahead != t.ahead {
		if t.ahead = ahead; ahead {
			t.o.alarm("clock", "the log's time is ahead of the wall clock and goes on from there", "by", r.ahead)
		} else {
			t.o.log.Info("the wall clock has caught up with the log's time")
		}
	}
	return max(t.last, r.time)
}
