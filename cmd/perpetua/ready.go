package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// terms remembers who took each journal last, as this node's folds tell.
type terms struct {
	mu   sync.Mutex
	urls map[string]string // of the node with the latest term, by journal
}

// nobody has taken a journal that has just been founded.
const nobody = "nobody"

// newTerms listens to folds that do not run yet, in the order of the journals. What was before them is in their seeds.
func newTerms(seeds map[string]*journal.Seed, folds ...*follow.Fold) *terms {
	t := &terms{urls: make(map[string]string)}
	for i, name := range journalNames() {
		if seed := seeds[name]; seed != nil {
			t.urls[name] = seed.URL
		}
		folds[i].Listen(func(e journal.Entry, _ decide.State) {
			url := nobody
			switch event := e.Record.Events[0].(type) {
			case *journal.Genesis:
			case *journal.Taken:
				url = event.URL
			default:
				return
			}
			t.mu.Lock()
			t.urls[name] = url
			t.mu.Unlock()
		})
	}
	return t
}

// of returns the URL of the node that has the latest term of a journal, or "" where the fold began after it.
func (t *terms) of(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.urls[name]
}

// owned reports whether a journal has an owner with a valid term: this node, or the one that the group has assigned
// it to and that was the last to take it.
func (n *node) owned(ctx context.Context, name string) bool {
	if n.engine != nil {
		if _, here := n.engine.Serving(name, 0); here {
			return true
		}
	}
	owner, err := n.journals.Owner(ctx, name, 0)
	if err != nil {
		n.log.Debug("asking who owns a journal", "journal", name, "error", err)
	}
	if owner == "" || owner == n.url() {
		return false
	}
	taken := n.terms.of(name)
	return owner == taken || taken == "" && !n.fold(name).Position().IsBefore()
}

// fold returns this node's follower of a journal.
func (n *node) fold(name string) *follow.Fold {
	if name == trading.Rules().Journal() {
		return n.trading
	}
	return n.identity
}

// awaitOwners returns once each journal has an owner.
func (n *node) awaitOwners(ctx context.Context) error {
	for _, name := range journalNames() {
		if err := n.fold(name).WaitTip(ctx); err != nil {
			return fmt.Errorf("waiting for the follower of the journal %s: %w", name, err)
		}
		for !n.owned(ctx, name) {
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return fmt.Errorf("waiting for an owner of the journal %s: %w", name, err)
			}
		}
	}
	return nil
}

// awaitTip returns once this node's followers have looked at everything that the journals hold now, and the read
// models, where the node writes or reads them, have applied what is valid of it.
func (n *node) awaitTip(ctx context.Context) error {
	for i, name := range journalNames() {
		fold := n.fold(name)
		if err := fold.WaitTip(ctx); err != nil {
			return fmt.Errorf("waiting for the follower of the journal %s: %w", name, err)
		}
		if !n.roles.projector && (!n.roles.api || n.alone) { // alone, nobody writes what it would read
			continue
		}
		if err := n.rows[i].Wait(ctx, fold.Position().Sequence); err != nil {
			return fmt.Errorf("waiting for the read models of the journal %s: %w", name, err)
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
