package journal

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestCommandsSubmittedTogether: they stand in the queue in their order before the first is waited for; each has its own
// outcome; and those that nobody decides are given up together, not one after the other.
func TestCommandsSubmittedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Owner{queue: make(chan *request, 4), journal: "test"}
		o.cfg.Client = &Client{cfg: Config{Metrics: NewMetrics()}}
		o.cfg.Deadline = 10 * time.Second
		o.meters.answered = prometheus.NewCounter(prometheus.CounterOpts{Name: "answered"})
		o.accepting.Store(true)
		var queuedAt int
		ctx := submit.OnQueued(t.Context(), func() { queuedAt = len(o.queue) })
		done := make(chan []submit.Outcome, 1)
		start := time.Now()
		go func() {
			done <- o.SubmitAll(ctx, []decide.Command{{Type: "a"}, {Type: "b"}, {Type: "c"}, {Type: "d"}, {Type: "e"}})
		}()
		synctest.Wait()
		if queuedAt != 4 {
			t.Errorf("who submits is told with %d commands in the queue", queuedAt)
		}
		for _, want := range []string{"a", "b"} {
			r := <-o.queue
			if r.command.Type != want {
				t.Errorf("%s stands where %s should", r.command.Type, want)
			}
			if want == "a" {
				r.move(harmless)
				r.answer(submit.Result{}, &submit.RefusedError{Refusal: decide.Refuse(decide.Conflict, "NO", "no")})
			} else {
				r.move(uncertain)
				r.answer(submit.Result{Repeated: true}, nil)
			}
		}
		out := <-done
		if took := time.Since(start); took != patience {
			t.Errorf("what nobody decides is given up after %v", took)
		}
		var refused *submit.RefusedError
		var notAccepted *submit.NotAcceptedError
		if !errors.As(out[0].Err, &refused) || out[1].Err != nil || !out[1].Result.Repeated {
			t.Errorf("those that were answered: %+v %+v", out[0], out[1])
		}
		for i := 2; i < 5; i++ { // two that were not decided, and one that found the queue full
			if !errors.As(out[i].Err, &notAccepted) {
				t.Errorf("command %d: %v", i, out[i].Err)
			}
		}
	})
}

// TestABatchIsDecidedUpToTheFirstThatIsNot: what is not decided of a batch is its end. A queue that has room again, a stall
// that empties it between two of them, and a client that gives up the first of them leave no hole.
func TestABatchIsDecidedUpToTheFirstThatIsNot(t *testing.T) {
	batch := func() (o *Owner, next func() *request) {
		o = &Owner{queue: make(chan *request, 8), journal: "test"}
		o.accepting.Store(true)
		term := &term{o: o}
		return o, term.nextRequest
	}
	line := func(t *testing.T, o *Owner, before *request) (*request, error) {
		return o.enqueue(t.Context(), decide.Command{Type: "a"}, before)
	}
	undecided := func(t *testing.T, next func() *request, rs ...*request) {
		t.Helper()
		if r := next(); r != nil {
			t.Errorf("%p is decided of %v", r, rs)
		}
		for i, r := range rs {
			_, err := r.giveUp("")
			var notAccepted *submit.NotAcceptedError
			if !errors.As(err, &notAccepted) {
				t.Errorf("command %d: %v", i, err)
			}
		}
	}
	t.Run("room again", func(t *testing.T) {
		o, next := batch()
		for range cap(o.queue) {
			o.queue <- &request{}
		}
		first, err := line(t, o, nil)
		if err == nil {
			t.Fatal("a full queue took it")
		}
		for len(o.queue) > 0 {
			<-o.queue
		}
		second, err := line(t, o, first)
		third, err2 := line(t, o, second)
		if err == nil || err2 == nil {
			t.Errorf("those after it were lined up: %v, %v", err, err2)
		}
		undecided(t, next, second, third)
	})
	t.Run("stall", func(t *testing.T) {
		o, next := batch()
		first, _ := line(t, o, nil)
		o.refuse("a stall")
		// The one that lines them up looked at accepting before the stall.
		second := &request{before: first, reply: make(chan answer, 1)}
		third := &request{before: second, reply: make(chan answer, 1)}
		o.queue <- second
		o.queue <- third
		undecided(t, next, second, third)
	})
	t.Run("given up", func(t *testing.T) {
		o, next := batch()
		first, _ := line(t, o, nil)
		second, _ := line(t, o, first)
		third, _ := line(t, o, second)
		if next() != first {
			t.Fatal("the first is not decided first")
		}
		if _, err := second.giveUp("too late"); err == nil {
			t.Fatal("what is given up has an answer")
		}
		undecided(t, next, third)
	})
}
