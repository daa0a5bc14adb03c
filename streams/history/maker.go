package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

// The distances at which a Maker makes snapshots, and which of them it keeps.
const (
	Every   = 100_000   // records between snapshots
	Forever = 1_000_000 // records between those that are kept for ever, at most; a multiple of Every
	Keep    = 7 * 24 * time.Hour
	// Spend is the bytes for each record that the snapshots that are kept for ever may take, where a distance below Forever does not
	// take more. It is about twice what an archive takes.
	Spend = 180
)

// MakerConfig configures a Maker.
type MakerConfig struct {
	Config
	Journal
	Store *snapshot.Store // of the snapshots that the maker makes, which nothing else writes to; also one of Config.Stores
	Node  string          // name of this node
	// Every and Forever are the distances in records, Keep is the age, and Spend is in bytes for a record. Zero stands for the
	// constants.
	Every, Forever, Spend int64
	Keep                  time.Duration
	Pause                 time.Duration // between two looks; zero for ten seconds
	// May reports whether the venue may write to the bucket. A nil May permits it always.
	May func() bool
}

// Maker makes snapshots of a journal at fixed distances: after each record with a sequence that is a multiple of Every. It keeps
// those at multiples of Forever. Between two of these it also keeps those at multiples of a smaller distance, if they are small: see
// Spend. It deletes the others when they are older than Keep and at least Forever records behind the tip.
//
// Snapshots of an older codec are made again with this build's codec, and then deleted. Snapshots of a newer codec stay:
// another node has a newer build. The maker's state is separate from those of States. Several nodes may make the same
// snapshots; the names are the same then.
type Maker struct {
	cfg MakerConfig
	log *slog.Logger
}

// NewMaker returns a maker.
func NewMaker(cfg MakerConfig) *Maker {
	if cfg.Every == 0 {
		cfg.Every = Every
	}
	if cfg.Forever == 0 {
		cfg.Forever = Forever
	}
	if cfg.Keep == 0 {
		cfg.Keep = Keep
	}
	if cfg.Spend == 0 {
		cfg.Spend = Spend
	}
	if cfg.Pause == 0 {
		cfg.Pause = 10 * time.Second
	}
	if cfg.Source == nil {
		cfg.Source = Topic{cfg.Client}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Maker{cfg, cfg.Logger.With("journal", cfg.Rules.Journal(), "partition", cfg.Partition)}
}

// Run makes what is missing until the context ends.
func (m *Maker) Run(ctx context.Context) error {
	for {
		if err := m.Make(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("no history snapshot could be made", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(m.cfg.Pause):
		}
	}
}

// Make makes all snapshots that are missing, and deletes those that are not kept any more. It looks at the tip again after
// each step, so that new snapshots do not wait for all the old ones.
func (m *Maker) Make(ctx context.Context) error {
	t := tries{done: make(map[int64]bool)}
	for m.cfg.May == nil || m.cfg.May() {
		more, err := m.step(ctx, &t)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return t.lost
}

// tries are what one call of Make has tried. It tries nothing twice.
type tries struct {
	done map[int64]bool // by sequence
	base int64          // the records before it are lost, and no archive has them
	lost error          // the last error about records that are lost
}

// left returns the sequences that were not tried.
func (t *tries) left(list []int64) (left []int64) {
	for _, at := range list {
		if at >= t.base && !t.done[at] {
			left = append(left, at)
		}
	}
	return left
}

// step makes the next missing snapshots, and deletes old ones. It returns false if there was nothing to make.
func (m *Maker) step(ctx context.Context, t *tries) (more bool, err error) {
	name := m.cfg.Rules.Journal()
	saved, err := m.cfg.Store.Saved(ctx, name, m.cfg.Partition)
	if err != nil {
		return false, err
	}
	tip := m.cfg.Tip.Position().Sequence
	missing := m.missing(saved, tip, time.Now(), t)
	if len(missing) > 0 {
		if err := m.makeAll(ctx, missing, t); err != nil {
			return false, err
		}
		if saved, err = m.cfg.Store.Saved(ctx, name, m.cfg.Partition); err != nil {
			return false, err
		}
	}
	if old := m.old(saved, tip, time.Now()); len(old) > 0 {
		if err := m.cfg.Store.Remove(ctx, name, m.cfg.Partition, old...); err != nil {
			return false, err
		}
	}
	return len(missing) > 0, nil
}

// makeAll makes snapshots, in ascending order. It leaves out those that need lost records.
func (m *Maker) makeAll(ctx context.Context, missing []int64, t *tries) error {
	for len(missing) > 0 {
		made, err := m.from(ctx, missing)
		for _, at := range missing[:made] {
			t.done[at] = true
		}
		var trimmed *record.TrimmedError
		if errors.As(err, &trimmed) {
			m.lose(trimmed, missing[made:], t)
		} else if err != nil {
			return err
		}
		missing = t.left(missing)
	}
	return nil
}

// lose gives up the first of the missing snapshots and those that need the same records. Without an archive, these are all before
// the base. With a damaged one, these are the others of the stretch: the next stretch may begin with a snapshot.
func (m *Maker) lose(trimmed *record.TrimmedError, missing []int64, t *tries) {
	t.lost = trimmed
	if trimmed.Archive == nil {
		t.base = trimmed.Base.Sequence
	}
	end := endOf(missing[0], m.cfg.Forever)
	for i, at := range missing {
		if i == 0 || at <= end && at < trimmed.Base.Sequence {
			t.done[at] = true
		}
	}
}

// from makes the first of the missing snapshots, and those after it that are nearer to it than any other snapshot is.
func (m *Maker) from(ctx context.Context, missing []int64) (made int, err error) {
	seed, err := nearest(ctx, m.cfg.Stores, m.cfg.Journal, missing[0], record.Before.Sequence)
	if err != nil {
		return 0, err
	}
	at := momentOf(m.cfg.Journal, seed)
	for _, sequence := range missing {
		if made > 0 {
			nearer, err := nearest(ctx, m.cfg.Stores, m.cfg.Journal, sequence, at.at.Sequence)
			if err != nil {
				return made, err
			}
			if nearer != nil {
				at = momentOf(m.cfg.Journal, nearer)
			}
		}
		if err := apply(ctx, m.cfg.Config, m.cfg.Journal, at, sequence, sequence); err != nil {
			return made, fmt.Errorf("history: the state at %d: %w", sequence, err)
		}
		if err := m.save(ctx, at); err != nil {
			return made, err
		}
		made++
	}
	return made, nil
}

func (m *Maker) save(ctx context.Context, at *moment) error {
	start := time.Now()
	h := snapshot.Header{Journal: m.cfg.Rules.Journal(), Partition: m.cfg.Partition, JournalID: at.id, Position: at.at, Time: at.time,
		Term: at.term, URL: at.url, Codec: m.cfg.Codec.Version(), Made: start.UTC(), Node: m.cfg.Node}
	if ruled, ok := at.state.(decide.Facts); ok {
		h.Rules = ruled.ActiveRules()
	}
	bytes, err := m.cfg.Store.Put(ctx, h, nil, m.cfg.Codec.Append(nil, at.state))
	if err != nil {
		return err
	}
	m.log.Info("made a history snapshot", "sequence", at.at.Sequence, "bytes", bytes, "took", time.Since(start))
	return nil
}

// nearest returns the newest snapshot of several stores at or below a sequence and above another one, or nil.
func nearest(ctx context.Context, stores []*snapshot.Store, j Journal, sequence, least int64) (seed *record.Seed, err error) {
	var best *snapshot.Store
	for _, s := range stores {
		saved, err := s.Saved(ctx, j.Rules.Journal(), j.Partition)
		if err != nil {
			return nil, err
		}
		for _, x := range saved {
			if at := x.Position.Sequence; x.Codec == j.Codec.Version() && at <= sequence && at > least {
				best, least = s, at
			}
		}
	}
	if best == nil {
		return nil, nil
	}
	// A damaged snapshot is passed over for an older one of the same store.
	return best.LoadAt(ctx, j.Rules.Journal(), j.Partition, j.Codec, sequence)
}
