package tools

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// besideSchema is where a rebuild puts its rows until they are switched in.
const besideSchema = "rebuilt"

// Rebuild makes the read models anew from the log beside the live ones, holds them against a fold of the log,
// says which tables come out otherwise than the live ones, and puts them in their place. The venue may run meanwhile.
func Rebuild(ctx context.Context, args []string, std settings.IO) error {
	var keep bool
	s, err := settings.Parse("rebuild", args, std, func(fs *flag.FlagSet) {
		fs.BoolVar(&keep, "compare-only", false, "do not switch to the new rows: drop them")
	})
	if err != nil {
		return err
	}
	client, url, live, closeBoth, err := openLogAndRows(ctx, s, std)
	if err != nil {
		return err
	}
	defer closeBoth()
	beside, remove, err := projections.OpenBeside(ctx, url, besideSchema)
	if err != nil {
		return err
	}
	defer remove()
	if err := fill(ctx, client, live, beside, std.Out); err != nil {
		return err
	}
	if err := tellTables(ctx, live, beside, std.Out); err != nil {
		return err
	}
	if keep {
		return nil
	}
	beside.Close()
	// Once more, since the new rows forget what the old ones knew: the log may have lost its end while it was read.
	if err := holdAll(ctx, s, client, live, io.Discard); err != nil {
		return err
	}
	if err := projections.Switch(ctx, live, besideSchema); err != nil {
		return err
	}
	fmt.Fprintln(std.Out, "switched: the new rows are live")
	return nil
}

// fill makes the rows of all journals up to the tips that they have now, and holds them against a fold of the log, which must
// agree.
func fill(ctx context.Context, client *journal.Client, live, beside *pgxpool.Pool, out io.Writer) error {
	replay := replayOf(client, beside, func(line string) { fmt.Fprintln(out, line) })
	goals := make([]journal.Position, len(replay.Journals))
	for i, j := range replay.Journals {
		var err error
		if goals[i], err = tip(ctx, client, j.Rules, live); err != nil {
			return err
		}
	}
	at, differences, err := replay.Run(ctx, goals)
	if err != nil {
		return err
	}
	for _, d := range differences {
		fmt.Fprintln(out, d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d differences between the new rows and the log at %s: not switched", len(differences), positions(at))
	}
	fmt.Fprintf(out, "the new rows equal the log at %s\n", positions(at))
	return nil
}

// tip returns the position of a journal's last valid record. It reads on from where the live rows stand, which the log was
// seen to hold.
func tip(ctx context.Context, client *journal.Client, rules decide.Rules, live *pgxpool.Pool) (journal.Position, error) {
	known, err := projections.Known(ctx, live, rules.Journal(), 0)
	if err != nil {
		return journal.Before, err
	}
	from := journal.Before
	if len(known) > 0 { // in the order of their sequences
		from = known[len(known)-1]
	}
	reader := journal.NewReader(client, rules, 0, from)
	defer reader.Close()
	err = reader.ToTip(ctx, func([]journal.Entry) error { return nil })
	if err == nil && reader.Position().IsBefore() {
		err = fmt.Errorf("the journal %s is empty", rules.Journal())
	}
	return reader.Position(), err
}

// tellTables tells which of the new tables differ from the live ones. They may: that is what a rebuild is for.
func tellTables(ctx context.Context, live, beside *pgxpool.Pool, out io.Writer) error {
	before, err := projections.Digests(ctx, live)
	if err != nil {
		return err
	}
	after, err := projections.Digests(ctx, beside)
	if err != nil {
		return err
	}
	if before["checkpoints"] != after["checkpoints"] {
		fmt.Fprintln(out, "the live rows have moved on meanwhile, so they were not compared table by table")
		return nil
	}
	same := true
	for table, d := range after {
		if before[table] != d {
			fmt.Fprintf(out, "%s: %d rows live, %d new, and they differ\n", table, before[table].Rows, d.Rows)
			same = false
		}
	}
	if same {
		fmt.Fprintln(out, "every table equals the live one")
	}
	return nil
}
