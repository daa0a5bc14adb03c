package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

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
	progress := std
	if asJSON {
		std.Out = io.Discard // only messages for humans are written to it
	}
	client, url, live, closeBoth, err := openLogAndRows(ctx, s, std)
	if err != nil {
		return err
	}
	defer closeBoth()
	scratch, remove, err := projections.OpenScratch(ctx, url, readmodels.RebuildSchema)
	if err != nil {
		return err
	}
	defer remove()
	print := func(line string) { fmt.Fprintln(std.Out, line) }
	table := journals.All()
	rebuild := readmodels.Rebuild{Replay: table.Replay(client, scratch, std.Progress()), Live: live, Schema: readmodels.RebuildSchema, CompareOnly: compareOnly, Print: print,
		// The new rows replace positions that only the live rows hold. So the log is checked against those positions
		// again: it may have lost its end while it was read.
		Confirm: func(ctx context.Context) error { return holdAll(ctx, s, client, live, io.Discard) }}
	goals, err := table.Tips(ctx, client, live)
	if err != nil {
		return err
	}
	for i, j := range table {
		if goals[i].IsBefore() {
			return fmt.Errorf("the journal %s is empty", j.Name())
		}
	}
	report, err := rebuild.Run(ctx, goals)
	if asJSON && len(report.Positions) > 0 {
		err = errors.Join(err, progress.PrintJSON(report))
	}
	return err
}
