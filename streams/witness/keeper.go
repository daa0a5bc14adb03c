package witness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/follow"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// Every is after how many records a witness is written anew.
	Every = 4096
	// poll is how often a keeper asks how far its fold is: each write syncs the disk that the log may lie on.
	poll = 5 * time.Second
	// within is after how long a witness is written anew although few records were added.
	within = time.Minute
	// answersWithin is how long the brokers are waited for at a stop: they may be gone, and then nothing follows.
	answersWithin = 3 * time.Second
)

// KeeperConfig says whose witness is kept, of what.
type KeeperConfig struct {
	Store     *Store
	Client    *journal.Client
	Rules     decide.Rules
	Fold      *follow.Fold
	Partition int32
	Node      string
	// May reports whether the venue may write to the bucket; nil for always.
	May func() bool
}

// Keeper keeps a node's witness of one journal partition.
//
// It never takes back what an earlier process of the node has seen. A node that is started on a log without its end stops at
// once, and every stop writes a witness. Were that of the shorter log, the next start would go on there without a word.
type Keeper struct {
	cfg  KeeperConfig
	name string // of the journal
	log  *slog.Logger
	last record.Position // that this keeper has written; Before if none
	at   time.Time       // when it was
}

// NewKeeper returns a keeper of what a fold has seen.
func NewKeeper(cfg KeeperConfig) *Keeper {
	name := cfg.Rules.Journal()
	return &Keeper{cfg: cfg, name: name, log: cfg.Store.cfg.Logger.With("journal", name, "partition", cfg.Partition),
		last: record.Before, at: time.Now()}
}

// Run writes the witness whenever it is due, until the context ends. Where it can't be written it is tried again:
// nothing is held up for it.
func (k *Keeper) Run(ctx context.Context) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if k.due(k.cfg.Fold.Position(), now) {
				k.write(ctx)
			}
		}
	}
}

func (k *Keeper) due(at record.Position, now time.Time) bool {
	added := at.Sequence - k.last.Sequence
	return added >= Every || added > 0 && now.Sub(k.at) >= within
}

// CatchUp waits until the fold has seen the end of the log, for a few seconds at most. It is called at a stop, when nobody of
// this node appends any more and before the fold stops.
func (k *Keeper) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if err := k.cfg.Fold.WaitTip(ctx); err != nil {
		k.log.Info("the witness of the log may not name its end, which could not be read before the stop", "error", err)
	}
}

// Stop writes the witness of all that the node has seen. It is called when the fold has stopped, after Run.
func (k *Keeper) Stop(ctx context.Context) {
	if k.cfg.Fold.Position().Sequence > k.last.Sequence {
		k.write(ctx)
	}
}

func (k *Keeper) write(ctx context.Context) {
	if k.cfg.May != nil && !k.cfg.May() {
		return
	}
	// The fold's position is that of the last record applied, so it is valid. Where the fold has ended for a fault of the log
	// it is the last one before the fault.
	at, first := k.cfg.Fold.Position(), k.last.IsBefore()
	var err error
	if first {
		err = k.follows(ctx, at)
	}
	if err == nil {
		err = k.cfg.Store.write(ctx, k.name, k.cfg.Partition, k.cfg.Node, at)
	}
	if err != nil {
		if ctx.Err() == nil {
			k.log.Warn("no witness of the log is written", "sequence", at.Sequence, "error", err)
		}
		return
	}
	k.last, k.at = at, time.Now()
	if !first {
		return
	}
	// Those of nodes that are gone would add up. For a week every owner has held the log against them.
	if err := k.cfg.Store.retire(ctx, k.name, k.cfg.Partition, at); err != nil && ctx.Err() == nil {
		k.log.Warn("old witnesses of the log can't be cleared up", "error", err)
	}
}

// follows returns nil if a position comes after what an earlier process of this node has seen, in a log that holds that.
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
			return fmt.Errorf("this node has seen the log up to sequence %d before", w.Position.Sequence)
		}
		ctx, cancel := context.WithTimeout(ctx, answersWithin)
		defer cancel()
		return k.cfg.Client.Holds(ctx, k.cfg.Rules, k.cfg.Partition, w.Position)
	}
	return nil
}
