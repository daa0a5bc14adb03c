package journal

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// clockWithin is the timeout for reading the reference clock.
const clockWithin = 2 * time.Second

// askClock reads the reference clock. The duration of the call is interpreted in this node's favor.
func (o *Owner) askClock(ctx context.Context) term.ReferenceClock {
	if o.cfg.OtherClock == nil {
		return term.ReferenceClock{}
	}
	ctx, cancel := context.WithTimeout(ctx, clockWithin)
	defer cancel()
	before, began := o.clock.Wall(), o.clock.Elapsed()
	t, err := o.cfg.OtherClock(ctx)
	if err != nil {
		o.log.Info("the clock to hold this node's against does not answer", "error", err)
		return term.ReferenceClock{}
	}
	took := o.clock.Elapsed() - began
	off := before.Sub(t)
	if off < 0 {
		off = min(off+took, 0)
	}
	return term.ReferenceClock{Known: true, Time: t, Off: off}
}

// checkClock returns a *term.ClockError if this node's wall clock is too far from the log's last time or from the reference
// clock, and the configuration does not accept that.
func (o *Owner) checkClock(last scalar.Time, reference term.ReferenceClock) error {
	err := term.CheckClock(o.shard, o.clock.Wall(), last, reference)
	if err != nil && o.cfg.AcceptClock {
		o.log.Warn("this node's clock is off and accepted", "error", err)
		return nil
	}
	return err
}

// ClockOff returns a *term.ClockError while this node's clock prevents it from taking a term. last is the time of the last
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
