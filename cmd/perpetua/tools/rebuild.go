package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// besideSchema is the schema in which a rebuild creates its rows.
const besideSchema = "rebuilt"

// Rebuild makes every row of the read models from the log in a separate schema, checks the new rows against a fold of the
// log, reports which live tables differ, and makes the live rows equal to the new ones in one transaction. It replaces no
// table, so grants, views, comments and publications remain. The venue may run during a rebuild.
func Rebuild(ctx context.Context, args []string, std settings.IO) error {
	var compareOnly, asJSON bool
	s, err := settings.Parse("rebuild", args, std, func(fs *flag.FlagSet) {
		fs.BoolVar(&compareOnly, "compare-only", false, "report the differences and change nothing")
		settings.JSONFlag(fs, &asJSON)
	})
	if err != nil {
		return err
	}
	said := std
	if asJSON {
		std.Out = io.Discard // only messages for humans are written to it
	}
	client, url, live, closeBoth, err := openLogAndRows(ctx, s, std)
	if err != nil {
		return err
	}
	defer closeBoth()
	beside, remove, err := projections.OpenScratch(ctx, url, besideSchema)
	if err != nil {
		return err
	}
	defer remove()
	print := func(line string) { fmt.Fprintln(std.Out, line) }
	rebuild := readmodels.Rebuild{Replay: replayOf(client, beside, print), Live: live, Schema: besideSchema, CompareOnly: compareOnly, Print: print,
		// The new rows replace positions that only the live rows hold. So the log is checked against those positions
		// again: it may have lost its end while it was read.
		Confirm: func(ctx context.Context) error { return holdAll(ctx, s, client, live, io.Discard) }}
	goals := make([]record.Position, len(rebuild.Journals))
	for i, j := range rebuild.Journals {
		if goals[i], err = tip(ctx, client, j.Rules, live); err != nil {
			return err
		}
	}
	report, err := rebuild.Run(ctx, goals)
	if asJSON && len(report.Positions) > 0 {
		err = errors.Join(err, said.PrintJSON(report))
	}
	return err
}

// tip returns the position of a journal's last valid record. It starts to read at the checkpoint of the live rows,
// which openLogAndRows has found in the log.
func tip(ctx context.Context, client *journal.Client, rules decide.Rules, live *pgxpool.Pool) (record.Position, error) {
	known, err := projections.Known(ctx, live, rules.Journal(), 0)
	if err != nil {
		return record.Before, err
	}
	from := record.Before
	if len(known) > 0 { // ordered by sequence
		from = known[len(known)-1]
	}
	reader := journal.NewReader(client, rules, 0, from)
	defer reader.Close()
	err = reader.ToTip(ctx, func([]record.Entry) error { return nil })
	if err == nil && reader.Position().IsBefore() {
		err = fmt.Errorf("the journal %s is empty", rules.Journal())
	}
	return reader.Position(), err
}
