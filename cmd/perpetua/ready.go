package main

import (
	"context"
	"fmt"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/follow"
)

// awaitOwners returns once each journal has an owner: this node in a valid term, or another one by the group's word.
func (n *node) awaitOwners(ctx context.Context) error {
	for _, r := range rulesOfJournals() {
		for {
			owner, err := n.engine.Owner(ctx, r.Journal(), 0)
			if err != nil {
				n.log.Debug("asking who owns a journal", "journal", r.Journal(), "error", err)
			}
			_, here := n.engine.Serving(r.Journal(), 0)
			if here || owner != "" && owner != n.url() {
				break
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("waiting for an owner of the journal %s: %w", r.Journal(), err)
			}
		}
	}
	return nil
}

// awaitTip returns once this node's followers have looked at everything that the journals hold now, and the read
// models have applied what is valid of it.
func (n *node) awaitTip(ctx context.Context) error {
	for i, r := range rulesOfJournals() {
		fold := []*follow.Fold{n.identity, n.trading}[i]
		if err := fold.WaitTip(ctx); err != nil {
			return fmt.Errorf("waiting for the follower of the journal %s: %w", r.Journal(), err)
		}
		if err := n.rows[i].Wait(ctx, fold.Position().Sequence); err != nil {
			return fmt.Errorf("waiting for the read models of the journal %s: %w", r.Journal(), err)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
