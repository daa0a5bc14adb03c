package journal

import (
	"errors"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// kept is a request that was not answered before its term ended. The next term's replay determines which of its records
// are valid.
type kept struct {
	request *request
	record  scalar.ID // the command of the record that must be valid for the answer; zero if there is no record
	finish  scalar.ID // the step that completes it, if decided
	steps   bool      // only a step completes it
	valid   bool      // the record is known to be valid, whether or not the next replay reads it
	refused bool      // the brokers rejected its record, or a batch with it, for the size
	failed  error     // the error of applying its record: the answer, after a valid taken record
}

// close ends a term and keeps the requests that it did not answer, in the order of their submission.
//
// Their records may be in the log, on their way, or lost, and no acknowledgement will arrive. Until the next valid
// taken record each of them may still become valid. So close neither answers a request nor allows it to be decided
// again before that record: a command that the client sent once would otherwise take effect twice.
func (o *Owner) close(t *term) {
	t.close()                                                 // first: until it returns, the producer's callbacks add results
	for _, a := range append(t.unread, t.acks.take(nil)...) { // the neighbors in a rejected batch
		a.slot.tooLarge = errors.Is(a.err, kerr.MessageTooLarge)
	}
	var left []kept
	add := func(k kept) {
		if k.request.fate.Load() != abandoned {
			left = append(left, k)
		}
	}
	for _, h := range slices.Concat(t.held.all(), t.barrier.held.all()) {
		k := kept{request: h.request}
		if h.void {
			k.failed = h.err
		}
		if s := h.slot; s != nil {
			k.record, k.refused = h.request.command.ID, s.tooLarge
			if s.request != h.request { // the slot is the step that completes the work of an earlier record
				k.steps, k.finish, k.valid = true, s.entry.Record.Command.ID, h.began <= t.flight.last.Sequence
			}
		}
		add(k)
	}
	for id, p := range t.pending {
		add(kept{request: p.request, record: id, steps: true, valid: p.sequence <= t.flight.last.Sequence,
			refused: p.slot != nil && p.slot.tooLarge})
	}
	for _, r := range t.again.all() {
		add(kept{request: r})
	}
	if t.resumed {
		o.behind = o.acknowledged // requests up to here were answered; those kept now were decided after it
	} else {
		// The term ended before resume, perhaps with its own taken record acknowledged. The requests kept from earlier
		// terms wait for records before that taken record, so behind must not move.
		left = append(left, slices.DeleteFunc(o.kept, func(k kept) bool { return k.request.fate.Load() == abandoned })...)
	}
	slices.SortStableFunc(left, func(a, b kept) int { return a.request.since.Compare(b.request.since) })
	o.kept = left
}

// fates returns a map with a nil entry for each record that a kept request waits for. The replay stores the records
// that it meets.
func (o *Owner) fates() map[scalar.ID]*record.Entry {
	m := make(map[scalar.ID]*record.Entry)
	for _, k := range o.kept {
		for _, id := range []scalar.ID{k.record, k.finish} {
			if !id.IsZero() {
				m[id] = nil
			}
		}
	}
	return m
}

// resume handles the kept requests, now that a valid taken record has settled all earlier records. It answers those
// that have a valid record and queues the others to be decided again.
//
// It must run after the term has processed the records read together with its taken record. A foreign record among them
// ends the term, and the requests queued by resume would be lost or decided on an obsolete state. A request without a
// record among the fates never took effect and never will: the fates cover the log from before the first kept record to
// the taken record, independent of the seed.
func (t *term) resume() {
	for _, k := range t.o.kept {
		record, finish := t.fates[k.record], t.fates[k.finish]
		switch {
		case k.failed != nil:
			k.request.answer(submit.Result{}, k.failed)
		case k.record.IsZero(): // a refusal or a repetition; its tip may not be in the log
			t.anew(k)
		case k.steps && finish != nil:
			t.o.respond(k.request, finish, false)
		case k.steps && (k.valid || record != nil):
			p := pending{request: k.request}
			if record != nil {
				p.sequence = record.Position.Sequence
			}
			t.pending[k.request.command.ID] = p
		case record != nil:
			t.o.respond(k.request, record, false)
		case k.refused && k.request.alone: // it was alone in its batch, so its record is too large
			k.request.answer(submit.Result{}, &submit.RefusedError{AsOf: t.o.position(t.tip.Sequence), Refusal: decide.Refuse(decide.TooLarge,
				CodeRecordTooLarge, "the brokers refused the record for its size")})
		default:
			k.request.alone = k.refused
			t.anew(k)
		}
	}
	t.o.kept, t.fates, t.resumed = nil, nil, true
}

// anew queues a request to be decided again, unless it is bound to the term that has ended.
func (t *term) anew(k kept) {
	r := k.request
	r.kept.Store(r.term == 0)
	switch {
	case !r.move(queued):
	case r.term != 0:
		r.refuse(ofAnotherTerm)
	default:
		t.again.push(r)
	}
}

// giveUp answers the remaining requests, because this owner will not open another term.
func (o *Owner) giveUp() {
	o.refuse("this node no longer owns the journal")
	for _, k := range o.kept {
		k.request.answer(k.request.giveUp("this node no longer owns the journal"))
	}
	o.kept = nil
}
