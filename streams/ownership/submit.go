package ownership

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Submit submits a command to the owner of the journal's partition if that is this node. Otherwise the error names the
// owner.
func (n *Node) Submit(ctx context.Context, name string, c decide.Command) (submit.Result, error) {
	o := n.assigned(name)
	if o == nil {
		return submit.Result{}, n.notAssigned(ctx, name)
	}
	result, err := o.Submit(ctx, c)
	if refused(err) && !n.leased(ctx, o) {
		err = errUnleased
	}
	return result, unowned(o, err)
}

// SubmitAll is Submit for several commands, which go to the same owner together. If that is another node, the outcome
// of each command names it. It implements journal.BatchSubmitter.
func (n *Node) SubmitAll(ctx context.Context, name string, cs []decide.Command) []submit.Outcome {
	o := n.assigned(name)
	if o == nil {
		return allFail(cs, n.notAssigned(ctx, name))
	}
	out := o.SubmitAll(ctx, cs)
	unleased := slices.ContainsFunc(out, func(o submit.Outcome) bool { return refused(o.Err) }) && !n.leased(ctx, o)
	for i := range out {
		if unleased && refused(out[i].Err) {
			out[i].Err = errUnleased
		}
		out[i].Err = unowned(o, out[i].Err)
	}
	return out
}

// Enqueue submits the commands of a batch to the owner as submit.Enqueuer describes, if that is this node. They MUST be bound to
// a term (see submit.InTerm), so that no other node is looked for.
func (n *Node) Enqueue(ctx context.Context, name string, b submit.Batch) (withdraw func()) {
	o := n.assigned(name)
	if o == nil {
		err := n.notAssigned(ctx, name)
		for i := range b.Commands {
			b.Reply(i, submit.Outcome{Err: err})
		}
		b.Replied()
		return func() {}
	}
	reply, replied := b.Reply, b.Replied
	b.Reply = func(i int, out submit.Outcome) {
		if !refused(out.Err) {
			out.Err = unowned(o, out.Err)
			reply(i, out)
			return
		}
		go func() { // the lease may have to be waited for
			if !n.leased(ctx, o) {
				out.Err = errUnleased
			}
			out.Err = unowned(o, out.Err)
			reply(i, out)
			replied()
		}()
	}
	return o.Enqueue(ctx, b)
}

// notAssigned returns the error of commands for a journal that is not assigned to this node. It names the owner, unless the
// commands are for a term of this node.
func (n *Node) notAssigned(ctx context.Context, name string) error {
	if submit.TermOf(ctx) != 0 {
		return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: "this node no longer owns the journal", Unowned: true}
	}
	return n.find.ownerError(ctx, name)
}

// unowned marks the error of a command that was not accepted because the owner has no valid term (yet, or any more):
// another node may have one.
func unowned(o *journal.Owner, err error) error {
	var busy *submit.NotAcceptedError
	if err == nil || !errors.As(err, &busy) {
		return err
	}
	if _, serving := o.Serving(); serving {
		return err
	}
	marked := *busy
	marked.Unowned = true
	return &marked
}

// assigned returns the owner of a journal's partition, or nil if the partition is not assigned to this node.
func (n *Node) assigned(name string) *journal.Owner {
	p := submit.Shard{Journal: name}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.runs[p] == nil {
		return nil
	}
	return n.owners[p]
}
