package term

import (
	"errors"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

// TestNobodyFillsTheQueueAlone: a user who sends without end gets as much of the queue as leaves others room, and has it
// again once the requests have left the queue, whatever becomes of them.
func TestNobodyFillsTheQueueAlone(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.Queue = 16 }).serving()
	line := func(a decide.Actor, most int) {
		t.Helper()
		queued := 0
		for range 2 * 16 {
			q := r.request("", deposit(1))
			q.Command.Actor = a
			r.must(Submit{[]*Request{q}})
			if len(r.out.Replies) == 0 {
				queued++
				continue
			}
			var notAccepted *submit.NotAcceptedError
			if !errors.As(r.out.Replies[0].Err, &notAccepted) || notAccepted.RetryAfter == 0 {
				t.Fatal(r.out.Replies[0].Err)
			}
		}
		if queued != most {
			t.Errorf("%d requests of %v were queued, want %d", queued, a, most)
		}
	}
	user := func(name string) decide.Actor { return decide.Actor{Sub: name, Broker: "alpha"} }
	for _, leave := range []func(){
		func() { r.decideAll() },
		func() {
			r.pass(r.m.cfg.Limits.DecideTimeout)
			r.must(Expire{})
		},
	} {
		line(user("greedy"), 8)
		line(user("greedy"), 0)
		line(user("second"), 4)
		line(user("third"), 2)
		line(decide.Actor{System: "gateway"}, 2) // the rest
		line(user("fourth"), 0)
		leave()
	}
	line(user("second"), 8)
}

// replied returns the answer to a request, if it is among the replies of the last step.
func (r *rig) replied(q *Request) (err error, ok bool) {
	for _, reply := range r.out.Replies {
		if reply.Request == q {
			return reply.Err, true
		}
	}
	return nil, false
}

func (r *rig) notAccepted(q *Request) bool {
	err, ok := r.replied(q)
	var e *submit.NotAcceptedError
	return ok && errors.As(err, &e)
}

// TestACommandThatOutlivedItsTermWaitsToBeDecidedAnew: a request that nobody has decided is given up after the limit for
// decisions. One that a term has decided waits for the next term until its deadline.
func TestACommandThatOutlivedItsTermWaitsToBeDecidedAnew(t *testing.T) {
	r := newRig(t).serving()
	outlived, late := r.request("u", deposit(1)), r.request("u", deposit(1))
	r.must(Submit{[]*Request{outlived, late}})
	r.decideAll()
	waiting := r.request("u", deposit(1))
	r.must(Submit{[]*Request{waiting}})
	r.must(End{})
	r.pass(r.m.cfg.Limits.DecideTimeout)
	r.must(Expire{})
	if len(r.out.Replies) != 1 || !r.notAccepted(waiting) {
		t.Errorf("answers of requests that wait between two terms: %+v", r.out.Replies)
	}
	r.serving()
	if _, replies := r.decideAll(); len(replies) != 0 {
		t.Errorf("answers before an acknowledgement: %+v", replies)
	}
	last := r.m.Tip().Sequence
	r.must(Acked{Producer: r.m.producers, Acks: []Ack{{Sequence: last - 1, Offset: int64(len(r.log))}}})
	if err, ok := r.replied(outlived); !ok || err != nil {
		t.Errorf("a request that was decided in the next term: %v, %v", err, ok)
	}
	r.pass(r.m.cfg.Limits.Deadline)
	r.must(Expire{})
	var unknown *submit.OutcomeUnknownError
	if err, _ := r.replied(late); !errors.As(err, &unknown) {
		t.Errorf("a request whose record is not acknowledged within its time: %v", err)
	}
}

// TestCommandsBoundToATerm: a command that was submitted for one term is not decided in another: not if it comes too late, nor
// if it is still in the queue, nor if that term decided it and ended before its record was valid.
func TestCommandsBoundToATerm(t *testing.T) {
	r := newRig(t).serving()
	number := r.m.Standing().Term
	bound := func() *Request {
		q := r.request("u", deposit(1))
		q.Term = number
		r.must(Submit{[]*Request{q}})
		return q
	}
	undecided := func(q *Request, when string, replies []Reply) {
		t.Helper()
		for _, reply := range replies {
			var busy *submit.NotAcceptedError
			if reply.Request == q && errors.As(reply.Err, &busy) && busy.Unowned {
				return
			}
		}
		t.Errorf("%s: %+v", when, replies)
	}
	decided := bound()
	if appended, _ := r.decideAll(); len(appended) != 1 {
		t.Fatal("it is not decided in its term")
	}
	waiting := bound()
	r.must(End{})
	appended := len(r.log)
	undecided(decided, "after its term", r.serving().out.Replies)
	_, replies := r.decideAll()
	undecided(waiting, "in the queue", replies)
	undecided(bound(), "too late", r.out.Replies)
	if last := r.m.Tip().Sequence; last != int64(appended) {
		t.Errorf("records after that of the term: %d", last-int64(appended))
	}
}

// TestAnOldRequestKeepsNoOthers: requests that were answered do not stay in memory because an earlier one waits.
func TestAnOldRequestKeepsNoOthers(t *testing.T) {
	var q requests
	waits := &Request{number: 1}
	q.open.push(waits)
	for n := range uint64(10_000) {
		q.open.push(&Request{number: n + 2, done: true})
		q.closed++
		q.compact()
	}
	if n := q.open.len(); n > 2048 || q.open.peek() != waits {
		t.Errorf("%d requests are kept", n)
	}
	waits.done = true
	q.closed++
	if q.dropAnswered(); q.open.len() != 0 || q.closed != 0 {
		t.Errorf("%d requests are left, %d answered", q.open.len(), q.closed)
	}
}

// TestABatchIsDecidedUpToTheFirstThatIsNot: what is not decided of a batch is its end. A queue that has room again, a stall
// that empties it, and a client that withdraws the first leave no hole.
func TestABatchIsDecidedUpToTheFirstThatIsNot(t *testing.T) {
	batch := func(r *rig, n int) (all []*Request) {
		for i := range n {
			q := r.request("u", deposit(1))
			if i > 0 {
				q.After = all[i-1]
			}
			all = append(all, q)
		}
		return all
	}
	t.Run("room again", func(t *testing.T) {
		r := newRig(t, func(l *Limits) { l.Queue = 4 }).serving()
		r.must(Submit{[]*Request{r.request("u", deposit(1)), r.request("u", deposit(1))}}) // as many as one user may have
		all := batch(r, 3)
		r.must(Submit{all[:1]})
		if !r.notAccepted(all[0]) {
			t.Fatal("a full queue took it")
		}
		r.decideAll()
		r.must(Submit{all[1:]})
		if !r.notAccepted(all[1]) || !r.notAccepted(all[2]) {
			t.Error("those after it were queued")
		}
	})
	t.Run("withdrawn", func(t *testing.T) {
		r := newRig(t).serving()
		all := batch(r, 3)
		r.must(Submit{all})
		r.must(Withdraw{all[1:2]})
		if !r.notAccepted(all[1]) {
			t.Fatal("it is not answered")
		}
		appended, replies := r.decideAll()
		if len(appended) != 1 || len(replies) != 1 || replies[0].Request != all[2] {
			t.Errorf("%d are decided, and answered are %+v", len(appended), replies)
		}
	})
	t.Run("withdrawn before", func(t *testing.T) {
		r := newRig(t).serving()
		all := batch(r, 2)
		r.must(Withdraw{all[:1]})
		r.must(Submit{all})
		if !r.notAccepted(all[1]) {
			t.Error("the one after it was queued")
		}
		if appended, _ := r.decideAll(); len(appended) > 0 {
			t.Errorf("%d are decided", len(appended))
		}
	})
	t.Run("too late", func(t *testing.T) {
		r := newRig(t).serving()
		all := batch(r, 2)
		r.must(Submit{all[:1]})
		r.pass(r.m.cfg.Limits.DecideTimeout)
		all[1].Since = r.now.Mono
		r.must(Submit{all[1:]})
		if appended, _ := r.decideAll(); len(appended) > 0 {
			t.Errorf("%d are decided", len(appended))
		}
	})
}

// TestEachRequestGetsOneAnswerInTime submits commands that are never acknowledged.
func TestEachRequestGetsOneAnswerInTime(t *testing.T) {
	r := newRig(t).serving()
	added, refused := r.request("u", deposit(1)), r.request("u", &termtest.Read{Account: "a"})
	r.must(Submit{[]*Request{added, refused}})
	answers := make(map[*Request]error)
	for at := r.now.Mono + r.m.cfg.Limits.Deadline; r.now.Mono <= at; r.pass(100 * time.Millisecond) {
		_, replies := r.decideAll()
		for _, reply := range replies {
			if _, twice := answers[reply.Request]; twice {
				t.Error("a request has two answers")
			}
			answers[reply.Request] = reply.Err
		}
	}
	var unknown *submit.OutcomeUnknownError
	var notAccepted *submit.NotAcceptedError
	if !errors.As(answers[added], &unknown) || !errors.As(answers[refused], &notAccepted) {
		t.Errorf("the answers are %v", answers)
	}
}

// TestACommandIsNotDecidedTooLate: a command with a time limit of its own is not decided after it, however short it has waited.
func TestACommandIsNotDecidedTooLate(t *testing.T) {
	r := newRig(t).serving()
	until := func(d time.Duration) *Request {
		q := r.request("u", deposit(1))
		q.Until = r.now.Mono + d
		return q
	}
	late, inTime := until(time.Millisecond), until(3*time.Millisecond)
	r.must(Submit{[]*Request{late, inTime}})
	r.pass(2 * time.Millisecond)
	appended, replies := r.decideAll()
	var notAccepted *submit.NotAcceptedError
	if len(replies) != 1 || replies[0].Request != late || !errors.As(replies[0].Err, &notAccepted) {
		t.Errorf("answers: %+v", replies)
	}
	if len(appended) != 1 || appended[0].Entry.Record.Command.ID != inTime.Command.ID {
		t.Errorf("records: %+v", appended)
	}
	r.pass(2 * time.Millisecond)
	tooLate := until(-time.Millisecond)
	r.must(Submit{[]*Request{tooLate}})
	if !r.notAccepted(tooLate) {
		t.Error("a command that comes too late is queued")
	}
}
