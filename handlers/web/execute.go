package web

import (
	"context"
	"errors"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Journal is where the commands of a handler go.
type Journal struct {
	To   submit.Submitter
	Name string
	// Judges, if there is one, is the node's own follower of the journal, by which the next request will be judged. An answer
	// that a command was decided waits for it, up to two seconds: without that, a key or a password which was just made is
	// refused by the very node that said so.
	Judges Waiter
}

// Executed is a command and what came of it.
type Executed struct {
	submit.Result
	Command decide.Command
}

// Execute has a command decided and returns the event that answers it: the first of its kind in the record that does.
// The forms are those that the payload was read from; their faults come first.
func Execute[E decide.Event](c echo.Context, j Journal, payload decide.Payload, forms ...*Form) (E, error) {
	x, err := j.Execute(AskOf(c), payload, forms...)
	if err != nil {
		var none E
		return none, err
	}
	return Answer[E](x)
}

// Execute is the function of that name for an answer that takes more than one event.
func (j Journal) Execute(a Ask, payload decide.Payload, forms ...*Form) (Executed, error) {
	for _, f := range forms { // a fault decides nothing, so its request may be sent again with the same key
		if err := f.Done(); err != nil {
			return Executed{}, err
		}
	}
	cmd, err := a.NewCommand(payload, forms...)
	if err != nil {
		return Executed{}, err
	}
	return j.Submit(a, cmd)
}

// Submit has a command decided and sets the position of the answer, also where it is a refusal. Its key is the route's.
func (j Journal) Submit(a Ask, cmd decide.Command) (Executed, error) {
	a.scoped(&cmd)
	result, err := Submit(a, j.To, j.Name, cmd)
	if err == nil && j.Judges != nil {
		ctx, cancel := context.WithTimeout(a.Context(), waitLimit)
		defer cancel()
		_ = j.Judges.Wait(ctx, result.Position.Sequence) // the record is there, whether this node has come to it or not
	}
	return Executed{result, cmd}, err
}

// Tried is one of several commands and what came of it.
type Tried struct {
	Executed
	Err error
}

// SubmitAll has commands decided in their order, each in a record of its own, and sets the latest position of their
// answers. It returns an error if this node decided none of them and another node may own the journal.
func (j Journal) SubmitAll(a Ask, to submit.BatchSubmitter, cmds []decide.Command) ([]Tried, error) {
	outcomes := to.SubmitAll(a.Context(), j.Name, cmds)
	if err := wrongOwner(a, outcomes); err != nil {
		return nil, err
	}
	out := make([]Tried, len(cmds))
	at := record.LogPosition{Sequence: -1}
	for i, o := range outcomes {
		out[i] = Tried{Executed{o.Result, cmds[i]}, o.Err}
		var refused *submit.RefusedError
		switch {
		case o.Err == nil && o.Result.Position.Sequence > at.Sequence:
			at = o.Result.Position
		case errors.As(o.Err, &refused) && refused.AsOf.Sequence > at.Sequence:
			at = refused.AsOf
		}
	}
	if at.Sequence >= 0 {
		a.answerAt(at)
	}
	return out, nil
}

// wrongOwner returns the error that sends a batch to another node: none of its commands was decided, and an outcome names the
// owner of the journal. An outcome that says only that this node is not the owner is enough if a node passed the request on,
// since that node looks for the owner. A client that sent the batch to this node gets an outcome for each command instead.
func wrongOwner(a Ask, outcomes []submit.Outcome) (wrong error) {
	for _, o := range outcomes {
		var (
			elsewhere *submit.ElsewhereError
			busy      *submit.NotAcceptedError
		)
		switch {
		case errors.As(o.Err, &elsewhere):
			wrong = o.Err
		case !errors.As(o.Err, &busy):
			return nil // sent again, this command could take effect twice
		case busy.Unowned && a.counted && wrong == nil:
			wrong = o.Err
		}
	}
	return wrong
}

// First reports whether the answer is the first one that the client's request had: it is the same status again for a
// repeated Idempotency-Key, and another for a repeated reference_id.
func (x Executed) First() bool {
	return !x.Repeated || x.Command.Kept.Key != "" && x.Entry.Record.Command.Kept.Key == x.Command.Kept.Key
}

// Find returns a record's first event of a kind.
func Find[E decide.Event](r *record.Record) (event E, ok bool) {
	for _, e := range r.Events {
		if event, ok = e.(E); ok {
			return event, true
		}
	}
	return event, false
}

// Answer returns the event that a command is answered with: the first of its kind in the record that answers it.
func Answer[E decide.Event](x Executed) (E, error) {
	e, ok := Find[E](x.Entry.Record)
	if !ok {
		return e, x.Unanswered()
	}
	return e, nil
}

// Unanswered is the error of a record that does not hold what its command's answer is made of: a fault of the program.
func (x Executed) Unanswered() error {
	return fmt.Errorf("record %d holds no answer to %s", x.Entry.Record.Sequence, x.Command.Type)
}
