package history

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

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
		if m.cfg.May == nil || m.cfg.May() {
			if err := m.Make(ctx); err != nil && ctx.Err() == nil {
				m.log.Warn("no history snapshot could be made", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(m.cfg.Pause):
		}
	}
}

// Make makes all snapshots that are missing, in ascending order, and deletes those that are not kept any more. If it makes one at a
// multiple of Forever, the next call makes the missing ones before that.
func (m *Maker) Make(ctx context.Context) error {
	name := m.cfg.Rules.Journal()
	saved, err := m.cfg.Store.Saved(ctx, name, m.cfg.Partition)
	if err != nil {
		return err
	}
	tip := m.cfg.Tip.Position().Sequence
	missing := m.missing(saved, tip, time.Now())
	var skipped error
	for i := 0; i < len(missing); {
		made, err := m.from(ctx, missing[i:])
		i += made
		var trimmed *record.TrimmedError
		if errors.As(err, &trimmed) { // without an archive, only later snapshots can be made
			skipped = err
			for i++; i < len(missing) && missing[i] < trimmed.Base.Sequence; i++ {
			}
		} else if err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		if saved, err = m.cfg.Store.Saved(ctx, name, m.cfg.Partition); err != nil {
			return err
		}
	}
	if old := m.old(saved, tip, time.Now()); len(old) > 0 {
		if err := m.cfg.Store.Remove(ctx, name, m.cfg.Partition, old...); err != nil {
			return err
		}
	}
	return skipped
}

// missing returns the sequences at which a snapshot is missing, in ascending order: the multiples of Forever, those of smaller
// distances that are kept for ever, the multiples of Every among the last Forever records, and the young ones of an older codec.
func (m *Maker) missing(saved []snapshot.Saved, tip int64, now time.Time) (list []int64) {
	codec := m.cfg.Codec.Version()
	have := make(map[int64]bool)
	want := make(map[int64]bool)
	distances := m.distances(saved)
	for at := m.cfg.Forever; at <= tip; at += m.cfg.Forever {
		want[at] = true
		for between := at - m.cfg.Forever + distances.before(at); between < at; between += distances.before(at) {
			want[between] = true
		}
	}
	for at := tip - tip%m.cfg.Every; at > max(0, tip-m.cfg.Forever); at -= m.cfg.Every {
		want[at] = true
	}
	for _, s := range saved {
		if s.Codec >= codec {
			have[s.Position.Sequence] = true
		} else if m.wanted(s, distances, tip, now) {
			want[s.Position.Sequence] = true
		}
	}
	for at := range want {
		if !have[at] && at <= tip {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// distances are the records between two snapshots that are kept for ever, by the multiple of forever at the end of a stretch. The
// size of the snapshot there decides, so all nodes decide the same. Where there is none yet, the distance is forever.
type distances struct {
	forever int64
	of      map[int64]int64
}

// before returns the distance before a multiple of forever.
func (d distances) before(end int64) int64 {
	if of, ok := d.of[end]; ok {
		return of
	}
	return d.forever
}

// keeps reports whether a snapshot after a record is kept for ever.
func (d distances) keeps(at int64) bool {
	end := (at + d.forever - 1) / d.forever * d.forever
	return at%d.before(end) == 0
}

// distances returns the smallest distances at which the snapshots do not take more than Spend.
func (m *Maker) distances(saved []snapshot.Saved) distances {
	d := distances{m.cfg.Forever, make(map[int64]int64)}
	for _, s := range saved {
		end := s.Position.Sequence
		if end%m.cfg.Forever != 0 {
			continue
		}
		of := m.cfg.Every
		for of < m.cfg.Forever && (m.cfg.Forever%of != 0 || s.Bytes > m.cfg.Spend*of) {
			of += m.cfg.Every
		}
		d.of[end] = max(d.of[end], of) // of several codecs, the larger snapshot decides
	}
	return d
}

// wanted reports whether a snapshot is kept, apart from its codec.
func (m *Maker) wanted(s snapshot.Saved, d distances, tip int64, now time.Time) bool {
	at := s.Position.Sequence
	return d.keeps(at) || at%m.cfg.Every == 0 && (at > tip-m.cfg.Forever || now.Sub(s.Written) <= m.cfg.Keep)
}

// old returns the snapshots that are not kept any more: by age, or because there is one of a newer codec.
func (m *Maker) old(saved []snapshot.Saved, tip int64, now time.Time) (old []snapshot.Saved) {
	newest := make(map[int64]int)
	for _, s := range saved {
		newest[s.Position.Sequence] = max(newest[s.Position.Sequence], s.Codec)
	}
	distances := m.distances(saved)
	for _, s := range saved {
		if !m.wanted(s, distances, tip, now) || s.Codec < newest[s.Position.Sequence] && s.Codec < m.cfg.Codec.Version() {
			old = append(old, s)
		}
	}
	return old
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
	if ruled, ok := at.state.(interface{ ActiveRules() int }); ok {
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
