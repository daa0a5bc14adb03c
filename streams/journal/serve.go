package journal

import (
	"context"
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// serve has the machine decide commands until the context ends, after which it drains, or until an error ends the term.
func (o *Owner) serve(ctx context.Context, t *termIO) error {
	if _, err := o.step(term.Serve{}); err != nil {
		return err
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := ctx.Done()
	for {
		// Process pending results before the next decision: they may end the term, and they free space in the window.
		// Only some of them, because clients whose commands are refused may submit without end.
		for n := 0; n < maxInputs && t.pending(); n++ {
			if err := o.receive(t, nil, nil); err != nil {
				return err
			}
		}
		if stopped != nil && ctx.Err() != nil {
			stopped = nil
			if plan, err := o.step(term.Drain{}); err != nil || plan.Done {
				return err
			}
		}
		if stopped == nil && o.cfg.Client.Gone() { // results not processed yet stay unknown
			return errors.New("journal: stopped, and the brokers will acknowledge nothing more")
		}
		plan, err := o.step(term.Tick{})
		if err != nil || plan.Done {
			return err
		}
		if plan.More {
			continue
		}
		o.report()
		o.logRepeatedAt(plan.Time)
		timer.Reset(plan.WakeAt - o.clock.Elapsed())
		if err := o.receive(t, timer.C, stopped); err != nil {
			return err
		}
	}
}

// maxInputs is the number of pending inputs that are processed before the next decision.
const maxInputs = 16

// pending reports whether receive would return without waiting. Its checks cost less than a select.
func (t *termIO) pending() bool {
	return len(t.acks.ready) > 0 || len(t.tail) > 0 || len(t.ends) > 0 || len(t.lost) > 0 || len(t.o.probes) > 0 || len(t.o.inbox.ready) > 0
}

// receive waits for one input and passes it to the machine. It also returns at a timeout and when the owner is stopped.
func (o *Owner) receive(t *termIO, timeout <-chan time.Time, stopped <-chan struct{}) error {
	var in term.Input
	var ended error // of the reader, after its last batch
	select {
	case <-t.acks.ready:
		in = t.acknowledged()
	case b := <-t.tail:
		in, ended = term.Read{Entries: b.entries, Next: b.next}, b.err
	case end := <-t.ends:
		in = end
	case err := <-t.lost:
		return err
	case reply := <-o.probes:
		reply <- o.standing()
		return nil
	case <-o.inbox.ready:
		t.requests = o.inbox.take(t.requests)
		in = term.Submit{Requests: t.requests}
	case <-timeout:
		return nil
	case <-stopped:
		return nil
	}
	if _, err := o.step(in); err != nil {
		return err
	}
	clear(t.acked)
	clear(t.requests)
	return ended
}

// logRepeatedAt logs the alarms of the rules that were raised again and not logged for a minute.
func (o *Owner) logRepeatedAt(now scalar.Time) {
	if now == 0 { // nothing could be decided
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.logRepeated(now)
}
