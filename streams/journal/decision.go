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

// errTooLarge reports that a decision does not fit into a record.
var errTooLarge = errors.New("the record would be too large")

// heldReply is an answer that waits for the acknowledgement of the tip that it was decided on.
type heldReply struct {
	tip     int64
	request *request
	slot    *slot // the record that is the answer, or
	began   int64 // set if slot is the step that finishes an earlier record's work: the sequence of that earlier record
	err     error // the refusal, or the error of the rules, or
	repeat  int64 // the sequence of the earlier record that is repeated as the answer
	void    bool  // with err: applying the command's record failed, and would fail in any later term
}

// pending is a request with a record that starts work which later steps complete.
type pending struct {
	request  *request
	slot     *slot // of the record, if this term decided it
	sequence int64 // of the record
}

func (t *term) stamp(now scalar.Time) decide.Stamp {
	return decide.Stamp{Journal: t.id, Sequence: t.tip.Sequence + 1, Time: now}
}

// decide decides one command. It returns an error only if the rules have left the state unusable.
//
// The state is ahead of the log by the records in flight, and the log may never reach it: another owner's taken record
// may come first. So decide answers nothing directly. Any outcome (a record, a refusal, a repetition, an error) is held
// until the tip that it was decided on is complete, or carried to the next term if this one ends first.
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
		// Hold it like any other answer: the state behind the decision may never become part of the log, and the same
		// command may succeed on the state that does.
		t.o.alarm("decide", "the rules failed on a command", "command", r.command.ID, "type", r.command.Type, "error", err)
		t.hold(heldReply{request: r, err: &submit.DecideError{CommandID: r.command.ID, Cause: err}}, harmless)
	case s == nil:
		// If the client gives up waiting, the outcome of the repetition is as uncertain as that of the record it
		// repeats.
		fate := harmless
		if d.Repeat > t.flight.last.Sequence {
			fate = uncertain
		}
		t.hold(heldReply{request: r, repeat: d.Repeat}, fate)
	default:
		s.request = r // before append: afterwards the producer may report on the slot at any time
		if r.alone {
			t.alone = s
		}
		if err := t.append(s); err != nil {
			// This error ends the term. Carry the error to the next term and not the command, which would end every
			// term.
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

// guard runs a decision of the rules and turns a panic into an error. Decide never changes the state, so the state is
// still valid after a panic.
func (t *term) guard(run func() (decide.Decision, error)) (d decide.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			t.o.log.Error("the rules panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return run()
}

// build makes the record of a decision. Every operation that can fail comes here, before the state changes.
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
	value = bytes.Clone(value) // with no spare capacity
	if len(value) > t.o.cfg.Rules.Limit() {
		return nil, fmt.Errorf("%w: %d bytes", errTooLarge, len(value))
	}
	return &slot{entry: record.Entry{Record: r, Journal: t.id, Value: value,
		Position: record.Position{Offset: -1, Sequence: r.Sequence, Hash: sha256.Sum256(value)}}}, nil
}

// append applies the record to the state and queues it for the log. Nothing after Evolve can fail.
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

// evolve applies a record. Evolve is total by contract. If it panics anyway, the state is unusable and the term ends
// before the record is appended.
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

// step decides the next due work. If that fails, step tries a single entry. If that fails again, step appends a record
// that sets the entry aside for an operator.
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
	if d.Alarm.Kind != "" { // only after append: the alarm belongs to a record and not to a discarded decision
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

// maxCause is the number of bytes of an error's text that a record stores.
const maxCause = 1024

// causeOf returns the text of an error as valid UTF-8, cut to maxCause bytes first. The rules may panic with arbitrary
// text.
func causeOf(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxCause)], "\uFFFD")
}

// tryStep builds the record of a step. A record of the engine has the type of its first event as its command type.
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

// hold delays a reply until the tip that it was decided on is acknowledged. If nothing is in flight it answers
// immediately, except that a refusal always waits for the barrier.
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

// release sends the held replies that have a complete tip.
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

// repeat answers a request with an earlier record, from memory or else from the log.
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
