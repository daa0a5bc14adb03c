package journals

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Replay returns the replay of all journals into a schema. It also verifies keys, headers and timestamps. progress may be
// nil.
func (t Table) Replay(client *journal.Client, target *pgxpool.Pool, progress func(progress string)) readmodels.Replay {
	replay := readmodels.Replay{Target: target, Progress: progress}
	for _, j := range t {
		replay.Journals = append(replay.Journals, readmodels.Audited{Rules: j.Rules, Projections: j.Projections, Compare: j.Compare,
			Log: projections.NewLog(client, j.Rules, 0),
			Read: func() readmodels.Records {
				r := journal.NewReader(client, j.Rules, 0, record.Before)
				r.Audit()
				return r
			}})
	}
	return replay
}

// Tips returns the positions of the last valid records of all journals, or record.Before for an empty journal. It starts
// to read at the newest positions of the live rows. The caller must have checked that the log holds them.
func (t Table) Tips(ctx context.Context, client *journal.Client, live *pgxpool.Pool) ([]record.Position, error) {
	tips := make([]record.Position, len(t))
	for i, j := range t {
		known, err := projections.Known(ctx, live, j.Name(), 0)
		if err != nil {
			return nil, err
		}
		from := record.Before
		if len(known) > 0 { // ordered by sequence
			from = known[len(known)-1]
		}
		if tips[i], err = tip(ctx, journal.NewReader(client, j.Rules, 0, from)); err != nil {
			return nil, err
		}
	}
	return tips, nil
}

// tip reads to the end of a journal and returns the position there.
func tip(ctx context.Context, reader *journal.Reader) (record.Position, error) {
	defer reader.Close()
	err := reader.ToTip(ctx, func([]record.Entry) error { return nil })
	return reader.Position(), err
}
