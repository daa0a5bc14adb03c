package whatif

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// cumulate decides a record in a cumulative world, and applies the events of that decision. Before the record of a term the engine may
// have been down, so that nothing is done. A statement of liabilities is about the recorded accounts, and is not decided.
func (r *run) cumulate(e record.Entry) error {
	recorded := decide.Decision{Outcome: e.Record.Outcome, Events: e.Record.Events}
	switch e.Record.Command.Type {
	case record.TypeGenesis, record.TypeTermStarted, trading.CommandRecordLiabilities:
		r.report.Undecided++
		r.addRecorded(e)
		return r.apply(e.Stamp(), e.Record.Command, recorded)
	}
	if err := r.catchUp(e.Record.Time); err != nil {
		return err
	}
	lacks := r.lacks(e)
	if lacks != "" && r.diverged {
		return fmt.Errorf("%s %s, so it can't be decided in a world that differs: begin after it", e.Record.Command.Type, lacks)
	}
	d, refusal, err := r.decide(e)
	switch {
	case err != nil:
		return err
	case refusal == nil && r.equals(e, d):
		r.same(e)
	case lacks != "":
		r.notRedecidable(e)
		d = recorded
	case refusal != nil:
		r.diverged = true
		r.compareDecision(e, refusal, "")
		return nil
	default:
		r.diverged = true
		r.compareDecision(e, effectsOf(d.Outcome, d.Events), "")
		r.pair(e.Record, d.Events)
	}
	return r.apply(e.Stamp(), e.Record.Command, d)
}

// evidenceOf returns the evidence in a record.
func evidenceOf(e record.Entry) *decide.Evidence {
	return &decide.Evidence{At: e.Stamp(), Command: e.Record.Command, Input: e.Record.Input, Events: e.Record.Events}
}

// lacks returns why this build may not decide the bytes of a record, although the rules permit them, or "". If the bytes differ on the
// recorded state, the verdict is redecide.NotRedecidable.
func (r *run) lacks(e record.Entry) string {
	if r.recorded.RecordsInputs() {
		return ""
	}
	if r.journal.Payloads.Lacks(evidenceOf(e)) {
		return "does not hold its input"
	}
	if value, err := record.Encode(nil, e.Record); err != nil || !bytes.Equal(value, e.Value) {
		return "has an event of a version that is no longer written"
	}
	return ""
}

// decide decides a recorded command or a recorded step in the other world. If the command is refused or if no work is due, it returns
// the effects of that instead of a decision.
func (r *run) decide(e record.Entry) (decide.Decision, *effects, error) {
	if e.Record.Command.Actor == decide.Engine {
		return r.recordedStep(e)
	}
	return r.recordedCommand(e)
}

// recordedCommand decides a recorded command.
func (r *run) recordedCommand(e record.Entry) (decide.Decision, *effects, error) {
	evidence := evidenceOf(e)
	c, known, err := r.journal.Payloads.Reconstruct(evidence)
	if !known {
		err = fmt.Errorf("this build has no command %s", evidence.Command.Type)
	}
	if err != nil {
		return decide.Decision{}, nil, err
	}
	r.translate(c.Payload)
	d, err := decide.Guard(func() (decide.Decision, error) { return r.other.Decide(evidence.At, c) })
	switch {
	case err != nil:
		return d, refusedFor(err), nil
	case d.Repeated:
		return d, refused(fmt.Sprintf("repeats record %d", d.Repeat)), nil
	}
	return d, nil, nil
}

// recordedStep does the work that is due in the other world at the time of a recorded step. The first rules do not record whether a step
// was limited to one entry, so a step with one entry is decided if its bytes are those of the record.
func (r *run) recordedStep(e record.Entry) (decide.Decision, *effects, error) {
	evidence := evidenceOf(e)
	if r.other.Due(evidence.At.Time) == decide.Nothing {
		return decide.Decision{}, refused(notDue), nil
	}
	var in decide.StepInput
	if err := evidence.ReadInput(&in); err != nil {
		return decide.Decision{}, nil, err
	}
	if d, ok := r.setAside(evidence); ok {
		return d, nil, nil
	}
	d, err := r.step(evidence.At, in.Single)
	if err == nil && !r.recorded.RecordsInputs() && !r.equals(e, d) {
		if single, failed := r.step(evidence.At, true); failed == nil && r.equals(e, single) {
			return single, nil, nil
		}
	}
	return d, nil, err
}

// setAside sets the next entry aside if the record sets the same one aside. The build that made the record may have failed where this
// one does not.
func (r *run) setAside(evidence *decide.Evidence) (decide.Decision, bool) {
	recorded, ok := decide.EventOf[*decide.DueSetAside](evidence)
	if !ok {
		return decide.Decision{}, false
	}
	d := r.other.SetAside(evidence.At, recorded.Error)
	decided, ok := decide.EventOf[*decide.DueSetAside](&decide.Evidence{Events: d.Events})
	return d, ok && decided.Entry == r.entryName(recorded.Entry)
}

// step decides the next due work as the owner of a journal does: if a step fails, a step with one entry is tried, and if that fails,
// the entry is set aside.
func (r *run) step(at decide.Stamp, single bool) (decide.Decision, error) {
	for {
		d, err := decide.GuardStep(func() decide.Decision { return r.other.Step(at, single) })
		if err == nil {
			_, err = r.encode(at, decide.Recorded{Type: d.Events[0].EventType(), Actor: decide.Engine}, d)
		}
		if err == nil || errors.Is(err, decide.ErrNoStep) {
			return d, err
		}
		if single {
			return decide.GuardStep(func() decide.Decision { return r.other.SetAside(at, decide.CauseOf(err)) })
		}
		single = true
	}
}

// catchUp does the work that is due in the other world up to a time and not in the log. The engine of that world is as fast as the
// recorded one: it does such work when it becomes due, but work that is due in both worlds waits for the recorded step.
func (r *run) catchUp(now scalar.Time) error {
	for {
		at := r.stamp
		due, exists := r.other.NextDue()
		switch at.Time = max(r.other.Time(), due); {
		case !exists || at.Time > now:
			return nil
		case r.other.Due(at.Time) > r.recorded.Due(at.Time):
		case r.other.Due(now) > r.recorded.Due(now):
			at.Time = now
		default:
			return nil
		}
		if err := r.furtherStep(at); err != nil {
			return err
		}
	}
}

// furtherStep decides and applies a step that only the other world has. at is the stamp of the last record, with another time. The ids
// that derive from it must not be those of a record, so the stamp gets the id of another journal.
func (r *run) furtherStep(at decide.Stamp) error {
	r.steps++
	at.Journal = at.Derive(1<<31 - r.steps)
	d, err := r.step(at, false)
	if err != nil {
		return err
	}
	r.diverged = true
	made := effectsOf(d.Outcome, d.Events)
	r.add(nil, made.money, r.at)
	r.differs(Difference{Position: r.at, Time: at.Time, Type: d.Events[0].EventType(), Kind: Steps, Recorded: []string{}, WhatIf: append(made.others, made.fills...)})
	if err := r.apply(at, decide.Recorded{Type: d.Events[0].EventType(), Actor: decide.Engine}, d); err != nil {
		return err
	}
	r.compareLiquidations(r.at, at.Time)
	return nil
}

// apply applies a decision to the other world, under the overrides.
func (r *run) apply(at decide.Stamp, c decide.Recorded, d decide.Decision) error {
	events, err := r.inForce.events(r.other, d.Events)
	if err != nil {
		return err
	}
	r.evolve(at, c, d.Outcome, events)
	return nil
}

// equals reports whether the record of a decision has the bytes of an entry.
func (r *run) equals(e record.Entry, d decide.Decision) bool {
	if len(d.Events) == 0 {
		return false
	}
	value, err := r.encode(e.Stamp(), e.Record.Command, d)
	return err == nil && bytes.Equal(value, e.Value)
}

// encode returns the value of the record of a decision.
func (r *run) encode(at decide.Stamp, c decide.Recorded, d decide.Decision) ([]byte, error) {
	return record.EncodeWithin(nil, &record.Record{Sequence: at.Sequence, Prev: at.Prev, Time: at.Time, Command: c, Input: d.Input,
		Outcome: d.Outcome, Events: d.Events}, r.journal.Limit)
}

// pair keeps the code of an order or a withdrawal, if a command gives it another one in the other world. A code derives from the number
// of events before, such as charges or a leverage.
func (r *run) pair(recorded *record.Record, decided []decide.Event) {
	if recorded.Command.Actor == decide.Engine {
		return
	}
	was, is := codeIn(recorded.Events), codeIn(decided)
	if !was.IsZero() && !is.IsZero() && was != is {
		r.codes[was] = is
	}
}

// codeIn returns the code of the order or of the withdrawal that a command's events are about first, or zero.
func codeIn(events []decide.Event) scalar.ID {
	for _, e := range events {
		switch e := e.(type) {
		case trading.OrderEvent:
			return e.After().Code
		case *trading.WithdrawalRequested:
			return e.Code
		}
	}
	return scalar.ID{}
}

// translate replaces the code in a recorded command by that of the other world.
func (r *run) translate(p any) {
	switch p := p.(type) {
	case *trading.AmendOrder:
		p.OrderCode = r.code(p.OrderCode)
	case *trading.CancelOrder:
		p.OrderCode = r.code(p.OrderCode)
	case *trading.CompleteWithdrawal:
		p.Code = r.code(p.Code)
	case *trading.CancelWithdrawal:
		p.Code = r.code(p.Code)
	case *decide.PutBackDue:
		p.Entry = r.entryName(p.Entry)
	}
}

// code returns the code in the other world of an order or a withdrawal.
func (r *run) code(recorded scalar.ID) scalar.ID {
	if is, ok := r.codes[recorded]; ok {
		return is
	}
	return recorded
}

// entryName returns the name in the other world of due work. The name ends with the code of an order if the work is about one.
func (r *run) entryName(recorded string) string {
	n := strings.LastIndexByte(recorded, '/') + 1
	code, err := scalar.ParseID(recorded[n:])
	if err != nil {
		return recorded
	}
	return recorded[:n] + r.code(code).String()
}
