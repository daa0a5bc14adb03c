package journal

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestCommandsBoundToATerm: a command that was submitted for one term is not decided in another: not if it comes too late, nor if
// it is still in the queue, nor if that term decided it and ended before its record was valid.
func TestCommandsBoundToATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Owner{queue: make(chan *request, 2)}
		o.cfg.Deadline = 10 * time.Second
		o.accepting.Store(true)
		o.serving.Store(4)
		bound := func() *request {
			r, err := o.enqueue(submit.InTerm(t.Context(), 4), decide.Command{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		undecided := func(r *request, when string) {
			t.Helper()
			_, err := o.await(t.Context(), r)
			var busy *submit.NotAcceptedError
			if !errors.As(err, &busy) || !busy.Unowned {
				t.Errorf("%s: %v", when, err)
			}
		}
		first := bound()
		if r := (&term{o: o, number: 4}).nextRequest(); r != first {
			t.Error("it is not decided in its term")
		}
		next := &term{o: o, number: 5}
		next.anew(kept{request: first})
		undecided(first, "after its term")
		second := bound()
		if next.nextRequest() != nil {
			t.Error("it is decided in the next term")
		}
		undecided(second, "in the queue")
		o.serving.Store(5)
		var busy *submit.NotAcceptedError
		if _, err := o.enqueue(submit.InTerm(t.Context(), 4), decide.Command{}, nil); !errors.As(err, &busy) || !busy.Unowned {
			t.Errorf("too late: %v", err)
		}
	})
}
