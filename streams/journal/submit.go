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

// request is a command on its way, shared by the goroutine that waits for its answer and the term that decides it.
type request struct {
	command decide.Command
	before  *request // of the same batch: this one is decided only if that one was; nil for none
	share   *share   // of the queue, that its user has
	since   time.Time
	fate    atomic.Int32
	reply   chan answer    // takes one answer without blocking
	traced  *trace.Command // nil if it is not

	// kept says that it outlived the term that decided it, so that it is decided anew whenever that is within its time.
	kept atomic.Bool

	// alone says that the brokers refused a batch with the request's record in it for its size, so that the record has
	// to be appended by itself to know whether it is the one to blame. Only the owner's goroutine looks at it.
	alone bool
}

type answer struct {
	result submit.Result
	err    error
}

// The fates of a request say what may be told to a client that waits no longer.
const (
	queued    int32 = iota // not decided, or decided in a term whose records turned out never to become valid
	harmless               // decided without a record: a refusal, or a repetition of something acknowledged
	uncertain              // it, or what it repeats, is in a record that isn't acknowledged, or its work goes on
	abandoned              // nobody waits any more
)

func (r *request) answer(result submit.Result, err error) {
	select {
	case r.reply <- answer{result, err}:
	default:
	}
}

// move changes the fate unless the request was abandoned.
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

// refuse abandons a request that was not decided, and answers it.
func (r *request) refuse(reason string) {
	if r.fate.CompareAndSwap(queued, abandoned) {
		r.answer(submit.Result{}, notAccepted(reason))
	}
}

// giveUp abandons a request and says what is known of it.
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
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: reason}
}

// Submit has a command decided and waits for its answer, until the context ends or its time is over. What it returns
// then says whether the command may still take effect (*submit.OutcomeUnknownError) or was never decided
// (*submit.NotAcceptedError).
func (o *Owner) Submit(ctx context.Context, c decide.Command) (submit.Result, error) {
	r, err := o.enqueue(ctx, c, nil)
	if err == nil {
		submit.NotifyQueued(ctx)
	}
	return o.outcome(ctx, r, err)
}

// SubmitAll is Submit for several commands, as BatchSubmitter says; commands of others may come between them. Their records
// are gathered for the log as all are, so nearly always one append answers all of them.
func (o *Owner) SubmitAll(ctx context.Context, cs []decide.Command) []submit.Outcome {
	requests, errs := make([]*request, len(cs)), make([]error, len(cs))
	var before *request
	for i, c := range cs { // all of them before the first is waited for
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

// outcome waits for a request, unless it was refused, and counts what became of it.
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

// outcomeLabel names an answer that is an error for the metrics.
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

// enqueue lines a command up to be decided. It always returns the request, which with an error is not lined up.
func (o *Owner) enqueue(ctx context.Context, c decide.Command, before *request) (*request, error) {
	r := &request{command: c, before: before, share: o.shares.of(c.Actor), since: time.Now(), reply: make(chan answer, 1), traced: o.tracer.StartCommand(ctx, c.ID, c.Type, o.journal)}
	err := o.lineUp(r)
	if err != nil {
		r.fate.Store(abandoned) // for those that come after it in its batch
	}
	return r, err
}

func (o *Owner) lineUp(r *request) error {
	switch {
	case r.orphaned():
		return notAccepted(afterUndecided)
	case !o.accepting.Load():
		return notAccepted("this node accepts no commands for the journal at the moment")
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

// afterUndecided is why a command of a batch is not decided although there is room.
const afterUndecided = "a command before it in its batch was not decided"

// orphaned reports whether a request of a batch must not be decided, since the one before it was not.
//
// The queue may be full for the one and have room for the next; a stall empties the queue while the rest of a batch is
// still being lined up; and a client gives up what is not decided one by one, while the owner goes on to the next. So the
// owner asks this of each request that it takes from the queue: the one before it left the queue earlier, so its fate is known.
func (r *request) orphaned() bool { return r.before != nil && r.before.fate.Load() == abandoned }

// await waits for the answer to a request.
func (o *Owner) await(ctx context.Context, r *request) (submit.Result, error) {
	// Of its own time: one that was lined up with others was waited for while they were.
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

// timer returns one that fires after d, and was perhaps used before.
func (o *Owner) timer(d time.Duration) *time.Timer {
	if t, ok := o.timers.Get().(*time.Timer); ok {
		t.Reset(d)
		return t
	}
	return time.NewTimer(d)
}
