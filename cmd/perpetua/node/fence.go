package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/login"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/fence"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// fencing watches the fence of the venue.
type fencing struct {
	watch *fence.Watch // nil if the node follows a venue, whose fence it does not have
	// replaced is the audience for which the copied signing keys are known to be replaced.
	replaced *atomic.Pointer[string]
}

// openFencing makes the fence the guard of the key store. It does not read the fence yet.
func openFencing(c Config, s *stores, belongs func(context.Context) error) (fencing, error) {
	f := fencing{replaced: new(atomic.Pointer[string])}
	if c.Follow != nil {
		return f, nil
	}
	f.watch = fence.NewWatch(fence.Config{Keys: s.owners.Store(), Settle: fence.Settle, Command: c.Settings.TakeOverCommand(),
		Logger: c.Logger.With("part", "fence"), Belongs: belongs, Elapsed: s.client.Elapsed,
		Former:   func(ctx context.Context) (string, error) { return fence.FormerLocation(ctx, s.client) },
		Identify: func(ctx context.Context) (scalar.ID, string, bool, error) { return fence.Locate(ctx, s.client) }})
	s.owners.SetGuard(f.watch)
	return f, nil
}

// run watches the fence until the context ends.
func (f *fencing) run(ctx context.Context) {
	if f.watch != nil {
		f.watch.Run(ctx)
	}
}

const (
	// sampledKeys is the number of keys that the key store is asked for before the fence is created.
	sampledKeys = 8
	// foldWithin limits the time for which the creation of the fence waits for the fold. It is tried again.
	foldWithin = time.Second
)

// errForeignKeys reports a key store that is not the venue's.
var errForeignKeys = errors.New("the key store has neither the fence of this venue nor the key of any owner that the log names: look at --key-url, and whether its file system is mounted. " +
	"If they were lost for good, stop the node and enter " + settings.TakeOver + " --fence-lost")

// keysBelong returns errForeignKeys if the log names owners and the key store has the keys of none of the oldest. A
// destroyed key leaves a tombstone.
func (n *Node) keysBelong(ctx context.Context) error {
	owners, err := n.Fold(journals.Onboarding)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, foldWithin)
	defer cancel()
	if err := owners.WaitTip(ctx); err != nil {
		return fmt.Errorf("waiting for the owners in the log: %w", err)
	}
	var sample []owner.Ref
	owners.View(func(s decide.State, _ record.Position) { sample = s.(*onboarding.State).FirstOwners(sampledKeys) })
	for _, o := range sample {
		switch _, err := n.stores.owners.KeyID(ctx, o.String()); {
		case errors.Is(err, seal.ErrAway):
			return err
		case !errors.Is(err, seal.ErrMissing):
			return nil
		}
	}
	if len(sample) > 0 {
		return errForeignKeys
	}
	return nil
}

// mayWrite reports whether snapshots and witnesses may be written: after a take-over, another venue may use the same
// bucket. It would find its log diverged from a snapshot or witness of this one.
func (f *fencing) mayWrite() bool { return f.watch == nil || f.watch.View().Acts() }

// whileItActs makes a task run only while the venue may act on the world. A node that follows a venue acts only on its own stores.
func (n *Node) whileItActs(run func(context.Context) error) func(context.Context) error {
	if n.fence.watch == nil {
		return run
	}
	return func(ctx context.Context) error { return n.fence.watch.While(ctx, run) }
}

// audience returns the audience of this venue's tokens. It is empty while a fenced venue still has the copied signing keys.
func (n *Node) audience() access.Audience {
	if n.fence.watch == nil {
		return access.Audience{Name: n.ID}
	}
	v := n.fence.watch.View()
	a := access.Audience{Name: v.Audience()}
	if v.IsFenced() {
		if !n.hasOwnKey(v) {
			a.Name = ""
		}
		return a
	}
	// Builds without audiences issued tokens that live this long.
	a.Bare = v.Known() && time.Since(v.Fence.Created) < login.Lifetime
	return a
}

// hasOwnKey reports whether the copied signing keys have been replaced, as far as the identity journal is folded.
func (n *Node) hasOwnKey(v fence.View) bool {
	if at := n.fence.replaced.Load(); at != nil && *at == keyPurpose(v) {
		return true
	}
	key, err := n.ownKey(v)
	if err != nil {
		return false
	}
	identities, err := n.Fold(journals.Identity)
	if err != nil {
		return false
	}
	known := false
	identities.View(func(s decide.State, _ record.Position) { _, known = s.(*identity.State).Key(key.KID) })
	if known {
		purpose := keyPurpose(v)
		n.fence.replaced.Store(&purpose)
	}
	return known
}

// keyPurpose returns the purpose from which the signing key of a fenced venue is derived. It differs each time the
// venue is fenced.
func keyPurpose(v fence.View) string {
	return fmt.Sprintf("%s, fenced by epoch %d", v.Venue, v.Fence.Epoch)
}

func (n *Node) ownKey(v fence.View) (*identity.AddSigningKey, error) {
	return login.DerivedSigningKey(n.Box, keyPurpose(v))
}

// replaceEvery is the delay before another attempt to replace the signing keys.
const replaceEvery = 200 * time.Millisecond

// replaceKeys submits a command to replace the signing keys whenever the venue becomes fenced, until the context ends.
// Every engine submits it. All of them derive the same key, so the journal records it once.
func (n *Node) replaceKeys(ctx context.Context) error {
	missing := func(v fence.View) bool { return v.IsFenced() && !n.hasOwnKey(v) }
	for {
		if err := n.fence.watch.Await(ctx, missing); err != nil {
			return nil
		}
		if err := n.replaceKey(ctx, n.fence.watch.View()); err != nil && ctx.Err() == nil {
			n.Logger.Debug("the signing keys that were copied are not replaced yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(replaceEvery):
		}
	}
}

func (n *Node) replaceKey(ctx context.Context, v fence.View) error {
	identities, err := n.Fold(journals.Identity)
	if err != nil {
		return err
	}
	if err := identities.WaitTip(ctx); err != nil {
		return err
	}
	if !v.IsFenced() || n.hasOwnKey(v) {
		return nil
	}
	key, err := n.ownKey(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	payload := &identity.ReplaceSigningKeys{AddSigningKey: *key}
	_, err = n.engine.commands.Submit(ctx, journals.Identity, decide.Command{ID: operation.NewID(), Type: payload.CommandType(),
		Actor: decide.Actor{System: "fence"}, Payload: payload})
	var refused *submit.RefusedError
	if errors.As(err, &refused) && refused.Refusal.Kind == decide.Conflict {
		return nil // another node was first
	}
	return err
}

// awaitFence waits until the fence has been read and the node can issue tokens.
func (n *Node) awaitFence(ctx context.Context) error {
	return n.fence.watch.Await(ctx, func(fence.View) bool { return n.audience().Name != "" })
}

// fenceState is the status of the fence in /readyz. It omits addresses and paths, which only the node's log may show.
type fenceState struct {
	Status fence.Status `json:"status"`
	Epoch  int64        `json:"epoch,omitempty"`
	Venue  string       `json:"venue_id,omitempty"`
	// Command makes a fenced venue act in place of the other one.
	Command string `json:"command,omitempty"`
}

func (n *Node) fenceState() *fenceState {
	if n.fence.watch == nil {
		return nil
	}
	v := n.fence.watch.View()
	s := &fenceState{Status: v.Status, Epoch: v.Epoch, Venue: v.Venue}
	if v.IsFenced() {
		s.Command = settings.TakeOver
	}
	return s
}
