package term

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

func (m *Machine) stamp(now scalar.Time) decide.Stamp {
	return decide.Stamp{Journal: m.t.id, Sequence: m.t.tip.Sequence + 1, Time: now, Prev: m.t.tip.Hash}
}

// decide decides one command. It returns an error only if the rules have left the state unusable.
//
// The state is ahead of the log by the records in flight, and the log may never reach it: another owner's term record may
// come first. So decide answers nothing directly. Any outcome (a record, a refusal, a repetition, an error) is held until
// the tip that it was decided on is complete, or carried to the next term if this one ends first.
func (m *Machine) decide(now scalar.Time, r *Request) error {
	m.out.Decided = r
	t, at := &m.t, m.stamp(now)
	d, err := m.guard(func() (decide.Decision, error) { return t.state.Decide(at, r.Command) })
	var s *inflightRecord
	switch {
	case err != nil:
	case len(d.Events) > 0:
		s, err = m.build(at, r.Command.Recorded(), d)
	case !d.Repeated:
		err = errors.New("a decision without events must be a repetition or a refusal")
	case d.Repeat < 0 || d.Repeat > t.tip.Sequence:
		err = fmt.Errorf("it repeats record %d after record %d", d.Repeat, t.tip.Sequence)
	}
	switch {
	case err != nil:
		m.holdError(now, r, err)
	case s == nil:
		// If the client gives up waiting, the outcome of the repetition is as uncertain as that of the record it repeats.
		state := noEffect
		if d.Repeat > t.flight.last.Sequence {
			state = inDoubt
		}
		m.hold(deferredReply{request: r, repeat: d.Repeat}, state)
	case m.size.refuses(m.now.Mono, len(s.entry.Value)):
		m.refuseForSize(r)
	default:
		return m.appendFor(r, s, d.Pending)
	}
	return nil
}

// holdError holds the answer to a command that has no record. Even an error of the rules is held like any other answer: the
// state behind the decision may never become part of the log, and the same command may succeed on the state that does.
func (m *Machine) holdError(now scalar.Time, r *Request, err error) {
	var refusal *decide.Refusal
	if errors.Is(err, record.ErrTooLarge) {
		err = decide.Refuse(decide.TooLarge, CodeRecordTooLarge, "what the command causes does not fit into one record")
	}
	if errors.As(err, &refusal) {
		if refusal.Alarm != "" {
			m.alarmOfRules(now, decide.Alarm{Kind: refusal.Alarm, Message: refusal.Message}, "command", r.Command.ID, "code", refusal.Code)
		}
		err = &submit.RefusedError{Refusal: refusal, AsOf: m.position(m.t.tip.Sequence)}
	} else {
		m.alarm("decide", "the rules failed on a command", "command", r.Command.ID, "type", r.Command.Type, "error", err)
		err = &submit.DecideError{CommandID: r.Command.ID, Cause: err}
	}
	m.hold(deferredReply{request: r, err: err}, noEffect)
}

// appendFor appends the record of a command and holds its answer.
func (m *Machine) appendFor(r *Request, s *inflightRecord, continues bool) error {
	s.request = r
	if r.unbatched {
		m.t.unbatched = s
	}
	if err := m.append(s); err != nil {
		// This error ends the term. Carry the error to the next term and not the command, which would end every term.
		m.hold(deferredReply{request: r, err: &submit.DecideError{CommandID: r.Command.ID, Cause: err}, void: true}, noEffect)
		return err
	}
	if continues {
		m.t.pending[r.Command.ID] = pending{r, s, s.entry.Position.Sequence}
	} else {
		m.hold(deferredReply{request: r, record: s}, inDoubt)
	}
	return nil
}

// guard runs a decision of the rules and logs a panic.
func (m *Machine) guard(run func() (decide.Decision, error)) (decide.Decision, error) {
	d, err := decide.Guard(run)
	m.notePanic(err)
	return d, err
}

func (m *Machine) notePanic(err error) {
	var p *decide.PanicError
	if errors.As(err, &p) {
		m.note(slog.LevelError, "the rules panicked", "panic", p.Value, "stack", p.Stack)
	}
}

// build makes the record of a decision. Every operation that can fail comes here, before the state changes.
func (m *Machine) build(at decide.Stamp, c decide.Recorded, d decide.Decision) (*inflightRecord, error) {
	outcome := d.Outcome
	if outcome == "" {
		outcome = decide.Accepted
	}
	r := &record.Record{Sequence: at.Sequence, Prev: m.t.tip.Hash, Time: at.Time, Command: c, Input: d.Input, Outcome: outcome, Events: d.Events}
	value, err := record.EncodeWithin(m.scratch[:0], r, m.cfg.Rules.Limit())
	if err != nil {
		return nil, err
	}
	m.scratch = value
	value = bytes.Clone(value) // with no spare capacity
	return &inflightRecord{entry: record.Entry{Record: r, Journal: m.t.id, Value: value,
		Position: record.Position{Offset: -1, Sequence: r.Sequence, Hash: sha256.Sum256(value)}}}, nil
}

// append applies the record to the state and queues it for the log. Nothing after Evolve can fail.
func (m *Machine) append(s *inflightRecord) error {
	if err := m.evolve(s.entry); err != nil {
		return err
	}
	t := &m.t
	t.tip, t.last = s.entry.Position, s.entry.Record.Time
	s.at = m.now.Mono
	t.flight.add(s)
	t.batch.records = append(t.batch.records, s)
	return nil
}

// evolve applies a record. Evolve is total by contract. If it panics anyway, the state is unusable and the term ends
// before the record is appended.
func (m *Machine) evolve(e record.Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.alarm("evolve", "the rules panicked on applying a record", "sequence", e.Record.Sequence, "panic", p,
				"stack", string(debug.Stack()))
			err = fmt.Errorf("applying record %d: panic: %v", e.Record.Sequence, p)
		}
	}()
	r := e.Record
	m.t.state.Evolve(e.Stamp(), r.Command, r.Outcome, r.Events)
	return nil
}

// step decides the next due work. If that fails, step tries a single entry. If that fails again, step appends a record
// that sets the entry aside for an operator.
func (m *Machine) step(now scalar.Time, urgency decide.Urgency) error {
	t, at := &m.t, m.stamp(now)
	s, d, err := m.tryStep(at, func() decide.Decision { return t.state.Step(at, false) })
	if err != nil {
		m.note(slog.LevelWarn, "a step failed and is tried with one entry", "error", err)
		s, d, err = m.tryStep(at, func() decide.Decision { return t.state.Step(at, true) })
	}
	if err != nil {
		m.alarm("set_aside", "due work failed even alone and is set aside", "error", err)
		cause := decide.CauseOf(err)
		s, d, err = m.tryStep(at, func() decide.Decision { return t.state.SetAside(at, cause) })
	}
	if err == nil {
		s.alternating = urgency == decide.Alternate
		err = m.append(s)
	}
	if err != nil {
		return fmt.Errorf("%w on due work: %w", ErrRules, err)
	}
	if d.Alarm.Kind != "" { // only after append: the alarm belongs to a record and not to a discarded decision
		m.alarmOfRules(now, d.Alarm, "sequence", t.tip.Sequence)
	}
	if p, ok := t.pending[d.Finishes]; ok && !d.Finishes.IsZero() {
		delete(t.pending, d.Finishes)
		m.hold(deferredReply{request: p.request, record: s, began: p.sequence}, inDoubt)
	}
	return nil
}

// tryStep builds the record of a step. A record of the engine has the type of its first event as its command type.
func (m *Machine) tryStep(at decide.Stamp, run func() decide.Decision) (*inflightRecord, decide.Decision, error) {
	d, err := decide.GuardStep(run)
	if err != nil {
		m.notePanic(err)
		return nil, d, err
	}
	c := decide.Recorded{ID: m.cfg.NewID(at.Time), Type: d.Events[0].EventType(), Actor: decide.Engine}
	s, err := m.build(at, c, d)
	return s, d, err
}

// due asks the rules for the urgency of due work. A panic of the rules ends the owner, because it would occur again on
// every call.
func (m *Machine) due(now scalar.Time) (urgency decide.Urgency, err error) {
	defer m.failed("saying what is due", &err)
	return m.t.state.Due(now), nil
}

// nextDue asks the rules for the next time at which work is due.
func (m *Machine) nextDue() (at scalar.Time, ok bool, err error) {
	defer m.failed("saying when something is due", &err)
	at, ok = m.t.state.NextDue()
	return at, ok, nil
}

// failed is deferred. It turns a panic of the rules into an error that ends the owner.
func (m *Machine) failed(doing string, err *error) {
	if p := recover(); p != nil {
		m.alarm("due", "the rules panicked on "+doing, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w on %s: panic: %v", ErrRules, doing, p)
	}
}
