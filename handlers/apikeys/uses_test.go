package apikeys_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/apikeys"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// owner takes commands when a test lets it.
type owner struct {
	arrived chan scalar.ID
	answers chan error
}

// Submit implements submit.Submitter.
func (o *owner) Submit(_ context.Context, _ string, c decide.Command) (submit.Result, error) {
	o.arrived <- c.Payload.(*identity.UseAPIKey).ID
	return submit.Result{}, <-o.answers
}

// usesOf runs Uses in a bubble of its own time until the test ends it.
func usesOf(t *testing.T, to submit.Submitter) (u *apikeys.Uses, stop func()) {
	t.Helper()
	u = apikeys.NewUses(to, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := u.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return u, func() {
		cancel()
		running.Wait()
	}
}

// TestUsesAreToldOnce notes the uses of two keys again and again while the first is told: each is told once, and again
// where that failed.
func TestUsesAreToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &owner{make(chan scalar.ID), make(chan error)}
		u, stop := usesOf(t, o)
		defer stop()
		a, b := access.APIKey{ID: scalar.ID{1}}, access.APIKey{ID: scalar.ID{2}}
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
		o.answers <- &submit.RefusedError{Refusal: decide.Refuse(decide.Conflict, "API_KEY_USE_KNOWN", "another node was first")}
		if id := <-o.arrived; id != b.ID {
			t.Fatalf("then %v: the first was told twice", id)
		}
		o.answers <- errors.New("nobody owns the journal")
		synctest.Wait()
		note() // before a second is over
		time.Sleep(time.Second)
		synctest.Wait()
		select {
		case id := <-o.arrived:
			t.Fatalf("%v was told again at once", id)
		default:
		}
		u.Note(b)
		if id := <-o.arrived; id != b.ID {
			t.Errorf("again %v", id)
		}
		o.answers <- nil
	})
}

// refusing refuses every use, as the owner of a journal does whose clock has not come to the day yet.
type refusing struct{ asked int }

// Submit implements submit.Submitter.
func (r *refusing) Submit(context.Context, string, decide.Command) (submit.Result, error) {
	r.asked++
	return submit.Result{}, &submit.RefusedError{Refusal: decide.Refuse(decide.Conflict, "API_KEY_USE_KNOWN", "of yesterday")}
}

// TestUsesAroundMidnight has a busy key's uses refused, since it is still yesterday where the owner is: it is asked once a
// second, not with every request.
func TestUsesAroundMidnight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := new(refusing)
		u, stop := usesOf(t, owner)
		defer stop()
		const seconds, each = 10, 50
		for range seconds * each {
			u.Note(access.APIKey{ID: scalar.ID{1}})
			synctest.Wait()
			time.Sleep(time.Second / each)
		}
		if owner.asked != seconds {
			t.Errorf("in %d seconds the owner was asked %d times", seconds, owner.asked)
		}
	})
}
