package journal

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/submit"
	"github.com/perpetua-exchange/perpetua/streams/term"
)

// TestAHangingStepDoesNotHangItsClients: a client is answered after its deadline although the owner's step does not return.
func TestAHangingStepDoesNotHangItsClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Owner{clock: SystemClock()}
		o.cfg.Deadline = 10 * time.Second
		r := &request{Request: term.Request{Since: o.clock.Elapsed()}, reply: make(chan answer, 1)}
		var unknown *submit.OutcomeUnknownError
		began := time.Now()
		if a := o.await(context.Background(), r); !errors.As(a.err, &unknown) {
			t.Errorf("the answer is %v", a.err)
		}
		if took := time.Since(began); took < o.cfg.Deadline {
			t.Errorf("it came after %v, before the machine's own", took)
		}
	})
}
