package node

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/handlers/login"
)

// RunUntil runs the node and concurrently open, which makes it ready. An error of open counts only while the node runs:
// afterwards, the node's error is the reason.
func (n *Node) RunUntil(ctx context.Context, open func(context.Context) error) error {
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return n.Run(running) })
	g.Go(func() error {
		if err := open(running); running.Err() == nil {
			return err
		}
		return nil
	})
	return g.Wait()
}

// CatchUp waits until the journals have owners and this node's readers have reached their tips. Then it checks that the
// master key opens the secrets in the identity journal, and warns of a key store that is not the venue's. It logs the progress.
func (n *Node) CatchUp(ctx context.Context) error {
	defer n.tellProgress(tellEvery)()
	if n.Follow != nil {
		return n.catchUpWithVenue(ctx)
	}
	if !n.compares.waitAsked(ctx) {
		return fmt.Errorf("waiting for the comparison of the log with what is known of it: %w", ctx.Err())
	}
	if err := n.awaitOwners(ctx); err != nil {
		return err
	}
	if err := n.AwaitTip(ctx); err != nil {
		return err
	}
	identities, err := n.Fold(journals.Identity)
	if err != nil {
		return err
	}
	// Login fails until the fence has been read.
	if err := n.awaitFence(ctx); err != nil {
		return fmt.Errorf("waiting for the fence in the key store: %w", err)
	}
	if err := login.CheckSeal(identities, n.Box); err != nil {
		return fmt.Errorf("secrets of the identity journal: %w", err)
	}
	n.checkKeyStore(ctx)
	return nil
}

// Announce makes /readyz report the actual state. Before that, it reports that the node is starting.
func (n *Node) Announce() { n.health.phase.CompareAndSwap(starting, serves) }

// starting reports whether the node may still lack users and keys that the log has.
func (n *Node) starting() bool { return n.health.phase.Load() == starting }

// owned reports whether a journal has an owner with a valid term: this node, or a node that is both the owner according
// to the finder and the last one to have taken the journal.
func (n *Node) owned(ctx context.Context, f *follower) bool {
	if n.engine.engine != nil {
		if _, here := n.engine.engine.Serving(f.Name(), 0); here {
			return true
		}
	}
	assigned, err := n.engine.owners.Owner(ctx, f.Name(), 0)
	if err != nil {
		n.Logger.Debug("asking who owns a journal", "journal", f.Name(), "error", err)
	}
	if assigned == "" || assigned == n.URL() {
		return false
	}
	taken := f.owner.node()
	return assigned == taken || taken == "" && !f.fold.Position().IsBefore()
}

// awaitOwners returns once each journal has an owner.
func (n *Node) awaitOwners(ctx context.Context) error {
	for _, f := range n.followers {
		if err := n.awaitFold(ctx, f); err != nil {
			return err
		}
		for !n.owned(ctx, f) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting for an owner of the journal %s: %w", f.Name(), ctx.Err())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	return nil
}

// AwaitTip returns once this node's followers have read all records that the journals have now. If the node writes or
// reads the read models, these must have applied the valid ones. It waits for brokers that do not answer.
func (n *Node) AwaitTip(ctx context.Context) error {
	for _, f := range n.followers {
		if err := n.awaitFold(ctx, f); err != nil {
			return err
		}
		if err := n.awaitRows(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// awaitFold returns once a fold has reached its tip. It asks again when the brokers do not answer, until the context or the fold
// ends.
func (n *Node) awaitFold(ctx context.Context, f *follower) error {
	for {
		err := f.fold.WaitTip(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || cmp.Or(f.fold.Err(), f.fold.Stopped()) != nil {
			return fmt.Errorf("waiting for the follower of the journal %s: %w", f.Name(), err)
		}
		n.Logger.Warn("the end of the log can't be read yet", "journal", f.Name(), "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(reachAgain):
		}
	}
}

// awaitTip is AwaitTip for one journal. It returns an error if the brokers do not answer.
func (n *Node) awaitTip(ctx context.Context, f *follower) error {
	if err := f.fold.WaitTip(ctx); err != nil {
		return fmt.Errorf("waiting for the follower of the journal %s: %w", f.Name(), err)
	}
	return n.awaitRows(ctx, f)
}

// awaitRows returns once the rows that this node writes or reads include the fold's position.
func (n *Node) awaitRows(ctx context.Context, f *follower) error {
	if !n.Roles.Projector && (!n.Roles.API || n.Alone) { // nobody may write the rows that a lone node reads
		return nil
	}
	if err := f.rows.Wait(ctx, f.fold.Position().Sequence); err != nil {
		return fmt.Errorf("waiting for the read models of the journal %s: %w", f.Name(), err)
	}
	return nil
}
