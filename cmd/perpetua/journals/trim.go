package journals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
	"github.com/perpetua-exchange/perpetua/streams/trim"
)

// Trimming are the parts of a venue that a trim of a log needs. Nodes and tools trim by it.
type Trimming struct {
	Client    *journal.Client
	Trimmer   base.Trimmer
	Archive   func(journal string) archive.Config
	Rows      *pgxpool.Pool
	Snapshots *snapshot.Store
	Known     []journal.Known
	Heads     []archive.Heads // stores with a copy of the heads of the archives
	Keepers   []base.Keeper
	TLogHost  string               // as in the settings
	Witnesses *transparency.Policy // nil if the venue has none
}

// ranges is the number of ranges that a run trims at most in brief mode.
const ranges = 16

// Run trims the log of a journal. With brief it asks no further limit once nothing can be trimmed, and trims a few ranges of many.
// progress may be nil.
func (t Trimming) Run(ctx context.Context, j Journal, p trim.Policy, brief bool, progress func(records int64)) (trim.Report, error) {
	var cosigned trim.Cosigned
	if t.Witnesses != nil {
		cosigned = t.cosigned
	}
	most := 0
	if brief {
		most = ranges
	}
	return trim.Run(ctx, trim.Config{Client: t.Client, Rules: j.Rules, Archive: t.Archive(j.Name()), Trimmer: t.Trimmer, Keepers: t.Keepers,
		Policy: p, Known: t.Known, Heads: t.Heads, Now: time.Now, OtherClock: t.postgresTime, Progress: progress, Brief: brief, Most: most,
		Limits: []trim.Source{t.rows(j), t.signed(j), trim.Quorum(cosigned, j.Name(), p.Quorum), t.snapshot(j)}})
}

func (t Trimming) postgresTime(ctx context.Context) (time.Time, error) {
	return projections.PostgresTime(ctx, t.Rows)
}

// rows is the limit of the rows in Postgres.
func (t Trimming) rows(j Journal) trim.Source {
	return func(ctx context.Context) (*trim.Limit, error) {
		c, err := projections.ReadCheckpoint(ctx, t.Rows, j.Name(), 0)
		if err != nil {
			return nil, err
		}
		return trim.After(c.Position, fmt.Sprintf("the rows in Postgres have been written up to record %d", c.Position.Sequence)), nil
	}
}

// signed is the limit of the transparency log: the records that a signed checkpoint covers. Trees under former host names count
// only until the first one under the present name. A venue without trees does not use the role: signed sets no limit.
func (t Trimming) signed(j Journal) trim.Source {
	trees := projections.SignedTrees{Pool: t.Rows}
	return func(ctx context.Context) (*trim.Limit, error) {
		limit := func(records int64) *trim.Limit {
			return &trim.Limit{First: records, Reason: fmt.Sprintf("a signed checkpoint of the transparency log covers %d records", records)}
		}
		id, founded, err := t.Client.JournalID(ctx, j.Name())
		if err != nil || !founded {
			return nil, err
		}
		head, err := trees.Head(ctx, transparency.Origin{Host: t.TLogHost, Journal: j.Name(), ID: id})
		if err != nil {
			return nil, err
		}
		if head.Size > 0 {
			return limit(head.Size), nil
		}
		known, err := trees.Positions(ctx, j.Name(), 0)
		if err != nil || len(known) == 0 {
			return nil, err
		}
		last := record.Before
		for _, p := range known {
			if p.Sequence > last.Sequence {
				last = p
			}
		}
		return limit(last.Sequence + 1), nil
	}
}

// snapshot is the limit of the newest snapshot that this build can load. The log MUST hold its position.
func (t Trimming) snapshot(j Journal) trim.Source {
	return func(ctx context.Context) (*trim.Limit, error) {
		if j.Codec == nil {
			return &trim.Limit{Reason: "the journal has no snapshots"}, nil
		}
		if t.Snapshots == nil {
			return nil, errors.New("no bucket with snapshots is at hand; --blob-url names it")
		}
		seed, err := t.Snapshots.Load(ctx, j.Name(), 0, j.Codec)
		if err != nil {
			return nil, err
		}
		if seed == nil {
			return &trim.Limit{Reason: "no snapshot can be loaded"}, nil
		}
		if err := t.Client.Holds(ctx, j.Rules, 0, seed.Position); err != nil {
			return nil, err
		}
		return trim.After(seed.Position, fmt.Sprintf("the newest snapshot that loads is that of record %d", seed.Position.Sequence)), nil
	}
}
