package journal_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestWhatAProcessHasBuiltIsNotDecodedAgain compares what readers of the owner's process find with what those of
// another do, and what they are given with what the owner made.
func TestWhatAProcessHasBuiltIsNotDecodedAgain(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	x := r.tail(r.client, record.Before).rest()
	made := make(map[int64]*record.Entry)
	for i := range 5 {
		for _, c := range []decide.Command{keyed("k"+string(rune('a'+i)), &add{"a", i}), command(&later{Name: "b", N: 1, At: scalar.Day}),
			command(&add{strings.Repeat("long", 1000), 1})} {
			result := o.do(c)
			made[result.Position.Sequence] = result.Entry
		}
	}
	x.to(int64(1 + len(made)))
	here, there := r.all(), (&rig{t: t, client: r.newClient(nil, nil), rules: r.rules}).all()
	if len(here) < 2+len(made) || len(here) != len(there) {
		t.Fatalf("%d and %d records", len(here), len(there))
	}
	again := 0
	for i, e := range here {
		if !reflect.DeepEqual(e, there[i]) {
			t.Errorf("record %d is, where it was made, %+v, and elsewhere %+v", i, e.Record, there[i].Record)
		}
		if e.Record == there[i].Record {
			t.Errorf("record %d was not decoded elsewhere", i)
		}
		m := made[int64(i)]
		if m == nil {
			continue
		}
		if _, plain := e.Record.Events[0].(decide.Canonical); plain != (e.Record == m.Record) {
			t.Errorf("record %d, a %s, is the owner's own: %v", i, e.Record.Events[0].EventType(), e.Record == m.Record)
		} else if plain {
			again++
		}
	}
	if again < 10 {
		t.Errorf("%d records were not decoded again", again)
	}
}

// TestWhatWasBuiltDoesNotHideAnEdit has another value stand in the log than the one that was built, of the same length.
func TestWhatWasBuiltDoesNotHideAnEdit(t *testing.T) {
	r := newRig(t)
	all := r.written(6)
	v := values(all)
	v[4] = []byte(strings.Replace(string(v[4]), `"n":3`, `"n":7`, 1))
	r.recreate(v...)
	x := r.tail(r.client, record.Before).rest()
	if x.Position().Sequence != 4 {
		t.Fatalf("it comes to %v", x.Position())
	}
	entries := r.all()
	if e := entries[4].Record.Events[0].(*added); e.N != 7 || string(entries[4].Value) != string(v[4]) || entries[4].Position.Hash == all[4].Position.Hash {
		t.Errorf("read as %+v", e)
	}
	var diverged *record.DivergedError
	if _, err := r.poll(all[4].Position); !errors.As(err, &diverged) {
		t.Errorf("%v", err)
	}
}
