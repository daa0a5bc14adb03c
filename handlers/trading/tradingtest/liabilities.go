package tradingtest

import (
	"context"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

// epochKey is the key of the record roots of a test's venue.
func epochKey(context.Context, int64) (*commitment.EpochKey, error) {
	return commitment.ParseEpochKey(make([]byte, commitment.KeySize))
}

func (v *Venue) balances() liabilities.Store {
	return liabilities.Store{Blobs: blob.NewStore(v.Bucket), Box: v.Box}
}

func (v *Venue) proofs() *liabilities.Prover {
	return liabilities.NewProver(v.balances(), epochKey, func(context.Context) (scalar.ID, error) { return v.Trading.id, nil }, v.Trading)
}

// SweepBalances deletes the balances of trees that were written before a time.
func (v *Venue) SweepBalances(before time.Time) {
	v.t.Helper()
	if err := v.balances().Sweep(context.Background(), v.Trading.id, before); err != nil {
		v.t.Fatal(err)
	}
}

// StateLiabilities has the liabilities stated from now on, until the test ends. Each call is another node that does it.
func (v *Venue) StateLiabilities() *liabilities.Follower {
	f := liabilities.NewFollower(liabilities.Config{Store: v.balances(), Keys: epochKey, Now: v.wall, Logger: slog.New(slog.DiscardHandler),
		Submit: func(ctx context.Context, p *domain.RecordLiabilities) error {
			_, err := v.Submit(ctx, "trading", decide.Command{ID: operation.NewID(), Type: p.CommandType(), Actor: decide.Actor{System: "liabilities"}, Payload: p})
			return err
		}})
	v.Trading.Listen(f.Observe)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = f.Run(ctx)
	}()
	v.t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}
