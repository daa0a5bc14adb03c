package journal

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// kept is a request whose term ended before it could be answered. The next fold says what became of its records.
type kept struct {
	request *request
	record  decide.ID // the command of the record that its answer needs to be valid; none if it left no record
	finish  decide.ID // the step that completes it, where that was decided
	steps   bool      // it is complete only with a step
	refused bool      // the broker refused its record for its size
}

// close ends a term and keeps the requests that it did not answer, in the order in which they were decided.
func (o *Owner) close(t *term) {
	t.close()
	var left []kept
	add := func(k kept) {
		if k.request.fate.Load() != abandoned {
			left = append(left, k)
		}
	}
	for _, h := range t.held.all() {
		k := kept{request: h.request}
		if s := h.slot; s != nil {
			k.record, k.refused = h.request.command.ID, s.tooLarge
			if s.request != h.request {
				k.steps, k.finish = true, s.entry.Record.Command.ID
			}
		}
		add(k)
	}
	for _, r := range t.pending {
		add(kept{request: r, record: r.command.ID, steps: true})
	}
	for _, r := range t.again.all() {
		add(kept{request: r})
	}
	if t.number == 0 { // it never opened, so what was kept before it still is
		left = append(left, slices.DeleteFunc(o.kept, func(k kept) bool { return k.request.fate.Load() == abandoned })...)
	}
	slices.SortStableFunc(left, func(a, b kept) int { return a.request.since.Compare(b.request.since) })
	o.kept = left
}

// fates returns a place for each record that a kept request waits for; the fold fills those that it meets.
func (o *Owner) fates() map[decide.ID]*Entry {
	m := make(map[decide.ID]*Entry)
	for _, k := range o.kept {
		for _, id := range []decide.ID{k.record, k.finish} {
			if !id.IsZero() {
				m[id] = nil
			}
		}
	}
	return m
}

// resume answers the kept requests whose records turned out valid, now that a valid taken record has settled the
// fate of everything before it, and lines the others up to be decided anew.
func (t *term) resume() {
	for _, k := range t.o.kept {
		record, finish := t.fates[k.record], t.fates[k.finish]
		switch {
		case k.record.IsZero():
			t.anew(k)
		case k.steps && finish != nil:
			t.o.respond(k.request, *finish, false)
		case k.steps && record != nil:
			t.pending[k.request.command.ID] = k.request
		case record != nil:
			t.o.respond(k.request, *record, false)
		case k.refused:
			k.request.answer(Result{}, &RefusedError{AsOf: t.o.position(t.tip.Sequence), Refusal: decide.Refuse(decide.TooLarge,
				CodeRecordTooLarge, "the brokers refused the record for its size")})
		default:
			t.anew(k)
		}
	}
	t.o.kept, t.fates = nil, nil
}

func (t *term) anew(k kept) {
	if k.request.move(queued) {
		t.again.push(k.request)
	}
}

// giveUp answers every request that is left, because this owner will not open another term.
func (o *Owner) giveUp() {
	o.refuse("this node no longer owns the journal")
	for _, k := range o.kept {
		k.request.answer(k.request.giveUp("this node no longer owns the journal"))
	}
	o.kept = nil
}
