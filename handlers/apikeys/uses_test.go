package apikeys_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// owner takes commands when a test lets it.
type owner struct {
	arrived chan scalar.ID
	answers chan error
}

// Submit implements journal.Submitter.
func (o *owner) Submit(_ context.Context, _ string, c decide.Command) (journal.Result, error) {
	o.arrived <- c.Payload.(*identity.UseAPIKey).ID
	return journal.Result{}, <-o.answers
}

// TestUsesAreToldOnce notes the uses of two keys again and again while the first is told: each is told once, and again
// where that failed.
func TestUsesAreToldOnce(t *testing.T) {
	o := &owner{make(chan scalar.ID), make(chan error)}
	u := apikeys.NewUses(o, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := u.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	a, b := web.APIKey{ID: scalar.ID{1}}, web.APIKey{ID: scalar.ID{2}}
	note := func() {
		for range 10_000 { // more than may wait
			u.Note(a)
			u.Note(b)
		}
	}
	note()
	if id := <-o.arrived; id != a.ID {
		t.Fatalf("first %v", id)
	}
	note()
	o.answers <- &journal.RefusedError{Refusal: decide.Refuse(decide.Conflict, "API_KEY_USE_KNOWN", "another node was first")}
	if id := <-o.arrived; id != b.ID {
		t.Fatalf("then %v: the first was told twice", id)
	}
	o.answers <- errors.New("nobody owns the journal")
	for told := false; !told; { // as requests come, once it has waited a moment
		u.Note(b)
		select {
		case id := <-o.arrived:
			if told = true; id != b.ID {
				t.Errorf("again %v", id)
			}
			o.answers <- nil
		case <-time.After(10 * time.Millisecond): // or the requests would be all that happens
		}
	}
}
