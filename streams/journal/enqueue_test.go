package journal_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// replies collects the answers to a batch.
type replies struct {
	mu       sync.Mutex
	outcomes map[int]submit.Outcome
	passed   int // replies that Replied has followed
}

func (r *replies) batch(cs ...decide.Command) submit.Batch {
	r.outcomes = make(map[int]submit.Outcome)
	return submit.Batch{Commands: cs,
		Reply: func(i int, o submit.Outcome) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.outcomes[i] = o
		},
		Replied: func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.passed = len(r.outcomes)
		}}
}

// all waits until n answers have come and were said to have come.
func (r *replies) all(t *testing.T, n int) map[int]submit.Outcome {
	t.Helper()
	eventually(t, "the answers", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.passed == n
	})
	return r.outcomes
}

// TestOnlyWhatIsQueuedIsSaidToBe submits to an owner that accepts nothing, and then to one that does.
func TestOnlyWhatIsQueuedIsSaidToBe(t *testing.T) {
	r := newRig(t)
	idle, err := journal.NewOwner(r.ownerConfig("n0"))
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	ctx := submit.OnQueued(t.Context(), func() { said++ })
	if _, err := idle.Submit(ctx, command(&add{"a", 1})); !notAccepted(err) || said != 0 {
		t.Errorf("without a term: %v, and %d commands are queued", err, said)
	}
	if out := idle.SubmitAll(ctx, []decide.Command{command(&add{"a", 1})}); !notAccepted(out[0].Err) || said != 0 {
		t.Errorf("without a term: %v, and %d batches are queued", out[0].Err, said)
	}
	o := r.owner("n1").ready()
	if _, err := o.insist(command(&add{"a", 1})); err != nil {
		t.Fatal(err)
	}
	for said = 0; said == 0; {
		if out := o.SubmitAll(ctx, []decide.Command{command(&add{"a", 1})}); out[0].Err != nil && !notAccepted(out[0].Err) {
			t.Fatal(out[0].Err)
		}
	}
}

// TestEnqueue: commands that nobody waits for have the same outcomes as others, in their order.
func TestEnqueue(t *testing.T) {
	r := newRig(t)
	idle, err := journal.NewOwner(r.ownerConfig("n0"))
	if err != nil {
		t.Fatal(err)
	}
	var none replies
	idle.Enqueue(context.Background(), none.batch(command(&add{"a", 1})))
	if got := none.all(t, 1); !notAccepted(got[0].Err) {
		t.Errorf("without a term: %v", got[0].Err)
	}

	o := r.owner("n1").ready()
	var some replies
	o.Enqueue(context.Background(), some.batch(command(&add{"a", 1}), command(&read{"a"}), command(&bad{"panic"}), command(&add{"a", 2})))
	got := some.all(t, 4)
	var refused *submit.RefusedError
	var failed *submit.DecideError
	switch {
	case got[0].Err != nil || got[3].Err != nil || got[3].Result.Position.Sequence != got[0].Result.Position.Sequence+1:
		t.Errorf("records: %+v", got)
	case !errors.As(got[1].Err, &refused) || refused.AsOf.Sequence != got[0].Result.Position.Sequence:
		t.Errorf("a refusal: %v", got[1].Err)
	case !errors.As(got[2].Err, &failed):
		t.Errorf("a failure: %v", got[2].Err)
	}
}

// TestEnqueueInOrder: batches are decided in the order in which they were enqueued. One that is withdrawn leaves the others as they
// are, and once the owner stops, a batch is refused as a whole.
func TestEnqueueInOrder(t *testing.T) {
	r := newRig(t)
	o := r.owner("n1").ready()
	all := make([]replies, 20)
	for i := range all {
		withdraw := o.Enqueue(context.Background(), all[i].batch(command(&add{"a", 1}), command(&add{"a", 1})))
		if i == len(all)/2 {
			withdraw()
		}
	}
	last := int64(0)
	for i := range all {
		got := all[i].all(t, 2)
		for k := range 2 {
			switch {
			case got[k].Err == nil && got[k].Result.Position.Sequence <= last:
				t.Errorf("batch %d is at %d, after %d", i, got[k].Result.Position.Sequence, last)
			case got[k].Err == nil:
				last = got[k].Result.Position.Sequence
			case i != len(all)/2 || !notAccepted(got[k].Err) && !unknown(got[k].Err):
				t.Errorf("batch %d: %v", i, got[k].Err)
			}
		}
	}
	if err := o.end(); err != nil {
		t.Fatal(err)
	}
	records := len(r.all())
	var late replies
	o.Enqueue(context.Background(), late.batch(command(&add{"a", 1}), command(&add{"a", 1})))
	if got := late.all(t, 2); !notAccepted(got[0].Err) || !notAccepted(got[1].Err) || len(r.all()) != records {
		t.Errorf("after the end: %+v", got)
	}
}

// TestAWithdrawnBatch: a batch whose client has gone is answered at once. What may be in the log is not called undecided.
func TestAWithdrawnBatch(t *testing.T) {
	r := newRig(t)
	o, g := r.gatedOwner("n1", time.Minute)
	o.ready()
	o.do(command(&add{"a", 1}))
	g.withhold()
	var some replies
	withdraw := o.Enqueue(context.Background(), some.batch(command(&add{"a", 1})))
	eventually(t, "the record is in the log", func() bool { return len(r.all()) == 4 })
	withdraw()
	if got := some.all(t, 1); !unknown(got[0].Err) {
		t.Errorf("%v", got[0].Err)
	}
	g.release()
}
