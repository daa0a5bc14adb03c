package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// Every is the number of new records after which a witness is written again.
	Every = 4096
	// poll is the interval at which a keeper checks the fold's position. It also limits the writes, each of which syncs
	// a disk that may hold the log.
	poll = 5 * time.Second
	// within is the age after which a witness is written again if there are any new records.
	within = time.Minute
	// answersWithin bounds the wait for the brokers at a stop: they may already have stopped.
	answersWithin = 3 * time.Second
)

var errBehind = errors.New("the records read so far end before the last witness")

// KeeperConfig configures a Keeper.
type KeeperConfig struct {
	Store     *Store
	Client    *journal.Client
	Rules     decide.Rules
	Fold      record.Follower
	Partition int32
	Node      string
	// May reports whether the venue may write to the bucket. A nil May permits it always.
	May func() bool
}

// Keeper keeps a node's witness of one journal partition up to date.
//
// It never replaces a witness of an earlier process of the node with a lower position. A node that starts on a log
// without its end stops immediately, and every stop writes a witness. If that witness recorded the shorter log, the
// next start would accept it silently.
type Keeper struct {
	cfg  KeeperConfig
	name string // journal name
	log  *slog.Logger
	last record.Position // last position written by this keeper; Before if none
	at   time.Time       // time of that write
}

// NewKeeper returns a keeper that records the position of a fold.
func NewKeeper(cfg KeeperConfig) *Keeper {
	name := cfg.Rules.Journal()
	return &Keeper{cfg: cfg, name: name, log: cfg.Store.cfg.Logger.With("journal", name, "partition", cfg.Partition),
		last: record.Before, at: time.Now()}
}

// Run writes the witness whenever it is due, until the context ends. It retries a failed write at the next tick; no
// other work waits for it.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			k.tick(ctx, now)
		}
	}
}

func (k *Keeper) tick(ctx context.Context, now time.Time) {
	if k.due(k.cfg.Fold.Position(), now) {
		k.write(ctx, slog.LevelDebug)
	}
}

func (k *Keeper) due(at record.Position, now time.Time) bool {
	added := at.Sequence - k.last.Sequence
	return added >= Every || added > 0 && now.Sub(k.at) >= within
}

// CatchUp waits until the fold has reached the end of the log, for answersWithin at most. It must be called at a stop,
// after this node has stopped appending and before the fold stops.
func (k *Keeper) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if err := k.cfg.Fold.WaitTip(ctx); err != nil {
		k.log.Info("the witness of the log may not name its end, which could not be read before the stop", "error", err)
	}
}

// Stop writes a witness of the fold's final position. It must be called after Run has returned and the fold has
// stopped.
func (k *Keeper) Stop(ctx context.Context) {
	if k.cfg.Fold.Position().Sequence > k.last.Sequence {
		k.write(ctx, slog.LevelWarn)
	}
}

// write writes a witness. It logs at the level behind that the fold is not yet where an earlier process of the node was: a fold that
// begins with the genesis passes that position later, and only a stop before it is worth a warning.
func (k *Keeper) write(ctx context.Context, behind slog.Level) {
	if k.cfg.May != nil && !k.cfg.May() {
		return
	}
	// The fold's position is that of the last record applied, so that record is valid. If the fold ended because the
	// log is invalid, it is the last record before the error.
	at, first := k.cfg.Fold.Position(), k.last.IsBefore()
	var err error
	if first {
		err = k.follows(ctx, at)
	}
	if err == nil {
		err = k.cfg.Store.write(ctx, k.name, k.cfg.Partition, k.cfg.Node, at)
	}
	if err != nil {
		level := slog.LevelWarn
		if errors.Is(err, errBehind) {
			level = behind
		}
		if ctx.Err() == nil {
			k.log.Log(ctx, level, "no witness of the log is written", "sequence", at.Sequence, "error", err)
		}
		return
	}
	k.last, k.at = at, time.Now()
	if !first {
		return
	}
	// Witnesses of removed nodes would pile up. Every owner has checked them against the log for a week.
	if err := k.cfg.Store.retire(ctx, k.name, k.cfg.Partition, at); err != nil && ctx.Err() == nil {
		k.log.Warn("old witnesses of the log can't be cleared up", "error", err)
	}
}

// follows returns nil if a position is not before the one that an earlier process of this node has recorded, and the
// log holds the recorded one.
func (k *Keeper) follows(ctx context.Context, at record.Position) error {
	all, err := k.cfg.Store.all(ctx, k.name, k.cfg.Partition)
	if err == nil && k.cfg.Client.Gone() {
		err = errors.New("the brokers have failed")
	}
	if err != nil {
		return err
	}
	for _, w := range all {
		if w.Node != k.cfg.Node {
			continue
		}
		if w.Position.Sequence > at.Sequence {
			return fmt.Errorf("%w: this node has seen the log up to sequence %d before", errBehind, w.Position.Sequence)
		}
		ctx, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		return k.cfg.Client.Holds(ctx, k.cfg.Rules, k.cfg.Partition, w.Position)
	}
	return nil
}
