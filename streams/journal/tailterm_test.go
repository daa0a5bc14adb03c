package journal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestATermThatDoesNotFollowEndsTails has a record open a term that can't be next. Every tail that knows the term before
// it stops there, after the record before it, also one that shares the reader of another that does not know.
func TestATermThatDoesNotFollowEndsTails(t *testing.T) {
	r := newFake(t)
	all := r.written(3)
	last := all[len(all)-1]
	began := r.tail(r.client, all[2].Position).rest() // in the middle, so that it does not know; the others share with it
	told := r.tail(r.client, last.Position)
	told.InTerm(1)
	tails := []*tail{told.rest(), r.tail(r.client, record.Before).rest()}
	if n := r.counted("perpetua_journal_alarms_total"); n != 0 {
		t.Fatalf("%v alarms before it", n)
	}

	link := func(after record.Position, kind string, events ...decide.Event) []byte {
		value, err := record.Encode(nil, &record.Record{Sequence: after.Sequence + 1, Prev: after.Hash, Time: last.Record.Time,
			Outcome: decide.Accepted, Events: events, Command: decide.Recorded{ID: record.NewCommandID(time.Now()), Type: kind, Actor: decide.Engine}})
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	good := link(last.Position, "counter.change", &added{Name: "a", N: 1, Total: 7})
	r.produce(good)
	next := began.to(last.Position.Sequence + 1).Position()
	r.produce(link(next, record.TypeTermStarted, &record.TermStarted{Term: 7, Node: "forger"}))
	began.to(next.Sequence + 1)
	alone := r.tail(r.newClient(nil, nil), last.Position) // of another process, with a reader of its own
	alone.InTerm(1)
	for i, x := range append(tails, alone) {
		x.to(next.Sequence)
		for range 2 {
			_, _, err := x.Next(r.context())
			var broken *record.BrokenRecordError
			if !errors.As(err, &broken) || broken.Sequence != next.Sequence+1 || !strings.Contains(err.Error(), "it opens term 7 after term 1") || !x.Position().Equal(next) {
				t.Errorf("tail %d, at %v: %v", i, x.Position(), err)
			}
		}
	}
}
