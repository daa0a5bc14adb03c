package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// errTooLarge says that a decision does not fit into a record.
var errTooLarge = errors.New("the record would be too large")

// heldReply is an answer that waits until the tip it was decided on is acknowledged.
type heldReply struct {
	tip     int64
	request *request
	slot    *slot // the record that answers, or
	began   int64 // with a slot that ends the work of a record before it: the sequence of that record
	err     error // the refusal, or the failure of the rules, or
	repeat  int64 // the sequence of the record that answers again
	void    bool  // with err: the command's record could not be applied, and could not be in a later term either
}

// pending is a request whose record leaves work that goes on in steps.
type pending struct {
	request  *request
	slot     *slot // of the record, if this term decided it
	sequence int64 // of the record
}

func (t *term) stamp(now scalar.Time) decide.Stamp {
	return decide.Stamp{Journal: t.id, Sequence: t.tip.Sequence + 1, Time: now}
}

// decide decides one command. Only a failure of the rules that leaves the state unusable is returned.
//
// The state is ahead of the log by what is in flight, and the log may never catch up with it: another owner's taken record
// may come first. So nothing is answered here. Whatever the outcome (a record, a refusal, a repetition, a failure), it is
// held until the tip that it was decided on is complete, or kept for the next term if this one ends before.
func (t *term) decide(now scalar.Time, r *request) error {
	if r.traced != nil {
		defer func(began time.Time) { r.traced.Decided(r.since, began, time.Now()) }(time.Now())
	}
	at := t.stamp(now)
	d, err := t.guard(func() (decide.Decision, error) { return t.state.Decide(at, r.command) })
	var s *slot
	switch {
	case err != nil:
	case len(d.Events) > 0:
		s, err = t.build(at, r.command.Recorded(), d)
	case !d.Repeated:
		err = errors.New("a decision without events must be a repetition or a refusal")
	case d.Repeat < 0 || d.Repeat > t.tip.Sequence:
		err = fmt.Errorf("it repeats record %d after record %d", d.Repeat, t.tip.Sequence)
	}
	var refusal *decide.Refusal
	switch {
	case errors.Is(err, errTooLarge):
		refusal = decide.Refuse(decide.TooLarge, CodeRecordTooLarge, "what the command causes does not fit into one record")
		fallthrough
	case errors.As(err, &refusal):
		if refusal.Alarm != "" {
			t.o.alarmOfRules(now, decide.Alarm{Kind: refusal.Alarm, Message: refusal.Message}, "command", r.command.ID, "code", refusal.Code)
		}
		t.hold(heldReply{request: r, err: &submit.RefusedError{Refusal: refusal, AsOf: t.o.position(t.tip.Sequence)}}, harmless)
	case err != nil:
		// Held like any other answer: what it was decided on may never become part of the log, and the rules may not fail
		// on what does.
		t.o.alarm("decide", "the rules failed on a command", "command", r.command.ID, "type", r.command.Type, "error", err)
		t.hold(heldReply{request: r, err: &submit.DecideError{CommandID: r.command.ID, Cause: err}}, harmless)
	case s == nil:
		// Who gives up on a repetition may have to be told that the outcome is unknown: that of the record it repeats is.
		fate := harmless
		if d.Repeat > t.flight.last.Sequence {
			fate = uncertain
		}
		t.hold(heldReply{request: r, repeat: d.Repeat}, fate)
	default:
		s.request = r // before append, after which the producer may speak of the slot at any time
		if r.alone {
			t.alone = s
		}
		if err := t.append(s); err != nil {
			// The term ends with it. The answer is kept, and never the command: decided anew, it would end every term.
			t.hold(heldReply{request: r, err: &submit.DecideError{CommandID: r.command.ID, Cause: err}, void: true}, harmless)
			return err
		}
		if d.Pending {
			t.pending[r.command.ID] = pending{r, s, s.entry.Position.Sequence}
		} else {
			t.hold(heldReply{request: r, slot: s}, uncertain)
		}
	}
	return nil
}

// guard runs a decision of the rules and turns a panic into an error. Decide never touches the state, so a panic in
// it leaves nothing behind.
func (t *term) guard(run func() (decide.Decision, error)) (d decide.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			t.o.log.Error("the rules panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return run()
}

// build makes the record of a decision and everything else that can fail, before the state changes.
func (t *term) build(at decide.Stamp, c decide.Recorded, d decide.Decision) (*slot, error) {
	outcome := d.Outcome
	if outcome == "" {
		outcome = decide.Accepted
	}
	r := &record.Record{Sequence: at.Sequence, Prev: t.tip.Hash, Time: at.Time, Command: c, Outcome: outcome, Events: d.Events}
	value, err := record.Encode(t.o.scratch[:0], r)
	if err != nil {
		return nil, err
	}
	t.o.scratch = value
	value = bytes.Clone(value) // of its very size, and no larger for having grown
	if len(value) > t.o.cfg.Rules.Limit() {
		return nil, fmt.Errorf("%w: %d bytes", errTooLarge, len(value))
	}
	return &slot{entry: record.Entry{Record: r, Journal: t.id, Value: value,
		Position: record.Position{Offset: -1, Sequence: r.Sequence, Hash: sha256.Sum256(value)}}}, nil
}

// append applies the record to the state and has it appended to the log. Nothing after Evolve can fail here.
func (t *term) append(s *slot) (err error) {
	if err := t.evolve(s.entry); err != nil {
		return err
	}
	t.tip, t.last = s.entry.Position, s.entry.Record.Time
	s.at = time.Now()
	t.flight.add(s)
	t.o.built.Add(s.entry)
	t.gathered.add(s)
	return nil
}

// evolve applies a record. Evolve is total by contract; where it panics all the same the state is void, so the term
// ends before the record is appended.
func (t *term) evolve(e record.Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.o.alarm("evolve", "the rules panicked on applying a record", "sequence", e.Record.Sequence, "panic", p,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("applying record %d: panic: %v", e.Record.Sequence, p)
		}
	}()
	r := e.Record
	t.state.Evolve(e.Stamp(), r.Command, r.Outcome, r.Events)
	return nil
}

// step decides the next piece of due work. One that fails is tried with a single entry, and if that fails too the
// entry is set aside, on record, for an operator to look at.
func (t *term) step(now scalar.Time, urgency decide.Urgency) error {
	at := t.stamp(now)
	s, d, err := t.tryStep(at, func() decide.Decision { return t.state.Step(at, false) })
	if err != nil {
		t.o.log.Warn("a step failed and is tried with one entry", "error", err)
		s, d, err = t.tryStep(at, func() decide.Decision { return t.state.Step(at, true) })
	}
	if err != nil {
		t.o.alarm("set_aside", "due work failed even alone and is set aside", "error", err)
		cause := causeOf(err)
		s, d, err = t.tryStep(at, func() decide.Decision { return t.state.SetAside(at, cause) })
	}
	if err == nil {
		s.aside = urgency == decide.Alternate
		err = t.append(s)
	}
	if err != nil {
		return fmt.Errorf("%w on due work: %w", errRules, err)
	}
	if d.Alarm.Kind != "" { // of a record that is on its way to the log, and not of a decision that came to nothing
		t.o.alarmOfRules(now, d.Alarm, "sequence", t.tip.Sequence)
	}
	if !d.Finishes.IsZero() {
		if p, ok := t.pending[d.Finishes]; ok {
			delete(t.pending, d.Finishes)
			t.hold(heldReply{request: p.request, slot: s, began: p.sequence}, uncertain)
		}
	}
	return nil
}

// maxCause is how much of an error a record keeps.
const maxCause = 1024

// causeOf returns the text of an error in a form that fits into a record, whatever the rules panicked with.
func causeOf(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "\uFFFD")
}

// tryStep builds the record of a step. A record of the engine's own carries its type as the command's and as the
// first event's.
func (t *term) tryStep(at decide.Stamp, run func() decide.Decision) (*slot, decide.Decision, error) {
	d, err := t.guard(func() (decide.Decision, error) { return run(), nil })
	if err != nil {
		return nil, d, err
	}
	if len(d.Events) == 0 {
		return nil, d, errors.New("the step does nothing")
	}
	c := decide.Recorded{ID: record.NewCommandID(at.Time.Std()), Type: d.Events[0].EventType(), Actor: decide.Engine}
	s, err := t.build(at, c, d)
	return s, d, err
}

// hold keeps a reply until the tip that it was decided on is acknowledged: at once, if nothing is in flight.
func (t *term) hold(h heldReply, fate int32) {
	h.tip = t.tip.Sequence
	if !h.request.move(fate) {
		return
	}
	if h.err != nil {
		t.barrier.add(h)
	} else {
		t.held.push(h)
	}
	t.release()
}

// release answers what was decided on no more than is complete.
func (t *term) release() {
	for t.held.len() > 0 && t.held.peek().tip <= t.flight.last.Sequence {
		h := t.held.pop()
		if h.slot != nil {
			t.o.respond(h.request, &h.slot.entry, false)
		} else {
			t.repeat(h)
		}
	}
	for {
		h, ok := t.barrier.pop(t.flight.last.Sequence, t.flight.accounted())
		if !ok {
			return
		}
		h.request.answer(submit.Result{}, h.err)
	}
}

func (o *Owner) respond(r *request, e *record.Entry, repeated bool) {
	r.answer(submit.Result{Position: o.position(e.Position.Sequence), Entry: e, Repeated: repeated}, nil)
}

// repeat answers with a record of the past: from memory, or else from the log.
func (t *term) repeat(h heldReply) {
	if e, ok := t.o.recent.find(h.repeat); ok {
		t.o.respond(h.request, &e, true)
		return
	}
	o, r, sequence := t.o, h.request, h.repeat
	from := o.anchors.Below(sequence)
	t.reads.Go(func() {
		o.reading <- struct{}{}
		defer func() { <-o.reading }()
		ctx, cancel := context.WithTimeout(context.Background(), o.cfg.Deadline-time.Since(r.since))
		defer cancel()
		e, err := o.cfg.Client.ReadAt(ctx, o.cfg.Rules, o.cfg.Partition, from, sequence)
		if err != nil {
			o.log.Warn("reading a record to repeat its answer", "sequence", sequence, "error", err)
			r.answer(submit.Result{}, notAccepted("the record that answers it could not be read"))
			return
		}
		o.respond(r, &e, true)
	})
}
