package whatif

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// cumulate decides a record in a cumulative world, and applies the events of that decision. Before the record of a term the engine may
// have been down, so that nothing is done. A statement of liabilities is about the recorded accounts, and is not decided.
func (r *run) cumulate(e record.Entry) error {
	switch e.Record.Command.Type {
	case record.TypeGenesis, record.TypeTermStarted, trading.CommandRecordLiabilities:
		r.report.Undecided++
		r.follow(e)
		return nil
	}
	if err := r.catchUp(e.Record.Time); err != nil {
		return err
	}
	if e.Record.Command.Actor == decide.Engine {
		return r.recordedStep(e)
	}
	return r.recordedCommand(e)
}

// recordedCommand decides a recorded command.
func (r *run) recordedCommand(e record.Entry) error {
	evidence := &decide.Evidence{At: e.Stamp(), Command: e.Record.Command, Input: e.Record.Input, Events: e.Record.Events}
	lacks := !r.recorded.RecordsInputs() && r.journal.Payloads.Lacks(evidence)
	if lacks && r.diverged {
		return fmt.Errorf("%s does not hold its input, so it can't be decided in a world that differs: begin after it", e.Record.Command.Type)
	}
	c, known, err := r.journal.Payloads.Reconstruct(evidence)
	if !known {
		return fmt.Errorf("this build has no command %s", e.Record.Command.Type)
	}
	if err != nil {
		return err
	}
	r.translate(c.Payload)
	d, err := decide.Guard(func() (decide.Decision, error) { return r.other.Decide(evidence.At, c) })
	same := err == nil && r.equals(e, d)
	switch {
	case same:
		r.same(e)
	case lacks:
		r.report.NotRedecidable[e.Record.Command.Type]++
		r.follow(e)
		return nil
	case err != nil:
		r.diverged = true
		r.judge(e, refusedFor(err), "")
		return nil
	case d.Repeated:
		r.diverged = true
		r.judge(e, refused(fmt.Sprintf("repeats record %d", d.Repeat)), "")
		return nil
	default:
		r.diverged = true
		r.judge(e, effectsOf(d.Outcome, d.Events), "")
		r.pair(e.Record.Events, d.Events)
	}
	return r.apply(evidence.At, e.Record.Command, d)
}

// recordedStep does the work that is due in the other world at the time of a recorded step.
func (r *run) recordedStep(e record.Entry) error {
	at := e.Stamp()
	if r.other.Due(at.Time) == decide.Nothing {
		r.diverged = true
		r.judge(e, refused(notDue), "")
		return nil
	}
	evidence := &decide.Evidence{Input: e.Record.Input, Events: e.Record.Events}
	var in decide.StepInput
	if err := evidence.ReadInput(&in); err != nil {
		return err
	}
	d, ok := r.setAside(evidence, at)
	if !ok {
		var err error
		if d, err = r.step(at, in.Single); err != nil {
			return err
		}
	}
	if r.equals(e, d) {
		r.same(e)
	} else {
		r.diverged = true
		r.judge(e, effectsOf(d.Outcome, d.Events), "")
	}
	return r.apply(at, e.Record.Command, d)
}

// setAside sets the next entry aside, if that is the one which the record sets aside. The build that made the record may have failed
// where this one does not.
func (r *run) setAside(evidence *decide.Evidence, at decide.Stamp) (decide.Decision, bool) {
	recorded, ok := decide.EventOf[*decide.DueSetAside](evidence)
	if !ok {
		return decide.Decision{}, false
	}
	d := r.other.SetAside(at, recorded.Error)
	mine, ok := decide.EventOf[*decide.DueSetAside](&decide.Evidence{Events: d.Events})
	return d, ok && mine.Entry == recorded.Entry
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
		due, some := r.other.NextDue()
		switch at.Time = max(r.other.Time(), due); {
		case !some || at.Time > now:
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
	return r.apply(at, decide.Recorded{Type: d.Events[0].EventType(), Actor: decide.Engine}, d)
}

// apply applies a decision to the other world, under the overrides.
func (r *run) apply(at decide.Stamp, c decide.Recorded, d decide.Decision) error {
	events, err := r.inForce.events(d.Events)
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

// pair notes the code of an order or a withdrawal, if it has another one in the other world. A code derives from the number of events
// before, such as charges or a leverage.
func (r *run) pair(recorded, decided []decide.Event) {
	was, is := codeIn(recorded), codeIn(decided)
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
	var code *scalar.ID
	switch p := p.(type) {
	case *trading.AmendOrder:
		code = &p.OrderCode
	case *trading.CancelOrder:
		code = &p.OrderCode
	case *trading.CompleteWithdrawal:
		code = &p.Code
	case *trading.CancelWithdrawal:
		code = &p.Code
	default:
		return
	}
	if is, ok := r.codes[*code]; ok {
		*code = is
	}
}
