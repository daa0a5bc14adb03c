package tools

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
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
	client, url, live, closeBoth, err := openLogAndRows(ctx, s)
	if err != nil {
		return err
	}
	defer closeBoth()
	if _, err := live.Exec(ctx, "DROP SCHEMA IF EXISTS "+besideSchema+" CASCADE"); err != nil { // of a rebuild that was cut off
		return fmt.Errorf("rebuild: %w", err)
	}
	beside, err := projections.OpenBeside(ctx, url, besideSchema)
	if err != nil {
		return err
	}
	defer beside.Close()
	r := rebuild{journals: journals.All(), client: client, live: live, beside: beside, out: std.Out}
	if err := r.fill(ctx); err != nil {
		return err
	}
	if err := r.compare(ctx); err != nil {
		return err
	}
	if keep {
		_, err := live.Exec(ctx, "DROP SCHEMA "+besideSchema+" CASCADE")
		return err
	}
	beside.Close()
	// Once more, since the new rows forget what the old ones knew: the log may have lost its end while it was read.
	if err := holdLog(ctx, s, client, live, journals.All()...); err != nil {
		return err
	}
	if err := projections.Switch(ctx, live, besideSchema); err != nil {
		return err
	}
	fmt.Fprintln(std.Out, "switched: the new rows are live")
	return nil
}

// rebuild is one run of the command.
type rebuild struct {
	journals     journals.Table
	client       *journal.Client
	live, beside *pgxpool.Pool
	out          io.Writer
}

// fill projects all journals from their beginning up to the tips that they have now, and tells how far it is.
func (r *rebuild) fill(ctx context.Context) error {
	if _, err := projections.Migrate(ctx, r.beside); err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var running errgroup.Group
	runners := make([]*projections.Runner, len(r.journals))
	for i, j := range r.journals {
		runner := projections.Config{Pool: r.beside, Log: projections.NewLog(r.client, j.Rules, 0), Journal: j.Name(),
			Logger: slog.New(slog.DiscardHandler)}.Runner(j.Projections...)
		runners[i] = runner
		running.Go(func() error {
			if err := runner.Run(working); working.Err() == nil {
				return err
			}
			return nil
		})
	}
	for i, j := range r.journals {
		if err := r.follow(ctx, j.Rules, runners[i]); err != nil {
			stop()
			return errors.Join(err, running.Wait())
		}
	}
	stop()
	return running.Wait()
}

// follow waits until a runner has applied what its journal holds now. It ends where the log loses that meanwhile: the runner would
// wait for it for ever.
func (r *rebuild) follow(ctx context.Context, rules decide.Rules, runner *projections.Runner) error {
	name := rules.Journal()
	last, err := r.last(ctx, rules)
	if err != nil {
		return err
	}
	told := time.Now()
	for {
		at := runner.Position().Sequence
		late := time.Since(told) > time.Second
		if at >= last.Sequence || late {
			fmt.Fprintf(r.out, "%s: %d of %d records\n", name, at+1, last.Sequence+1)
		}
		if at >= last.Sequence {
			return nil
		}
		if err := runner.Err(); err != nil {
			return err
		}
		if late {
			if err := r.client.Holds(ctx, rules, 0, last); err != nil {
				return err
			}
			told = time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// last reads a journal to the end that it has now and returns the position of its last valid record.
func (r *rebuild) last(ctx context.Context, rules decide.Rules) (journal.Position, error) {
	reader := journal.NewReader(r.client, rules, 0, journal.Before)
	defer reader.Close()
	err := reader.ToTip(ctx, func([]journal.Entry) error { return nil })
	return reader.Position(), err
}

// compare holds the new rows against a fold of the log, which must agree, and tells which tables differ from the live
// ones, which may: that is what a rebuild is for.
func (r *rebuild) compare(ctx context.Context) error {
	at, differences, err := compareWithFolds(ctx, r.client, r.beside, r.journals)
	if err != nil {
		return err
	}
	for _, d := range differences {
		fmt.Fprintln(r.out, d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d differences between the new rows and the log at %s: not switched", len(differences), strings.Join(at, ", "))
	}
	fmt.Fprintf(r.out, "the new rows equal the log at %s\n", strings.Join(at, ", "))
	before, err := projections.Digests(ctx, r.live)
	if err != nil {
		return err
	}
	after, err := projections.Digests(ctx, r.beside)
	if err != nil {
		return err
	}
	if before["checkpoints"] != after["checkpoints"] {
		fmt.Fprintln(r.out, "the live rows have moved on meanwhile, so they were not compared table by table")
		return nil
	}
	same := true
	for table, d := range after {
		if before[table] != d {
			fmt.Fprintf(r.out, "%s: %d rows live, %d new, and they differ\n", table, before[table].Rows, d.Rows)
			same = false
		}
	}
	if same {
		fmt.Fprintln(r.out, "every table equals the live one")
	}
	return nil
}
