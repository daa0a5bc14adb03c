package journal_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// seededOwner is an owner whose terms begin with whatever seed there is at their time.
func (r *rig) seededOwner(node string) (*running, *atomic.Pointer[record.Seed]) {
	r.t.Helper()
	seed := new(atomic.Pointer[record.Seed])
	cfg := r.ownerConfig(node)
	cfg.Deadline = time.Minute
	cfg.Seed = func(context.Context) (*record.Seed, error) { return seed.Load(), nil }
	return r.run(cfg).ready(), seed
}

// refuseOne has the brokers refuse what is produced next, which ends a term.
func (r *rig) refuseOne() {
	r.fake.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: r.topic(), Err: kerr.InvalidRecord})
}

func TestASecondTermOfOneRunStartsFromTheNewestSeed(t *testing.T) {
	r := newFake(t)
	o, seed := r.seededOwner("n1")
	for range 10 {
		o.do(command(&add{"a", 1}))
	}
	newest := o.do(keyed("k", &add{"a", 1})).Entry
	o.do(command(&add{"a", 1}))
	state := newCounters()
	state.totals["a"] = 11
	state.memory.Note(newest.Stamp(), newest.Record.Command)
	seed.Store(&record.Seed{State: state, Position: newest.Position, Term: 1, Time: newest.Record.Time})
	r.refuseOne()
	late := o.do(command(&add{"a", 100})) // ends the first term and is decided anew in the second
	if got, _ := o.total("a"); got != "112" {
		t.Errorf("total %s", got)
	}
	if again := o.do(keyed("k", &add{"a", 1})); !again.Repeated || again.Position.Sequence != newest.Position.Sequence {
		t.Errorf("a key that the seed remembers is answered with %+v", again)
	}
	if term, _ := o.Serving(); term != 2 || late.Repeated {
		t.Errorf("term %d, repeated %v", term, late.Repeated)
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	if state.applied != 3 { // the add after it, the taken record and the late one
		t.Errorf("%d records were applied to the seed", state.applied)
	}
}

// TestASecondTermOfOneRunDoesNotWaitForALostSeed has a seed stand beyond the end of a log that holds everything that
// this owner knows to be acknowledged: what leads to it will never come.
func TestASecondTermOfOneRunDoesNotWaitForALostSeed(t *testing.T) {
	r := newFake(t)
	o, seed := r.seededOwner("n1")
	last := o.do(command(&add{"a", 1})).Entry
	lost := record.Position{Offset: last.Position.Offset + 5, Sequence: last.Position.Sequence + 5, Hash: record.Hash{1}}
	seed.Store(&record.Seed{State: newCounters(), Position: lost, Term: 1, Time: last.Record.Time})
	r.refuseOne()
	o.start(command(&add{"a", 1}))
	eventually(t, "the owner ends", func() bool {
		select {
		case <-o.done:
			return true
		default:
			return false
		}
	})
	var diverged *record.DivergedError
	if !errors.As(o.err, &diverged) || !diverged.Have.Equal(lost) {
		t.Errorf("ended with %v", o.err)
	}
	if n := len(r.all()); n != 3 {
		t.Errorf("the log holds %d records", n)
	}
}

// The brokers may tell of an end that the log has lost by the time that it is folded. No record will ever be there.
func TestAFoldWaitsForNoEndThatIsGone(t *testing.T) {
	r := newFake(t)
	r.written(3)
	r.tellsOldEnd(50, 2) // as ground and open ask
	o := r.owner("n2").ready()
	if got, _ := o.total("a"); got == "0" {
		t.Error("it has folded nothing")
	}
}
