package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestNodesOfAFencedVenueReplaceTheKeysOnce: every engine of a copy asks for the replacement, and the log holds one.
func TestNodesOfAFencedVenueReplaceTheKeysOnce(t *testing.T) {
	b := newBench(t, journals.All())
	first, stop := b.run(t, b.config)
	at := first.fence.watch.View()
	if !at.Acts() {
		t.Fatalf("the first node is %s", at.Status)
	}
	id, _, err := first.stores.client.JournalID(t.Context(), fence.Journal)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fence.TakeOver(t.Context(), first.stores.owners.Store(), id, "another place", 0, nil); err != nil {
		t.Fatal(err)
	}
	stop()

	nodes := make([]*Node, 3)
	var starting sync.WaitGroup
	for i := range nodes {
		starting.Go(func() {
			c := b.config
			c.ID, c.Alone = fmt.Sprint("n", i), false
			nodes[i], _ = b.run(t, c)
		})
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	own, err := nodes[0].ownKey(nodes[0].fence.watch.View())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if v := n.fence.watch.View(); !v.IsFenced() || n.audience().Name != v.Audience() {
			t.Errorf("%s is %s, and its tokens are for %q", n.ID, v.Status, n.audience().Name)
		}
	}
	identities, err := nodes[0].followers.of(journals.Identity)
	if err != nil {
		t.Fatal(err)
	}
	identities.fold.View(func(s decide.State, _ record.Position) {
		if keys := s.(*identity.State).Keys(); len(keys) != 1 || keys[0].KID != own.KID {
			t.Errorf("%d keys are in use", len(keys))
		}
	})
	entries, err := readUpTo(t.Context(), journal.NewReader(identities.client, identities.Rules, 0, record.Before), identities.fold.Position().Sequence)
	if err != nil {
		t.Fatal(err)
	}
	added := 0
	for _, e := range entries {
		if _, ok := operation.Find[*identity.SigningKeyAdded](e.Record); ok {
			added++
		}
	}
	if added != 1 {
		t.Errorf("signing keys were added %d times", added)
	}
}

// TestAKeyStoreOfAnotherVenue: a fence is created only where the keys are that the log names.
func TestAKeyStoreOfAnotherVenue(t *testing.T) {
	b := newBench(t, journals.All())
	n := b.start(t)
	if err := n.keysBelong(t.Context()); err != nil {
		t.Errorf("the log names no owner: %v", err)
	}
	person := owner.Ref{Type: owner.PersonType, ID: operation.NewID()}
	payload := &onboarding.RegisterOwner{Ref: person, Fields: []byte("sealed"), ExternalID: b.config.Box.ExternalID("b", owner.PersonType, "p")}
	n.submit(t, journals.Onboarding, decide.Command{ID: operation.NewID(), Type: payload.CommandType(), Actor: decide.Actor{Broker: "b"}, Payload: payload})
	if err := n.keysBelong(t.Context()); !errors.Is(err, errForeignKeys) {
		t.Errorf("the key store has no key: %v", err)
	}
	if err := n.stores.owners.Create(t.Context(), person.String()); err != nil {
		t.Fatal(err)
	}
	if err := n.keysBelong(t.Context()); err != nil {
		t.Errorf("the key store has the key: %v", err)
	}
}

// TestAVenueThatWaitsWritesNothing: another venue may have taken over, and may read the bucket.
func TestAVenueThatWaitsWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys, err := seal.OpenKeyStore(t.Context(), "mem://")
		if err != nil {
			t.Fatal(err)
		}
		defer keys.Close()
		start := time.Now()
		f := fencing{watch: fence.NewWatch(fence.Config{Keys: keys, Logger: slog.New(slog.DiscardHandler),
			Elapsed:  func() time.Duration { return time.Since(start) },
			Identify: func(context.Context) (scalar.ID, string, bool, error) { return scalar.ID{1}, "here", true, nil }})}
		if f.mayWrite() {
			t.Error("it may before it has read its fence")
		}
		if err := f.watch.Confirm(t.Context()); err != nil || !f.mayWrite() {
			t.Errorf("it may not although it holds the fence (%v)", err)
		}
		if time.Sleep(fence.ReadEvery); f.mayWrite() {
			t.Errorf("it may when it is %s", f.watch.View().Status)
		}
	})
}
