// Package redecide decides the records of a journal again and compares them byte for byte with those in the log.
//
// A record that is decided again as the same bytes was rightly decided from the inputs that it holds: its events, its time
// and, if the rules record it, command.data.input. This does not prove that the client sent that input.
//
// The package does no I/O and starts no goroutines. The caller reads the log, applies the records to a state, and calls
// Redecide for each record before it applies it. Spans of a log may be checked in parallel, each with its own state.
package redecide

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Verdict is the result of deciding a record again.
type Verdict int

// The verdicts.
const (
	// Same means that this build decides the same bytes.
	Same Verdict = iota
	// Different means that this build decides something else, or refuses or repeats the command, or that the record's
	// input is invalid.
	Different
	// NotRedecidable means that the record does not show everything that it was decided from, because it is of an older
	// form, or that this build does not have the command.
	NotRedecidable
	// Undecided means that no rules decided the record: it is a genesis or opens a term.
	Undecided
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"same", "different", "not re-decidable", "undecided"}[v]
}

// Result is the result of deciding one record again.
type Result struct {
	Verdict Verdict
	// Reason is a sentence on why the verdict is not Same, or "".
	Reason string
	// Command is the reconstructed command. Its payload is nil for a step and for Undecided.
	Command decide.Command
	// Decision is what this build decides, and Value is the record of it. Value is nil if the decision has no record.
	Decision decide.Decision
	Value    []byte
	// Err is the refusal of the command, the error of an invalid input, or the panic of the rules, if any.
	Err error
}

// Redecide decides a record of the journal again on the state before it. The payloads are those of the journal's commands.
//
// The state MUST be the fold of all records before the entry's, and the entry MUST be valid and have a Record. Redecide only
// reads them. If the rules panic, the result is Different with the panic as its Err.
func Redecide(state decide.State, payloads *decide.Payloads, e record.Entry) Result {
	result := redecide(state, payloads, e)
	if result.Verdict == Different && !current(e) {
		result.Verdict, result.Reason = NotRedecidable, "an event has a version that is no longer written: "+result.Reason
	}
	return result
}

func redecide(state decide.State, payloads *decide.Payloads, e record.Entry) Result {
	r := e.Record
	if r.Command.Type == record.TypeGenesis || r.Command.Type == record.TypeTermStarted {
		return Result{Verdict: Undecided, Reason: "the journal itself made the record"}
	}
	evidence := &decide.Evidence{At: e.Stamp(), Command: r.Command, Input: r.Input, Events: r.Events}
	command, known, err := payloads.Reconstruct(evidence)
	recorder, ok := state.(decide.InputRecorder)
	inputs := ok && recorder.RecordsInputs()
	switch {
	case err != nil:
		return Result{Verdict: Different, Reason: "the input is invalid", Command: command, Err: err}
	case known:
		result := decideAgain(e, command, func() (decide.Decision, error) { return state.Decide(evidence.At, command) })
		if result.Verdict == Different && !inputs && payloads.Lacks(command.Type) {
			result.Verdict, result.Reason = NotRedecidable, "the rules in force did not record the input: "+result.Reason
		}
		return result
	case r.Command.Actor == decide.Engine:
		return stepAgain(state, evidence, e, inputs)
	}
	return Result{Verdict: NotRedecidable, Reason: "this build has no command " + r.Command.Type}
}

// stepAgain decides due work again.
func stepAgain(state decide.State, evidence *decide.Evidence, e record.Entry, inputs bool) Result {
	command := decide.Command{ID: e.Record.Command.ID, Type: e.Record.Command.Type, Actor: e.Record.Command.Actor}
	if aside, ok := decide.EventOf[*decide.DueSetAside](evidence); ok {
		return decideAgain(e, command, func() (decide.Decision, error) { return state.SetAside(evidence.At, aside.Error), nil })
	}
	step := func(single bool) Result {
		return decideAgain(e, command, func() (decide.Decision, error) { return state.Step(evidence.At, single), nil })
	}
	var in decide.StepInput
	if err := evidence.ReadInput(&in); err != nil {
		return Result{Verdict: Different, Reason: "the input is invalid", Command: command, Err: err}
	}
	result := step(in.Single)
	if result.Verdict != Same && !inputs { // the record does not say whether a larger step had failed
		if single := step(true); single.Verdict == Same {
			return single
		}
	}
	return result
}

// decideAgain makes a decision and compares the record of it with the entry.
func decideAgain(e record.Entry, command decide.Command, run func() (decide.Decision, error)) Result {
	out := Result{Verdict: Different, Command: command}
	out.Decision, out.Err = guard(run)
	switch {
	case out.Err != nil:
		out.Reason = "it is refused: " + out.Err.Error()
		return out
	case out.Decision.Repeated:
		out.Reason = fmt.Sprintf("it repeats record %d", out.Decision.Repeat)
		return out
	case len(out.Decision.Events) == 0:
		out.Reason = "nothing is decided"
		return out
	}
	out.Value, out.Err = encode(e.Record, out.Decision)
	switch {
	case out.Err != nil:
		out.Reason = "the decision has no record: " + out.Err.Error()
	case bytes.Equal(out.Value, e.Value):
		out.Verdict = Same
	default:
		out.Reason = "the decision is another record"
	}
	return out
}

// encode returns the value of a record as the owner would have written it for the decision.
func encode(r *record.Record, d decide.Decision) ([]byte, error) {
	made := &record.Record{Sequence: r.Sequence, Prev: r.Prev, Time: r.Time, Command: r.Command, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	if made.Outcome == "" {
		made.Outcome = decide.Accepted
	}
	return record.Encode(nil, made)
}

// current reports whether the entry's record is encoded as its value: whether all its events have the current version.
func current(e record.Entry) bool {
	value, err := record.Encode(nil, e.Record)
	return err == nil && bytes.Equal(value, e.Value)
}

// guard runs a decision of the rules and turns a panic into an error.
func guard(run func() (decide.Decision, error)) (d decide.Decision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.Join(ErrPanicked, fmt.Errorf("%v", p))
		}
	}()
	return run()
}

// ErrPanicked is the error of a decision in which the rules panicked.
var ErrPanicked = errors.New("the rules panicked")
