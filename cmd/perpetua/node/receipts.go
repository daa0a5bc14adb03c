package node

import (
	"context"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/proofs"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/receipt"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

var _ proofs.Source = (*transparencyLog)(nil)

// receiptPoll is the time between two looks for a checkpoint that a receipt waits for.
const receiptPoll = 200 * time.Millisecond

// Record returns a record that the fold has applied. It implements proofs.Source.
func (l *transparencyLog) Record(ctx context.Context, sequence int64) (record.Entry, error) {
	from, err := projections.Anchor(ctx, l.stores.pool, l.Name(), 0, sequence-1)
	if err != nil {
		return record.Entry{}, err
	}
	return l.client.ReadAt(ctx, l.Rules, 0, from, sequence)
}

// Prove implements proofs.Source.
func (l *transparencyLog) Prove(ctx context.Context, e record.Entry, parties []string) (*receipt.Receipt, error) {
	p, err := l.receipts(ctx)
	if err != nil {
		return nil, err
	}
	return p.Prove(ctx, e, parties)
}

// receipts returns the prover of the journal's records. Another node may sign them.
func (l *transparencyLog) receipts(ctx context.Context) (*receipt.Prover, error) {
	reader, id, err := l.published(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prover != nil {
		return l.prover, nil
	}
	committer, err := l.committer()
	if err != nil {
		return nil, err
	}
	l.prover = receipt.NewProver(receipt.Config{Log: reader, Committer: committer, Policy: l.witnesses(reader.Origin()), Poll: receiptPoll, Key: l.keysLater(id)})
	return l.prover, nil
}

// keysLater calls epochKeys when the first key is needed. Before that, the node that signs may not have made the first secret.
func (l *transparencyLog) keysLater(id scalar.ID) func(context.Context, int64) (*commitment.EpochKey, error) {
	var keys func(context.Context, int64) (*commitment.EpochKey, error)
	return func(ctx context.Context, sequence int64) (_ *commitment.EpochKey, err error) {
		if keys == nil {
			if keys, err = l.epochKeys(ctx, id, true); err != nil {
				return nil, err
			}
		}
		return keys(ctx, sequence)
	}
}
