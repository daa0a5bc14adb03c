package node

import (
	"context"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// liabilityRoots states the venue's liabilities in the role liabilities, and proves them to the clients of the trading
// interface.
type liabilityRoots struct {
	venue    *follower
	log      *transparencyLog // of the trading journal
	creates  bool             // whether this node may create the venue's secret: in the role
	secrets  *seal.Generations
	blobs    *blob.Store
	follower *liabilities.Follower
	prover   *liabilities.Prover

	mu    sync.Mutex
	keys  *commitment.Keys
	keyed scalar.ID // the journal of the keys
}

// openLiabilities returns the node's part in liabilities. In the role, it listens to the fold, which must not run yet.
func (n *Node) openLiabilities() (*liabilityRoots, error) {
	venue, err := n.followers.of(journals.Trading)
	if err != nil {
		return nil, err
	}
	blobs := blob.NewStore(n.stores.snapshots.bucket)
	l := &liabilityRoots{venue: venue, creates: n.Roles.Liabilities, blobs: blobs, secrets: seal.NewGenerations(n.stores.owners.Store(), n.Box)}
	for _, log := range n.logs {
		if log.Name() == journals.Trading {
			l.log = log
		}
	}
	store := liabilities.Store{Blobs: blobs, Box: n.Box}
	l.prover = liabilities.NewProver(store, l.key, l.journal, n.past)
	if !n.Roles.Liabilities {
		return l, nil
	}
	l.follower = liabilities.NewFollower(liabilities.Config{Store: store, Keys: l.key, Now: time.Now, Logger: n.Logger.With("part", "liabilities"),
		Submit: func(ctx context.Context, p *trading.RecordLiabilities) error {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			_, err := n.engine.commands.Submit(ctx, journals.Trading, decide.Command{ID: operation.NewID(), Type: p.CommandType(),
				Actor: decide.Actor{System: "liabilities"}, Payload: p})
			return err
		}})
	venue.fold.Listen(l.follower.Observe)
	return l, nil
}

// journal returns the identity of the trading journal.
func (l *liabilityRoots) journal(ctx context.Context) (scalar.ID, error) {
	id, founded, err := l.venue.client.JournalID(ctx, journals.Trading)
	if err == nil && !founded {
		err = fmt.Errorf("%s is not founded yet: %w", journals.Trading, fs.ErrNotExist)
	}
	return id, err
}

// key returns the epoch key of a record that the fold has read. In the role, it creates the venue's first secret if nothing depends on
// it yet, as the transparency log does.
func (l *liabilityRoots) key(ctx context.Context, sequence int64) (*commitment.EpochKey, error) {
	id, err := l.journal(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.venue.fold.Wait(ctx, sequence); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil || l.keyed != id {
		unused, err := l.unused(ctx)
		if err != nil {
			return nil, err
		}
		first, err := firstSecret(ctx, l.blobs, l.secrets, id, unused)
		if err != nil {
			return nil, err
		}
		l.keys, l.keyed = commitment.NewKeys(id, l.secrets.Secret), id
		l.keys.First = first
	}
	l.keys.Schedule, _ = l.venue.schedule()
	return l.keys.At(ctx, sequence)
}

// unused reports whether this node may create the venue's first secret: no tree was signed, no liabilities were recorded, and no
// record names a secret.
func (l *liabilityRoots) unused(ctx context.Context) (bool, error) {
	if !l.creates || l.log == nil {
		return false, nil
	}
	stated := false
	l.venue.fold.View(func(state decide.State, _ record.Position) {
		s, ok := state.(*trading.State)
		stated = !ok || s.LiabilitiesStated() > 0
	})
	if schedule, _ := l.venue.schedule(); stated || schedule.Generation() > 0 {
		return false, nil
	}
	o, _, err := l.log.origin(ctx)
	if err != nil {
		return false, err
	}
	signed, err := l.log.everSigned(ctx, o)
	return !signed, err
}
