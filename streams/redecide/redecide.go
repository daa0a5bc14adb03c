// Package redecide decides the records of a journal again and compares them byte for byte with those in the log.
//
// A record that is decided again as the same bytes was rightly decided from the inputs that it holds: its events, its time
// and, if the rules record it, command.data.input. The package does not check:
//
//   - that a client sent the command with this input, and that the actor had the right to give it. The scopes of users are
//     in another journal. Deposits need a scope, for example, and so does the operator in trading.SetFeeProfile;
//   - the id of the command and, for a client's, its metadata;
//   - how far the time of a record is after that of the previous one;
//   - that steps alternate with commands. Some steps wait for acknowledgements, which the log does not show. A command
//     before due work that blocks commands is Different;
//   - what the records of a journal cannot show, such as the row of a delivery that the state has forgotten: see
//     decide.Unverified;
//   - the node and the number of a term.
//
// The package does no I/O and starts no goroutines. The caller reads the log, applies the records to a state, and calls
// Redecide for each record before it applies it. Spans of a log may be checked in parallel, each with its own state.
package redecide

import (
	"bytes"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Verdict is the result of deciding a record again.
type Verdict int

// The verdicts.
const (
	// Same means that this build decides the same bytes.
	Same Verdict = iota
	// Different means that this build decides something else, or refuses or repeats the command, or that no owner writes
	// the record.
	Different
	// NotRedecidable means that the record does not show everything that it was decided from, because it is of an older
	// form.
	NotRedecidable
	// NotReproduced means that this build decides the same events for due work after a larger step has failed, but that
	// the larger step does not fail in this build. The build that made the record may have panicked where this one does
	// not; otherwise its owner had no reason to divide the work or to set it aside.
	NotReproduced
	// Undecided means that no rules decided the record: it is a genesis or opens a term, and has the form of one.
	Undecided
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"same", "different", "not re-decidable", "not reproduced", "undecided"}[v]
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
	// Unverified are the facts that the decision rests on and that it does not check, even if the verdict is Same: see
	// decide.Unverified.
	Unverified []string
	// Err is the refusal of the command, the error of an invalid input, or the panic of the rules (*decide.PanicError), if
	// any.
	Err error
}

// Journal describes a journal for Redecide.
type Journal struct {
	// Payloads are those of the journal's commands. A command type that no client gives any longer MUST keep its payload
	// as long as a log may hold it: a record of an unknown command is Different.
	Payloads *decide.Payloads
	// Limit is the greatest size of a record's value in bytes: see decide.Rules.
	Limit int
}

// Redecide decides a record of the journal again on the state before it. previous is the time of the record before, or
// zero if the caller does not have it.
//
// The state MUST be the fold of all records before the entry's, and the entry MUST be valid and have a Record. Redecide only
// reads them. If the rules panic, the result is Different with the panic as its Err.
func (j Journal) Redecide(state decide.State, previous scalar.Time, e record.Entry) Result {
	r := e.Record
	recorder, ok := state.(decide.InputRecorder)
	a := again{Journal: j, state: state, entry: e, inputs: ok && recorder.RecordsInputs(),
		evidence: &decide.Evidence{At: e.Stamp(), Command: r.Command, Input: r.Input, Events: r.Events}}
	if r.Time < previous {
		return a.different("the time of the record is before that of the previous record")
	}
	if r.Command.Type == record.TypeGenesis || r.Command.Type == record.TypeTermStarted {
		return a.opening()
	}
	result := a.decide()
	if result.Verdict == Different && !a.inputs && !a.current() {
		result.Verdict, result.Reason = NotRedecidable, "an event has a version that is no longer written: "+result.Reason
	}
	return result
}

// again is a record that is being decided again.
type again struct {
	Journal
	state    decide.State
	entry    record.Entry
	evidence *decide.Evidence
	inputs   bool // the rules in force record inputs
}

// different returns the verdict on a record that no owner writes.
func (a *again) different(format string, args ...any) Result {
	c := a.evidence.Command
	return Result{Verdict: Different, Reason: fmt.Sprintf(format, args...), Command: decide.Command{ID: c.ID, Type: c.Type, Actor: c.Actor, Metadata: c.Metadata}}
}

// opening checks the form of a genesis or of a record that opens a term.
func (a *again) opening() Result {
	r := a.entry.Record
	switch {
	case (r.Command.Type == record.TypeGenesis) != (r.Sequence == 0):
		return a.different("the genesis is the first record, and only that")
	case r.Command.Actor != decide.Engine:
		return a.different("the actor is not the engine")
	case len(r.Events) != 1:
		return a.different("it has %d events", len(r.Events))
	case r.Input != "":
		return a.different("it has an input")
	case r.Outcome != decide.Accepted:
		return a.different("it is %s", r.Outcome)
	}
	if result := a.ofEngine(); result.Verdict != Same {
		return result
	}
	return Result{Verdict: Undecided, Reason: "the journal itself made the record", Command: decide.Command{ID: r.Command.ID, Type: r.Command.Type, Actor: r.Command.Actor}}
}

// ofEngine checks what all records of the engine have in common: the type of the first event, and no metadata.
func (a *again) ofEngine() Result {
	r := a.entry.Record
	switch {
	case r.Command.Type != r.Events[0].EventType():
		return a.different("the type of the command is not that of the first event, %s", r.Events[0].EventType())
	case r.Command.Metadata != decide.Metadata{}:
		return a.different("a record of the engine has metadata")
	}
	return Result{}
}

func (a *again) decide() Result {
	r, engine := a.entry.Record, a.entry.Record.Command.Actor == decide.Engine
	command, known, err := a.Payloads.Reconstruct(a.evidence)
	switch {
	case !known && engine:
		return a.step()
	case !known:
		return a.different("this build has no command %s", r.Command.Type)
	case engine:
		return a.different("the actor of a command is the engine")
	case err != nil:
		return Result{Verdict: Different, Reason: "the input is invalid", Command: command, Err: err}
	case a.state.Due(r.Time) == decide.Blocking:
		return a.different("due work comes before the command")
	}
	result := a.compare(command, func() (decide.Decision, error) { return a.state.Decide(a.evidence.At, command) })
	if result.Verdict == Different && !a.inputs && a.Payloads.Lacks(a.evidence) {
		result.Verdict, result.Reason = NotRedecidable, "the rules in force did not record the input: "+result.Reason
	}
	if p, ok := command.Payload.(decide.Unverified); ok {
		result.Unverified = p.Unverified()
	}
	return result
}

// compare makes a decision and compares the record of it with the entry.
func (a *again) compare(command decide.Command, run func() (decide.Decision, error)) Result {
	out := Result{Verdict: Different, Command: command}
	out.Decision, out.Err = decide.Guard(run)
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
	out.Value, out.Err = a.encode(out.Decision)
	switch {
	case out.Err != nil:
		out.Reason = "the decision has no record: " + out.Err.Error()
	case bytes.Equal(out.Value, a.entry.Value):
		out.Verdict = Same
	default:
		out.Reason = "the decision is another record"
	}
	return out
}

// encode returns the value of a record as the owner would have written it for the decision.
func (a *again) encode(d decide.Decision) ([]byte, error) {
	r := a.entry.Record
	made := &record.Record{Sequence: r.Sequence, Prev: r.Prev, Time: r.Time, Command: r.Command, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	if made.Outcome == "" {
		made.Outcome = decide.Accepted
	}
	return record.EncodeWithin(nil, made, a.Limit)
}

// current reports whether the entry's record is encoded as its value: whether all its events have the current version.
func (a *again) current() bool {
	value, err := record.Encode(nil, a.entry.Record)
	return err == nil && bytes.Equal(value, a.entry.Value)
}
