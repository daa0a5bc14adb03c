package journal

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// request is a submitted command. The goroutine that waits for the answer and the term that decides the command share
// it.
type request struct {
	command decide.Command
	before  *request // the request before it in the same batch, without which this one must not be decided; nil if none
	share   *share   // of its user in the queue
	since   time.Time
	fate    atomic.Int32
	reply   chan answer    // has a buffer of one, so that answering never blocks
	traced  *trace.Command // nil if it is not traced
	term    int64          // the only term in which it may be decided, or 0; see submit.InTerm

	// kept is set after the term that decided the request has ended. The request is then decided again at any time
	// before its deadline.
	kept atomic.Bool

	// alone is set after the brokers rejected, for its size, a batch that contains the request's record. The record
	// must then be appended alone to find out whether it is the one that is too large. Only the owner's goroutine reads
	// it.
	alone bool
}

type answer struct {
	result submit.Result
	err    error
}

// The states of a request determine the answer to a client that stops waiting.
const (
	queued    int32 = iota // not decided, or decided in a term whose records turned out never to become valid
	harmless               // decided without a record: a refusal, or a repetition of an acknowledged record
	uncertain              // its record, or the one it repeats, is not acknowledged, or its work is not finished
	abandoned              // the client has stopped waiting
)

func (r *request) answer(result submit.Result, err error) {
	select {
	case r.reply <- answer{result, err}:
	default:
	}
}

// move changes the state unless the request was abandoned.
func (r *request) move(to int32) bool {
	for {
		from := r.fate.Load()
		if from == abandoned {
			return false
		}
		if r.fate.CompareAndSwap(from, to) {
			return true
		}
	}
}

// refuse abandons an undecided request and answers it.
func (r *request) refuse(reason string) {
	if r.fate.CompareAndSwap(queued, abandoned) {
		r.answer(submit.Result{}, notAccepted(reason))
	}
}

// giveUp abandons a request and returns its answer, or an error that says whether the command may still take effect.
func (r *request) giveUp(reason string) (submit.Result, error) {
	fate := r.fate.Swap(abandoned)
	select {
	case a := <-r.reply:
		return a.result, a.err
	default:
	}
	if fate == uncertain {
		return submit.Result{}, &submit.OutcomeUnknownError{CommandID: r.command.ID}
	}
	return submit.Result{}, notAccepted(reason)
}

func notAccepted(reason string) error {
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: reason, Unowned: reason == ofAnotherTerm}
}

// Submit submits a command and waits for its answer until the context ends or the deadline passes. Its error then
// states whether the command may still take effect (*submit.OutcomeUnknownError) or was never decided
// (*submit.NotAcceptedError).
func (o *Owner) Submit(ctx context.Context, c decide.Command) (submit.Result, error) {
	r, err := o.enqueue(ctx, c, nil)
	if err == nil {
		submit.NotifyQueued(ctx)
	}
	return o.outcome(ctx, r, err)
}

// SubmitAll is Submit for several commands with the guarantees of BatchSubmitter. Commands of other callers may come
// between them. Their records are batched like all others, so one append nearly always answers the whole batch.
func (o *Owner) SubmitAll(ctx context.Context, cs []decide.Command) []submit.Outcome {
	requests, errs := make([]*request, len(cs)), make([]error, len(cs))
	var before *request
	for i, c := range cs { // enqueue all of them before waiting for the first
		requests[i], errs[i] = o.enqueue(ctx, c, before)
		before = requests[i]
	}
	submit.NotifyQueued(ctx)
	out := make([]submit.Outcome, len(cs))
	for i, r := range requests {
		out[i].Result, out[i].Err = o.outcome(ctx, r, errs[i])
	}
	return out
}

// outcome waits for the answer to a request, unless enqueue returned an error, and counts the result.
func (o *Owner) outcome(ctx context.Context, r *request, err error) (result submit.Result, _ error) {
	if err == nil {
		result, err = o.await(ctx, r)
	}
	if err == nil {
		o.meters.answered.Inc()
		r.traced.End("answered")
		return result, nil
	}
	label := outcomeLabel(err)
	o.cfg.Client.cfg.Metrics.Commands.WithLabelValues(o.journal, label).Inc()
	r.traced.End(label)
	return result, err
}

// outcomeLabel returns the metrics label of an error.
func outcomeLabel(err error) string {
	var (
		refused     *submit.RefusedError
		notAccepted *submit.NotAcceptedError
		unknown     *submit.OutcomeUnknownError
	)
	switch {
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &notAccepted):
		return "not_accepted"
	case errors.As(err, &unknown):
		return "outcome_unknown"
	}
	return "failed"
}

// enqueue queues a command. It always returns the request, which is not queued if there is an error.
func (o *Owner) enqueue(ctx context.Context, c decide.Command, before *request) (*request, error) {
	r := &request{command: c, before: before, share: o.shares.of(c.Actor), since: time.Now(), reply: make(chan answer, 1), term: submit.TermOf(ctx),
		traced: o.tracer.StartCommand(ctx, c.ID, c.Type, o.journal)}
	err := o.lineUp(r)
	if err != nil {
		r.fate.Store(abandoned) // for the later requests of its batch
	}
	return r, err
}

func (o *Owner) lineUp(r *request) error {
	switch {
	case r.orphaned():
		return notAccepted(afterUndecided)
	case !o.accepting.Load():
		return notAccepted("this node accepts no commands for the journal at the moment")
	case r.term != 0 && r.term != o.serving.Load():
		return notAccepted(ofAnotherTerm)
	}
	if !r.share.take(cap(o.queue) - len(o.queue)) {
		return notAccepted("more commands of the user are waiting than there is room for those of others")
	}
	select {
	case o.queue <- r:
		return nil
	default:
		r.share.leave()
		return notAccepted("too many commands are waiting")
	}
}

// ofAnotherTerm is the reason for not deciding a command that is bound to another term.
const ofAnotherTerm = "the term for which the command was submitted has ended"

// afterUndecided is the reason for not deciding a command of a batch although the queue has room.
const afterUndecided = "a command before it in its batch was not decided"

// orphaned reports whether an earlier command of the batch was not decided. If so, this one must not be decided either.
//
// An earlier command may miss the queue and a later one not: the queue may be full for the first only; a stall empties
// the queue while the rest of a batch is being queued; and a client gives up its undecided commands one after another
// while the owner continues with the next. So the owner checks each request that it takes from the queue. The request
// before it has left the queue earlier, so its state is known.
func (r *request) orphaned() bool { return r.before != nil && r.before.fate.Load() == abandoned }

// await waits for the answer to a request.
func (o *Owner) await(ctx context.Context, r *request) (submit.Result, error) {
	// Measured from the request's submission: the requests of a batch are waited for one after another.
	wait := o.timer(max(0, min(patience, o.cfg.Deadline)-time.Since(r.since)))
	defer o.timers.Put(wait)
	defer wait.Stop()
	for {
		select {
		case a := <-r.reply:
			return a.result, a.err
		case <-ctx.Done():
			return r.giveUp("the client went away before the command was decided")
		case <-wait.C:
		}
		left := o.cfg.Deadline - time.Since(r.since)
		if left <= 0 || !r.kept.Load() && r.fate.CompareAndSwap(queued, abandoned) {
			return r.giveUp("the command was not decided in time")
		}
		wait.Reset(left)
	}
}

// timer returns a timer that fires after d. It may reuse a pooled one.
func (o *Owner) timer(d time.Duration) *time.Timer {
	if t, ok := o.timers.Get().(*time.Timer); ok {
		t.Reset(d)
		return t
	}
	return time.NewTimer(d)
}
