package journal

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// maxOff is how far a node's wall clock may be behind the log's last record, or off a reference clock, for the node to
// take a term.
const maxOff = time.Minute

// clockWithin is the timeout for reading the reference clock.
const clockWithin = 2 * time.Second

// otherClock is the reading of a reference clock, if it answered.
type otherClock struct {
	known bool
	time  time.Time     // the time of the reference clock
	off   time.Duration // how far this node's wall clock is ahead of it; negative if behind
}

// askClock reads the reference clock. The duration of the call is interpreted in this node's favor.
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

// checkClock returns a *ClockError if this node's wall clock is too far from the log's last time or from the reference
// clock.
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

// ClockOff returns a *ClockError while this node's clock prevents it from taking a term. last is the time of the last
// known record. The first such error raises an alarm. ClockOff may be called while the owner runs.
func (o *Owner) ClockOff(ctx context.Context, last scalar.Time) error {
	err := o.checkClock(last, o.askClock(ctx))
	o.noteClock(err)
	return err
}

// ClockRefused reports whether this node's clock prevented it from taking a term at the latest check.
func (o *Owner) ClockRefused() bool { return o.clockOff.Load() }

// noteClock records the result of a clock check, and raises an alarm at the first error after a success.
func (o *Owner) noteClock(err error) {
	if was := o.clockOff.Swap(err != nil); err != nil && !was {
		o.alarm("clock", "this node takes no term with its clock; --accept-clock has it do so", "error", err)
	}
}

// setClock makes the log's last time the lower bound of the owner's clock. It also follows the wall clock from its
// current time, unless the wall clock has jumped by more than maxOff since this process began to follow it and neither
// a reference clock nor AcceptClock confirms the new time.
func (t *term) setClock(other otherClock) {
	c := t.o.clock
	if jump := c.now().jump; other.known || t.o.cfg.AcceptClock || jump <= maxOff && jump >= -maxOff {
		c.follow()
	}
	c.goOn(t.last)
}

// now returns the time for the next decision, which is never before the last record's. It raises alarms for a wall
// clock that jumps and for a log time ahead of the wall clock.
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
