package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Journal is the journal to which a handler submits commands.
type Journal struct {
	To   submit.Submitter
	Name string
	// AuthFollower is this node's follower of the journal if it authorizes requests; it may be nil. The response to a
	// decided command waits for the follower for up to two seconds. Otherwise this node could refuse a key or
	// password that it has just confirmed.
	AuthFollower Waiter
}

// Executed is a command and its result.
type Executed struct {
	submit.Result
	Command decide.Command
}

// Execute submits a command and returns the event that answers it: the first event of type E in the record. forms are
// the forms from which the payload was read; their errors take precedence.
func Execute[E decide.Event](a Request, j Journal, payload decide.Payload, forms ...*input.Form) (E, error) {
	x, err := j.Execute(a, payload, forms...)
	if err != nil {
		var none E
		return none, err
	}
	return Answer[E](x)
}

// Execute is like the function Execute, for responses that need more than one event.
func (j Journal) Execute(a Request, payload decide.Payload, forms ...*input.Form) (Executed, error) {
	for _, f := range forms { // an invalid request decides nothing, so the client may correct it and reuse its key
		if err := f.Done(); err != nil {
			return Executed{}, err
		}
	}
	cmd, err := a.NewCommand(payload, forms...)
	if err != nil {
		return Executed{}, err
	}
	return j.SubmitKeyed(a, cmd, func() string { return input.FingerprintAsSent(a.route(), forms...) })
}

// SubmitKeyed is Submit for a command that an earlier build may have recorded with another fingerprint: if the key was
// used for another request, it submits the command with the fingerprint that earlier returns, if that differs.
func (j Journal) SubmitKeyed(a Request, cmd decide.Command, earlier func() string) (Executed, error) {
	x, err := j.Submit(a, cmd)
	var refused *decide.Refusal
	if !errors.As(err, &refused) || refused.Code != decide.CodeKeyReused {
		return x, err
	}
	if f := earlier(); f != cmd.Metadata.Fingerprint {
		cmd.Metadata.Fingerprint = f
		return j.Submit(a, cmd)
	}
	return x, err
}

// Submit submits a command and sets the position of the response, even for a refusal. The command's idempotency key
// belongs to the route.
func (j Journal) Submit(a Request, cmd decide.Command) (Executed, error) {
	a.scoped(&cmd)
	result, err := Submit(a, j.To, j.Name, cmd)
	if err == nil && j.AuthFollower != nil {
		ctx, cancel := context.WithTimeout(a.Context(), waitLimit)
		defer cancel()
		_ = j.AuthFollower.Wait(ctx, result.Position.Sequence) // ignore errors: the record exists in any case
	}
	if err != nil {
		return Executed{result, cmd}, err
	}
	if made, ok := Find[*decide.ProposalMade](result.Entry.Record); ok {
		return Executed{result, cmd}, &ProposedError{Journal: j.Name, Proposal: decide.Proposal{ProposalMade: *made, Sequence: result.Entry.Record.Sequence, Status: decide.StatusOpen}}
	}
	return Executed{result, cmd}, nil
}

// ProposedError says that a command has no effect until a second person confirms it. It is the response of a request that
// succeeded (202), and an error so that no handler looks for the effect.
type ProposedError struct {
	Journal  string
	Proposal decide.Proposal // as it was made
}

// Error names the proposal.
func (e *ProposedError) Error() string {
	return fmt.Sprintf("%s is proposed as %s", e.Proposal.Action, e.Proposal.ID)
}

// BatchResult is one command of a batch and its result.
type BatchResult struct {
	Executed
	Err error
}

// SubmitAll submits commands in order, each with a record for itself, and sets the highest position of their results.
func (j Journal) SubmitAll(a Request, to submit.BatchSubmitter, cmds []decide.Command) []BatchResult {
	outcomes := to.SubmitAll(a.withCredential(), j.Name, cmds)
	out := make([]BatchResult, len(cmds))
	at := record.LogPosition{Sequence: -1}
	for i, o := range outcomes {
		out[i] = BatchResult{Executed{o.Result, cmds[i]}, o.Err}
		var refused *submit.RefusedError
		switch {
		case o.Err == nil && o.Result.Position.Sequence > at.Sequence:
			at = o.Result.Position
		case errors.As(o.Err, &refused) && refused.AsOf.Sequence > at.Sequence:
			at = refused.AsOf
		}
	}
	if at.Sequence >= 0 {
		a.AnswerAt(at)
	}
	return out
}

// First reports whether this is the response to the first request. A repeated Idempotency-Key gets the status of the
// first response; a repeated reference_id gets another one.
func (x Executed) First() bool {
	return !x.Repeated || x.Command.Metadata.Key != "" && x.Entry.Record.Command.Metadata.Key == x.Command.Metadata.Key
}

// Find returns a record's first event of type E.
func Find[E decide.Event](r *record.Record) (event E, ok bool) {
	for _, e := range r.Events {
		if event, ok = e.(E); ok {
			return event, true
		}
	}
	return event, false
}

// Answer returns the event that answers a command: the first event of type E in the record.
func Answer[E decide.Event](x Executed) (E, error) {
	e, ok := Find[E](x.Entry.Record)
	if !ok {
		return e, x.Unanswered()
	}
	return e, nil
}

// Unanswered returns the error for a record without the event that answers the command, which is a bug.
func (x Executed) Unanswered() error {
	return fmt.Errorf("record %d holds no answer to %s", x.Entry.Record.Sequence, x.Command.Type)
}
