package launch

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// renewal rebuilds the read models of a build before version 0.1.0 from the log. Nodes of both builds may run at the same
// time. A renewal that is killed has changed no live row, and the next start repeats it.
type renewal struct {
	client *journal.Client
	table  journals.Table
	url    string // of the database
	live   *pgxpool.Pool
	log    *slog.Logger
}

// run rebuilds the rows if they are outdated. If another process is at it, run waits for that process.
func (r renewal) run(ctx context.Context) error {
	for waits := false; ; waits = true {
		outdated, err := projections.Outdated(ctx, r.live)
		if err != nil || !outdated {
			return err
		}
		if err = r.rebuild(ctx); !errors.Is(err, projections.ErrInUse) {
			return err
		}
		if !waits {
			r.log.Info("rebuilding the read models: waiting for another process that is at it")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// rebuild makes the rows from the log and makes them live.
func (r renewal) rebuild(ctx context.Context) error {
	scratch, remove, err := projections.OpenScratch(ctx, r.url, readmodels.RebuildSchema)
	if err != nil {
		return err
	}
	defer remove()
	r.log.Info("rebuilding the read models: a build before version 0.1.0 has written them")
	if err := r.confirm(ctx); err != nil {
		return err
	}
	goals, err := r.table.Tips(ctx, r.client, r.live)
	if err != nil {
		return err
	}
	say := func(line string) { r.log.Info("rebuilding the read models: " + line) }
	rebuild := readmodels.Rebuild{Replay: r.table.Replay(r.client, scratch, say), Live: r.live, Schema: readmodels.RebuildSchema,
		Confirm: r.confirm, Print: say}
	_, err = rebuild.Run(ctx, goals)
	return err
}

// confirm checks that the log holds the positions of the live rows, which the new rows replace.
func (r renewal) confirm(ctx context.Context) error {
	for _, j := range r.table {
		if err := r.client.HoldsKnown(ctx, j.Rules, 0, projections.KnownTo{DB: r.live}); err != nil {
			return err
		}
	}
	return nil
}
