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
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// liabilityRoots states the venue's liabilities in the role liabilities, and proves them to the clients of the trading
// interface.
type liabilityRoots struct {
	venue    *follower
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
	l := &liabilityRoots{venue: venue, blobs: blobs, secrets: seal.NewGenerations(n.stores.owners.Store(), n.Box)}
	store := liabilities.Store{Blobs: blobs, Box: n.Box}
	l.prover = liabilities.NewProver(store, l.key, l.journal)
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

// key returns the epoch key of a record that the fold has read. It makes no secret: the transparency log or a rotation does.
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
		first, err := firstSecret(ctx, l.blobs, l.secrets, id, false)
		if err != nil {
			return nil, err
		}
		l.keys, l.keyed = commitment.NewKeys(id, l.secrets.Secret), id
		l.keys.First = first
	}
	l.keys.Schedule, _ = l.venue.schedule()
	return l.keys.At(ctx, sequence)
}
