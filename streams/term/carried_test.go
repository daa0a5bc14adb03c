package term

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/term/termtest"
)

// TestATermThatNeverServedKeepsWhatWasCarried is about a term that a foreign one ends between its own term record and its
// first decision. What was carried into it waits for the next one.
func TestATermThatNeverServedKeepsWhatWasCarried(t *testing.T) {
	r := newRig(t).serving()
	q, gone := r.request("u", deposit(1)), r.request("u", deposit(1))
	r.must(Submit{[]*Request{q, gone}})
	appended, _ := r.decideAll()
	r.must(End{})
	landed := r.put(*appended[0].Entry)
	r.must(Withdraw{[]*Request{gone}})
	r.taken()
	r.must(End{}) // without having served
	if left := r.m.carried; len(left) != 1 || left[0].request != q || left[0].record != q.Command.ID {
		t.Errorf("carried: %+v", left)
	}
	r.taken()
	r.must(Serve{})
	if len(r.out.Replies) != 1 || r.out.Replies[0].Request != q || r.out.Replies[0].Result.Entry.Position.Hash != landed.Position.Hash {
		t.Errorf("answered: %+v", r.out.Replies)
	}
	if r.must(End{}); len(r.m.carried) != 0 {
		t.Errorf("carried after its answer: %+v", r.m.carried)
	}
}

// TestASweepWhoseBeginningIsKnownGoesOn is about a command whose record was acknowledged, so that no replay has to meet
// it again: one that begins with a newer seed does not. To decide it anew would do it twice.
func TestASweepWhoseBeginningIsKnownGoesOn(t *testing.T) {
	r := newRig(t).serving()
	q := r.request("u", &termtest.Sweep{To: "a", Steps: 3})
	r.must(Submit{[]*Request{q}})
	appended, _ := r.decideAll()
	first := r.put(*appended[0].Entry)
	r.must(Acked{Producer: r.m.producers, Acks: []Ack{{Sequence: first.Position.Sequence, Offset: first.Position.Offset}}})
	r.must(End{})
	state := termtest.Rules{}.NewState()
	for _, e := range r.log {
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	r.must(Begin{Seed: &record.Seed{State: state, Position: first.Position, Term: 1, Time: first.Record.Time, Journal: first.Journal}, End: int64(len(r.log))})
	r.must(ReplayEnded{})
	r.must(Take{})
	e := r.put(*r.out.Append[0].Entry)
	r.must(Read{Entries: []record.Entry{e}, Next: e.Position.Offset + 1})
	r.must(Serve{})
	if len(r.m.t.pending) != 1 || r.m.requests.retry.len() != 0 {
		t.Errorf("%d go on and %d are decided anew", len(r.m.t.pending), r.m.requests.retry.len())
	}
	appended, _ = r.decideAll()
	if len(appended) != 3 || appended[0].Entry.Record.Command.Type != "engine.step" {
		t.Errorf("%d records follow", len(appended))
	}
}
