package liabilities

import (
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	form "github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// Keys returns the epoch key for a sequence of the trading journal.
type Keys func(ctx context.Context, sequence int64) (*commitment.EpochKey, error)

// Config has the dependencies of a Follower.
type Config struct {
	Store Store
	Keys  Keys
	// Submit has the statement recorded. Its errors are those of submit.Submitter.
	Submit func(context.Context, *trading.RecordLiabilities) error
	Now    func() time.Time
	Logger *slog.Logger
}

// Follower states the liabilities at each instant of funding. Several may run: they compute the same, and the journal records it
// once.
type Follower struct {
	cfg  Config
	wake chan struct{} // of size 1
	// last is the position of the last statement that this node computed and that was recorded; 0 before the first.
	last atomic.Int64

	// seen is the position of the newest instant that was observed. Observe alone uses it, under the fold's lock.
	seen int64

	mu   sync.Mutex
	next *job // the newest instant; nil if there is none to do
}

// job is an instant without a statement.
type job struct {
	journal  scalar.ID
	position form.Position
	snapshot *Snapshot // nil if this node did not read the record: the balances may be in the store
}

// maxAge is the age from which on an instant is ignored. A fold that catches up passes every instant of the log.
const maxAge = 2 * scalar.Hour

// retryAfter is the wait after a store or the journal did not answer.
const retryAfter = time.Second

// NewFollower returns a follower. Its Observe must listen to the fold of the trading journal.
func NewFollower(c Config) *Follower { return &Follower{cfg: c, wake: make(chan struct{}, 1)} }

// Observe copies the obligations of an instant after its record. It takes about a tenth of a second for a million customers. It
// also finds an instant without a statement that came before the fold's first record.
func (f *Follower) Observe(e record.Entry, state decide.State) {
	s, ok := state.(*trading.State)
	if !ok || !s.StatesLiabilities() {
		return
	}
	instant, ok := s.FundingInstant()
	if !ok || instant.Sequence <= f.seen || instant.Sequence == s.LiabilitiesStated() || scalar.TimeOf(f.cfg.Now())-e.Record.Time > maxAge {
		return
	}
	f.seen = instant.Sequence
	j := &job{journal: e.Journal}
	if instant.Sequence == e.Position.Sequence {
		instant.Hash = e.Position.Hash
		j.snapshot = Of(s, instant)
	}
	j.position = form.Position{Sequence: instant.Sequence, Hash: hex.EncodeToString(instant.Hash[:])}
	f.mu.Lock()
	f.next = j
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the newest instant, or nil.
func (f *Follower) take() *job {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.next
	f.next = nil
	return j
}

// superseded reports whether a newer instant waits.
func (f *Follower) superseded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next != nil
}

// Run states liabilities until the context ends.
func (f *Follower) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.wake:
		}
		if j := f.take(); j != nil {
			f.do(ctx, j)
		}
	}
}

// do has the statement about an instant recorded. It gives up when a newer instant waits, since only the last one is accepted.
func (f *Follower) do(ctx context.Context, j *job) {
	log := f.cfg.Logger.With("position", j.position.Sequence)
	for warned := false; ; {
		err := f.state(ctx, j)
		var refused *submit.RefusedError
		switch {
		case err == nil:
			f.last.Store(j.position.Sequence)
			if err := f.cfg.Store.Sweep(ctx, j.journal, f.cfg.Now().Add(-Retention)); err != nil && ctx.Err() == nil {
				log.Warn("the balances of old trees are not deleted yet", "error", err)
			}
			return
		case ctx.Err() != nil || f.superseded():
			return
		case errors.Is(err, ErrGone), errors.Is(err, errUnreadable):
			log.Info("the liabilities of an instant before this node started were not stated", "error", err)
			return
		case errors.As(err, &refused):
			if refused.Refusal.Code == "NOT_THE_LAST_INSTANT" {
				log.Info("the liabilities of an instant were not stated in time", "error", err)
			} else {
				log.Error("the statement of liabilities is refused", "error", err)
			}
			return
		case !warned:
			warned = true
			log.Warn("the liabilities can't be stated yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryAfter):
		}
	}
}

// state computes a statement, keeps its balances, and has it recorded. The balances are durable before the statement is. It returns
// ErrGone if no node has kept the balances of an instant that this one did not read.
func (f *Follower) state(ctx context.Context, j *job) error {
	if j.snapshot == nil {
		b, err := f.cfg.Store.Load(ctx, j.journal, j.position)
		if err != nil {
			return err
		}
		return f.cfg.Submit(ctx, &trading.RecordLiabilities{Statement: b.Statement})
	}
	key, err := f.cfg.Keys(ctx, j.position.Sequence)
	if err != nil {
		return err
	}
	b, err := State(j.snapshot, key)
	if err != nil {
		return err
	}
	if err := f.cfg.Store.Keep(ctx, j.journal, b); err != nil {
		return err
	}
	return f.cfg.Submit(ctx, &trading.RecordLiabilities{Statement: b.Statement})
}

// Last returns the position of the last statement that this node computed and that was recorded, or 0.
func (f *Follower) Last() int64 { return f.last.Load() }
