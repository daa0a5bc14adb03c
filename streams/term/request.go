package term

import (
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Request is a submitted command. From Submit to its Reply only the machine uses it, except for Ref.
type Request struct {
	Command decide.Command
	After   *Request      // the request before it in the same batch, without which this one must not be decided; nil if none
	Since   time.Duration // when it was submitted, on the monotonic clock
	Until   time.Duration // when it is too late to decide it, on the monotonic clock; 0 for never
	Term    int64         // the only term in which it may be decided, or 0 for any; see submit.InTerm
	Ref     any           // belongs to the driver

	number uint64 // in the order of submission
	state  requestState
	done   bool   // it has an answer
	quota  *quota // of its user in the queue

	// outlived is set after the term that decided the request has ended. The request is then decided again at any time before
	// its deadline.
	outlived bool
	// unbatched is set after the brokers rejected, for its size, a batch that contains the request's record. The record must
	// then be appended alone to find out whether it is the one that is too large.
	unbatched bool
}

// requestState determines the answer to a request that has waited for too long.
type requestState uint8

const (
	queued    requestState = iota // not decided, or decided in a term whose records turned out never to become valid
	noEffect                      // decided without a record: a refusal, or a repetition of a complete record
	inDoubt                       // its record, or the one it repeats, is not complete, or its work is not finished
	abandoned                     // answered without its outcome
)

// requests are the requests without an answer.
type requests struct {
	queue  fifo[*Request] // not decided; in the order of their submission
	retry  fifo[*Request] // to be decided again, before the queue
	open   fifo[*Request] // all that were queued, for their deadlines; some have an answer
	closed int            // number of those in open that have an answer
	quotas quotas         // of the queue
	count  uint64         // of all that were queued
}

// quotas prevent one user from filling the queue. A user may have at most as many queued requests as there are free slots.
// So one user can fill half of the queue and two users a third each, and another user still finds room.
type quotas map[string]*quota // by username; bounded by the number of users

// quota counts a user's queued requests. A nil quota is unlimited.
type quota struct{ queued int }

// of returns an actor's quota. It returns nil for the system, which sends few commands and must never be blocked.
func (q *quotas) of(a decide.Actor) *quota {
	if a.System != "" || a.Sub == "" {
		return nil
	}
	own := (*q)[a.Sub]
	if own == nil {
		if *q == nil {
			*q = make(quotas)
		}
		own = new(quota)
		(*q)[a.Sub] = own
	}
	return own
}

// take counts one more queued request. It returns false if the user would then have more queued requests than room.
func (q *quota) take(room int) bool {
	if q == nil {
		return true
	}
	if q.queued >= room {
		return false
	}
	q.queued++
	return true
}

// leave counts a request that has left the queue.
func (q *quota) leave() {
	if q != nil {
		q.queued--
	}
}

func notAccepted(reason string) error {
	return &submit.NotAcceptedError{RetryAfter: time.Second, Reason: reason, Unowned: reason == ofAnotherTerm}
}

// ofAnotherTerm is the reason for not deciding a command that is bound to another term.
const ofAnotherTerm = "the term for which the command was submitted has ended"

// afterUndecided is the reason for not deciding a command of a batch although the queue has room.
const afterUndecided = "a command before it in its batch was not decided"

// predecessorFailed reports whether an earlier command of the batch was not decided. If so, this one must not be decided
// either.
//
// An earlier command may miss the queue and a later one not: the queue may be full for the first only; a stall empties the
// queue before the rest of a batch comes; and an earlier one may be withdrawn or run out of time. So the machine checks each
// request that it queues and each that it takes from the queue. The request before it has left the queue earlier, so its
// state is known.
func (r *Request) predecessorFailed() bool { return r.After != nil && r.After.state == abandoned }

// bound reports whether a request must not be decided in this term.
func (m *Machine) bound(r *Request) bool { return r.Term != 0 && r.Term != m.t.number }

// late reports whether it is too late to decide a request.
func (m *Machine) late(r *Request) bool { return r.Until != 0 && m.now.Mono > r.Until }

// admit queues a request, or answers it if it must not be decided.
func (m *Machine) admit(r *Request) {
	q, limit := &m.requests, m.cfg.Limits.Queue
	if r.done { // it was withdrawn before
		return
	}
	if reason := m.inadmissible(r); reason != "" {
		m.abandon(r, reason)
		return
	}
	r.quota = q.quotas.of(r.Command.Actor)
	switch room := limit - q.queue.len(); {
	case !r.quota.take(room):
		m.abandon(r, "more commands of the user are waiting than there is room for those of others")
	case room <= 0:
		r.quota.leave()
		m.abandon(r, "too many commands are waiting")
	default:
		q.count++
		r.number = q.count
		q.queue.push(r)
		q.open.push(r)
		q.compact()
	}
}

// inadmissible returns the reason for which a request is not queued even if there is room, or "".
func (m *Machine) inadmissible(r *Request) string {
	switch {
	case r.predecessorFailed():
		return afterUndecided
	case !m.Accepting():
		return "this node accepts no commands for the journal at the moment"
	case m.bound(r):
		return ofAnotherTerm
	case m.late(r):
		return tooLate
	}
	return ""
}

// nextRequest returns the next request to decide, or nil.
func (m *Machine) nextRequest() *Request {
	q := &m.requests
	for {
		var r *Request
		switch {
		case q.retry.len() > 0:
			if q.retry.peek().unbatched && m.t.flight.inFlight.len() > 0 {
				return nil
			}
			r = q.retry.pop()
		case q.queue.len() > 0:
			r = q.queue.pop()
			r.quota.leave()
		default:
			return nil
		}
		switch {
		case r.done:
		case r.predecessorFailed():
			m.abandon(r, afterUndecided)
		case m.bound(r):
			m.abandon(r, ofAnotherTerm)
		case m.late(r):
			m.abandon(r, tooLate)
		default:
			r.state = inDoubt
			return r
		}
	}
}

// reply answers a request, if it has no answer yet.
func (m *Machine) reply(r *Request, result submit.Result, err error) {
	if r.done {
		return
	}
	if r.done, r.After = true, nil; r.number != 0 {
		m.requests.closed++
	}
	m.out.Replies = append(m.out.Replies, Reply{Request: r, Result: result, Err: err})
}

// abandon answers a request without its outcome. The error says whether the command may still take effect.
func (m *Machine) abandon(r *Request, reason string) {
	err := notAccepted(reason)
	if r.state == inDoubt {
		err = &submit.OutcomeUnknownError{CommandID: r.Command.ID}
	}
	if !r.done {
		r.state = abandoned
	}
	m.reply(r, submit.Result{}, err)
}

// abandonQueue answers the queued requests.
func (m *Machine) abandonQueue(reason string) {
	for q := &m.requests.queue; q.len() > 0; {
		r := q.pop()
		r.quota.leave()
		m.abandon(r, reason)
	}
}

const tooLate = "the command was not decided in time"

// expire answers the requests that have reached their deadline.
func (m *Machine) expire() {
	q, limits := &m.requests, &m.cfg.Limits
	for q.queue.len() > 0 {
		if r := q.queue.peek(); !r.done && m.now.Mono-r.Since < limits.DecideTimeout {
			break
		}
		r := q.queue.pop()
		r.quota.leave()
		m.abandon(r, tooLate)
	}
	for q.dropAnswered(); q.open.len() > 0 && m.now.Mono-q.open.peek().Since >= limits.Deadline; q.dropAnswered() {
		m.abandon(q.open.peek(), tooLate)
	}
}

// dropAnswered removes answered requests from the head of open.
func (q *requests) dropAnswered() {
	for q.open.len() > 0 && q.open.peek().done {
		q.open.pop()
		q.closed--
	}
}

// compact removes the answered requests from open if they are most of it: an old request without an answer must not keep
// all later ones in memory.
func (q *requests) compact() {
	if n := q.open.len(); n > 1024 && 2*q.closed > n {
		q.open.remove(func(r *Request) bool { return r.done })
		q.closed = 0
	}
}

// expiresAt returns when the next request runs out of time. ok is false if there is none.
func (m *Machine) expiresAt() (at time.Duration, ok bool) {
	q, limits := &m.requests, &m.cfg.Limits
	q.dropAnswered()
	if q.open.len() == 0 {
		return 0, false
	}
	at = q.open.peek().Since + limits.Deadline
	if q.queue.len() > 0 {
		at = min(at, q.queue.peek().Since+limits.DecideTimeout)
	}
	return at, true
}
