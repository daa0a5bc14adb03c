package journal

import (
	"context"
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// request is a submitted command with its client's side.
type request struct {
	term.Request
	reply     chan answer    // has a buffer of one, and gets one answer; nil if the command was enqueued
	batch     *submit.Batch  // of an enqueued command
	index     int            // in the batch
	traced    *trace.Command // nil if it is not traced
	submitted time.Time      // set if it is traced
}

type answer struct {
	result submit.Result
	err    error
}

// deliver passes the answer on. It does not block. delivered follows.
func (r *request) deliver(o *Owner, a answer) {
	if r.batch == nil {
		r.reply <- a
		return
	}
	o.finished(r, a)
	r.batch.Reply(r.index, submit.Outcome{Result: a.result, Err: a.err})
}

// delivered says to the batch that its answers so far can be sent.
func (r *request) delivered() {
	if r.batch != nil {
		r.batch.Replied()
	}
}

// Submit submits a command and waits for its answer until the context ends or the deadline passes. Its error then
// states whether the command may still take effect (*submit.OutcomeUnknownError) or was never decided
// (*submit.NotAcceptedError).
func (o *Owner) Submit(ctx context.Context, c decide.Command) (submit.Result, error) {
	r := o.request(ctx, c, nil)
	r.reply = make(chan answer, 1)
	queued := o.inbox.put(&r.Request)
	if queued {
		submit.NotifyQueued(ctx)
	}
	return o.outcome(ctx, r, queued)
}

// SubmitAll is Submit for several commands with the guarantees of BatchSubmitter. Commands of other callers may come
// between them. Their records are batched like all others, so one append nearly always answers the whole batch.
func (o *Owner) SubmitAll(ctx context.Context, cs []decide.Command) []submit.Outcome {
	requests, all := o.requests(ctx, cs)
	for _, r := range requests {
		r.reply = make(chan answer, 1)
	}
	queued := o.inbox.put(all...)
	if queued {
		submit.NotifyQueued(ctx)
	}
	out := make([]submit.Outcome, len(cs))
	for i, r := range requests {
		out[i].Result, out[i].Err = o.outcome(ctx, r, queued)
	}
	return out
}

// Enqueue submits the commands of a batch as submit.Enqueuer describes.
func (o *Owner) Enqueue(ctx context.Context, b submit.Batch) (withdraw func()) {
	requests, all := o.requests(ctx, b.Commands)
	for i, r := range requests {
		r.batch, r.index, r.Until = &b, i, b.Until
	}
	if !o.inbox.put(all...) {
		for _, r := range requests {
			r.deliver(o, answer{err: errClosed()})
		}
		b.Replied()
	}
	// In a goroutine, because a step that hangs must not hang the caller.
	return func() { go o.mustStep(term.Withdraw{Requests: all}) }
}

// requests returns the requests of a batch.
func (o *Owner) requests(ctx context.Context, cs []decide.Command) ([]*request, []*term.Request) {
	requests, all := make([]*request, len(cs)), make([]*term.Request, len(cs))
	var after *term.Request
	for i, c := range cs {
		requests[i] = o.request(ctx, c, after)
		after = &requests[i].Request
		all[i] = after
	}
	return requests, all
}

func (o *Owner) request(ctx context.Context, c decide.Command, after *term.Request) *request {
	r := &request{Request: term.Request{Command: c, After: after, Since: o.clock.Elapsed(), Term: submit.TermOf(ctx)},
		traced: o.tracer.StartCommand(ctx, c.ID, c.Type, o.journal)}
	r.Ref = r
	if r.traced != nil {
		r.submitted = time.Now()
	}
	return r
}

// errClosed returns the error of a command that comes while the inbox is closed.
func errClosed() error {
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: "this node accepts no commands for the journal at the moment"}
}

// outcome waits for the answer to a request, if it was queued, and counts the result.
func (o *Owner) outcome(ctx context.Context, r *request, queued bool) (submit.Result, error) {
	a := answer{err: errClosed()}
	if queued {
		a = o.await(ctx, r)
	}
	o.finished(r, a)
	return a.result, a.err
}

// finished counts the result of a request.
func (o *Owner) finished(r *request, a answer) {
	if a.err == nil {
		o.meters.answered.Inc()
		r.traced.End("answered")
		return
	}
	label := outcomeLabel(a.err)
	o.cfg.Client.cfg.Metrics.Commands.WithLabelValues(o.journal, label).Inc()
	r.traced.End(label)
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

// grace is how long a request waits for the machine after its deadline or its withdrawal.
const grace = time.Second

// await waits for the answer to a request. The machine answers each request by its deadline, and a withdrawn one
// immediately, unless a step hangs.
func (o *Owner) await(ctx context.Context, r *request) answer {
	late := time.NewTimer(max(0, o.cfg.Deadline+grace-(o.clock.Elapsed()-r.Since)))
	defer late.Stop()
	for gone := ctx.Done(); ; {
		select {
		case a := <-r.reply:
			return a
		case <-late.C:
			return answer{err: &submit.OutcomeUnknownError{CommandID: r.Command.ID}}
		case <-gone:
			gone = nil
			late.Reset(grace)
			// In a goroutine, because a step that hangs must not hang its clients.
			go o.mustStep(term.Withdraw{Requests: []*term.Request{&r.Request}})
		}
	}
}
