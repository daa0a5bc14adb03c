package journal

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/term"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

func (o *Owner) now() term.Clock { return term.Clock{Wall: o.clock.Wall(), Mono: o.clock.Elapsed()} }

// time returns the time that a record would have now.
func (o *Owner) time() scalar.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.machine.Time(o.now())
}

func (o *Owner) phase() term.Phase {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.machine.Phase()
}

// step passes an input to the machine and performs its output.
func (o *Owner) step(in term.Input) (term.Plan, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var began time.Time
	if o.tracer != nil {
		began = time.Now()
	}
	o.out.Reset()
	err := o.machine.Step(o.now(), in, &o.out)
	o.publish() // before the replies: a caller that has its answer may submit again
	if failed := o.perform(); err == nil {
		err = failed
	}
	if o.tracer != nil {
		o.trace(began)
	}
	return o.out.Plan, err
}

// mustStep passes an input that cannot fail.
func (o *Owner) mustStep(in term.Input) {
	if _, err := o.step(in); err != nil {
		o.log.Error("a term refused an input", "error", err)
	}
}

// perform carries out the output of a step.
func (o *Owner) perform() error {
	out := &o.out
	for _, n := range out.Notes {
		o.write(n)
	}
	if out.Producer != 0 {
		if err := o.io.open(out.Producer); err != nil {
			return err
		}
	}
	if len(out.Append) > 0 {
		counted := out.Producer == 0 // what comes with a new producer is a term record
		if counted {
			for _, a := range out.Append {
				o.built.Add(*a.Entry)
			}
		}
		o.io.produce(out.Append, counted)
	}
	for _, r := range out.Replies {
		r.Request.Ref.(*request).deliver(o, answer{r.Result, r.Err})
	}
	for _, r := range out.Replies {
		r.Request.Ref.(*request).delivered()
	}
	if out.AskEnd != 0 {
		o.io.askEnd(out.AskEnd)
	}
	for _, q := range out.ReadAt {
		o.io.readAt(q)
	}
	return nil
}

// write logs a note, or raises the alarm that it is.
func (o *Owner) write(n term.Note) {
	switch {
	case n.OfRules:
		o.alarmOfRules(n.Time, decide.Alarm{Kind: n.Alarm, Message: n.Message}, n.Args...)
	case n.Alarm != "":
		o.countAlarm(n.Alarm)
		o.logAlarm(n.Alarm, n.Message, n.Args...)
	default:
		o.log.Log(context.Background(), n.Level, n.Message, n.Args...)
	}
}

// trace passes the decision and the complete records of the last step to the tracer. began is when the step began.
func (o *Owner) trace(began time.Time) {
	ended := time.Now()
	if o.out.Decided != nil {
		r := o.out.Decided.Ref.(*request)
		r.traced.Decided(r.submitted, began, ended)
	}
	elapsed := o.clock.Elapsed()
	for _, c := range o.out.Completed {
		var traced *trace.Command
		if c.Request != nil {
			traced = c.Request.Ref.(*request).traced
		}
		o.tracer.Appended(traced, trace.RecordOf(o.journal, *c.Entry), ended.Add(c.At-elapsed), ended)
	}
}

// status is the part of the machine's state that other goroutines see.
type status struct {
	accepting bool
	stalled   bool
	serving   int64 // the number of the valid term, or 0
}

// publish makes the status visible, and sees to the requests that wait while no term is served.
func (o *Owner) publish() {
	phase := o.machine.Phase()
	since, stalled := o.machine.Stalled()
	now := status{accepting: o.machine.Accepting(), stalled: stalled}
	if phase == term.Serving || phase == term.Draining {
		now.serving = o.machine.Standing().Term
	} else {
		o.expireLater()
	}
	if now == o.published {
		return
	}
	o.inbox.set(now.accepting) // first: a caller that observes the owner serving may submit
	o.serving.Store(now.serving)
	o.stalled.Store(0)
	o.meters.stalled.Set(0)
	if stalled {
		o.stalled.Store(time.Now().Add(since - o.clock.Elapsed()).UnixMilli())
		o.meters.stalled.Set(1)
	}
	if now.serving != o.published.serving {
		o.meters.serving.Set(float64(min(now.serving, 1)))
		o.meters.term.Set(float64(now.serving))
	}
	o.published = now
}

// expireLater sets a timer for the earliest deadline of a request. A served term needs none: the owner's goroutine ticks.
func (o *Owner) expireLater() {
	if !o.machine.Unanswered() {
		return
	}
	wait := max(o.out.WakeAt-o.clock.Elapsed(), time.Millisecond)
	if o.expiry == nil {
		o.expiry = time.AfterFunc(wait, func() { o.mustStep(term.Expire{}) })
		return
	}
	o.expiry.Reset(wait)
}

// report sets the gauges of the term.
func (o *Owner) report() {
	o.mu.Lock()
	s := o.machine.Stats()
	o.mu.Unlock()
	m := &o.meters
	m.window.Set(float64(s.InFlight))
	m.windowBytes.Set(float64(s.InFlightBytes))
	m.held.Set(float64(s.Deferred))
	m.unseen.Set(float64(s.Unseen))
	m.queue.Set(float64(s.Queue))
	m.acknowledged.Set(float64(s.Acknowledged))
	m.clockOff.Set(s.ClockOff.Seconds())
}

// clearGauges resets the gauges of a term that has ended.
func (o *Owner) clearGauges() {
	m := &o.meters
	for _, gauge := range []prometheus.Gauge{m.stalled, m.window, m.windowBytes, m.held, m.unseen, m.clockOff} {
		gauge.Set(0)
	}
}
