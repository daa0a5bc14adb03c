package peer

import (
	"context"
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// maxOwners is the number of nodes that a command is sent to, each after the one before turned out not to be the owner.
const maxOwners = 3

// Router submits commands to the owner of a journal, on this node or by a Client on another one. It implements
// submit.BatchSubmitter.
//
// It never returns a *submit.ElsewhereError. If the owner serves no streams, commands are not accepted.
type Router struct {
	Here   submit.BatchSubmitter // the owners on this node; names the owner if that is another node
	Client *Client
	// Contact reports whether this node is in contact with the brokers. Without contact it admits no command, because it does not
	// learn which credentials are revoked. nil for always.
	Contact func() bool
}

// cutOff returns the error of commands that come while this node has no contact with the brokers, or nil.
func (r *Router) cutOff() error {
	if r.Contact == nil || r.Contact() {
		return nil
	}
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: "this node has lost contact with the brokers"}
}

// Submit implements submit.Submitter.
func (r *Router) Submit(ctx context.Context, journal string, c decide.Command) (submit.Result, error) {
	if err := r.cutOff(); err != nil {
		return submit.Result{}, err
	}
	result, err := r.Here.Submit(ctx, journal, c)
	owner := ownerNamed(err)
	if owner == nil {
		return result, err
	}
	o := r.send(ctx, owner, journal, []decide.Command{c})[0]
	return o.Result, o.Err
}

// SubmitAll implements submit.BatchSubmitter.
func (r *Router) SubmitAll(ctx context.Context, journal string, cs []decide.Command) []submit.Outcome {
	if err := r.cutOff(); err != nil {
		return allFail(cs, err)
	}
	out := r.Here.SubmitAll(ctx, journal, cs)
	for i := range out {
		if ownerNamed(out[i].Err) == nil {
			return out
		}
	}
	if len(out) == 0 {
		return out
	}
	return r.send(ctx, ownerNamed(out[0].Err), journal, cs)
}

// ownerNamed returns the owner that a command has to be sent to, or nil.
func ownerNamed(err error) (owner *submit.ElsewhereError) {
	if err == nil || !errors.As(err, &owner) {
		return nil
	}
	return owner
}

// send sends commands to the owner. If a node turns out not to be the owner, it tries the next one that is found.
func (r *Router) send(ctx context.Context, owner *submit.ElsewhereError, journal string, cs []decide.Command) []submit.Outcome {
	clock := r.Client.cfg.Clock
	since := clock()
	for tries := 1; ; tries++ {
		out, err := r.Client.submit(ctx, owner.URL, submit.Shard{Journal: journal}, cs, since)
		switch {
		case err == nil:
			return out
		case errors.Is(err, errNoStreams):
			return allFail(cs, &submit.NotAcceptedError{RetryAfter: withoutStreams, Reason: owner.URL + ": " + err.Error()})
		case !errors.Is(err, errNotOwner):
			return allFail(cs, err)
		}
		if tries == maxOwners || owner.Next == nil || clock()-since >= answerTimeout {
			return allFail(cs, &submit.NotAcceptedError{RetryAfter: time.Second, Reason: err.Error()})
		}
		next := owner.Next(ctx)
		if next == nil {
			return allFail(cs, &submit.NotAcceptedError{RetryAfter: time.Second, Reason: err.Error()})
		}
		owner = next
	}
}

// allFail returns the same error as the outcome of every command.
func allFail(cs []decide.Command, err error) []submit.Outcome {
	out := make([]submit.Outcome, len(cs))
	for i := range out {
		out[i].Err = err
	}
	return out
}
