package term

import (
	"cmp"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// carriedRequest is a request that was not answered before its term ended. The next term's replay determines which of its
// records are valid. Until the next valid term record each of them may still become valid, so a carried request MUST NOT be
// decided again before that.
type carriedRequest struct {
	request *Request
	record  scalar.ID // the command of the record that must be valid for the answer; zero if there is no record
	finish  scalar.ID // the step that completes it, if decided
	steps   bool      // only a step completes it
	valid   bool      // the record is known to be valid, whether or not the next replay reads it
	refused int       // bytes of its record if the brokers rejected that, or a batch with it, for the size; otherwise 0
	failed  error     // the error of applying its record: the answer, after a valid term record
}

// end ends the term and keeps the requests that it did not answer, in the order of their submission.
//
// Their records may be in the log, on their way, or lost, and no acknowledgement will arrive. So end neither answers a
// request nor allows it to be decided again before the next valid term record: a command that the client sent once would
// otherwise take effect twice.
func (m *Machine) end(in End) {
	m.noteTooLarge(in.Acks)
	t := &m.t
	left := m.unanswered()
	if t.resumed {
		m.behind = m.acknowledged // requests up to here were answered; those carried now were decided after it
	} else {
		// The term ended before Serve, perhaps with its own term record acknowledged. The requests carried from earlier terms
		// wait for records before that, so behind must not move.
		left = append(left, m.carried...)
	}
	left = slices.DeleteFunc(left, func(k carriedRequest) bool { return k.request.done })
	slices.SortFunc(left, func(a, b carriedRequest) int { return cmp.Compare(a.request.number, b.request.number) })
	m.carried = left
	if t.folded {
		m.met = max(m.met, t.inTerm)
	}
	m.t = state{}
	m.phase = Idle
}

// noteTooLarge marks the records that the brokers rejected for their size, or together with one.
func (m *Machine) noteTooLarge(acks []Ack) {
	for _, a := range acks {
		if s := m.t.flight.find(a.Sequence); s != nil && a.TooLarge {
			s.tooLarge = true
		}
	}
}

// unanswered returns, in no order, the requests that the term has decided, or is to decide again, and has not answered.
func (m *Machine) unanswered() (left []carriedRequest) {
	t := &m.t
	for _, h := range slices.Concat(t.deferred.all(), t.index.held.all()) {
		k := carriedRequest{request: h.request}
		if h.void {
			k.failed = h.err
		}
		if s := h.record; s != nil {
			k.record, k.refused = h.request.Command.ID, s.refused()
			if s.request != h.request { // the record is the step that completes the work of an earlier one
				k.steps, k.finish, k.valid = true, s.entry.Record.Command.ID, h.began <= t.flight.last.Sequence
			}
		}
		left = append(left, k)
	}
	for id, p := range t.pending {
		left = append(left, carriedRequest{request: p.request, record: id, steps: true, valid: p.sequence <= t.flight.last.Sequence, refused: p.record.refused()})
	}
	for q := &m.requests.retry; q.len() > 0; {
		left = append(left, carriedRequest{request: q.pop()})
	}
	return left
}

// awaitedRecords returns a map with a nil entry for each record that a carried request waits for. The replay stores the
// records that it meets.
func (m *Machine) awaitedRecords() map[scalar.ID]*record.Entry {
	awaited := make(map[scalar.ID]*record.Entry)
	for _, k := range m.carried {
		for _, id := range []scalar.ID{k.record, k.finish} {
			if !id.IsZero() {
				awaited[id] = nil
			}
		}
	}
	return awaited
}

// settleCarried handles the carried requests, now that a valid term record has settled all earlier records. It answers those
// that have a valid record and queues the others to be decided again.
//
// It must run after the term has processed the records read together with its term record. A foreign record among them ends
// the term, and the requests queued here would be lost or decided on an obsolete state. A request without a record among the
// awaited never took effect and never will: the awaited records cover the log from before the first carried request to the
// term record, independent of the seed.
func (m *Machine) settleCarried() {
	for _, k := range m.carried {
		m.settle(k)
	}
	m.carried, m.t.awaited, m.t.resumed = nil, nil, true
}

func (m *Machine) settle(k carriedRequest) {
	t, r := &m.t, k.request
	record, finish := t.awaited[k.record], t.awaited[k.finish]
	switch {
	case k.failed != nil:
		m.reply(r, submit.Result{}, k.failed)
	case k.record.IsZero(): // a refusal or a repetition; its tip may not be in the log
		m.requeue(r)
	case k.steps && finish != nil:
		m.respond(r, finish, false)
	case k.steps && (k.valid || record != nil):
		p := pending{request: r}
		if record != nil {
			p.sequence = record.Position.Sequence
		}
		t.pending[r.Command.ID] = p
	case record != nil:
		m.respond(r, record, false)
	case k.refused > 0 && r.unbatched: // it was alone in its batch, so its record is too large
		m.noteRefusedSize(k.refused)
		m.refuseForSize(r)
	default:
		r.unbatched = k.refused > 0
		m.requeue(r)
	}
}

// requeue has a request decided again, unless it is bound to the term that has ended.
func (m *Machine) requeue(r *Request) {
	if r.done {
		return
	}
	r.state = queued
	if m.bound(r) {
		m.abandon(r, ofAnotherTerm)
		return
	}
	r.outlived = true
	m.requests.retry.push(r)
}

// giveUp answers the requests that wait for a term.
func (m *Machine) giveUp(reason string) {
	m.abandonQueue(reason)
	for _, k := range m.carried {
		m.abandon(k.request, reason)
	}
	m.carried = nil
}
