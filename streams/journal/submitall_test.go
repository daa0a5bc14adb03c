package journal

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/perpetua-exchange/perpetua/domain/decide"
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
		ctx := OnQueued(t.Context(), func() { queuedAt = len(o.queue) })
		done := make(chan []Outcome, 1)
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
				r.answer(Result{}, &RefusedError{Refusal: decide.Refuse(decide.Conflict, "NO", "no")})
			} else {
				r.move(uncertain)
				r.answer(Result{Repeated: true}, nil)
			}
		}
		out := <-done
		if took := time.Since(start); took != patience {
			t.Errorf("what nobody decides is given up after %v", took)
		}
		var refused *RefusedError
		var notAccepted *NotAcceptedError
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
