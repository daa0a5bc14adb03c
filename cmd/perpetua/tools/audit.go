package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/journals"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/local"
	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// auditSchema is where an audit replays the log.
const auditSchema = "audited"

// Audit reads every journal from its genesis, checking its chain, keys, headers and timestamps, and holds every column
// of every table in Postgres against what the log makes of it. It prints what differs and fails if anything does. The
// venue may run meanwhile.
func Audit(ctx context.Context, args []string, std settings.IO) error {
	s, err := settings.Parse("audit", args, std, nil)
	if err != nil {
		return err
	}
	client, url, live, closeBoth, err := openLogAndRows(ctx, s)
	if err != nil {
		return err
	}
	defer closeBoth()
	beside, remove, err := projections.OpenScratch(ctx, url, auditSchema)
	if err != nil {
		return err
	}
	defer remove()
	a := readmodels.Audit{Live: live, Beside: beside, Told: progress(std)}
	for _, j := range journals.All() {
		a.Journals = append(a.Journals, audited(client, j))
	}
	positions, differences, err := a.Run(ctx)
	if err != nil {
		return err
	}
	at := make([]string, len(positions))
	for i, p := range positions {
		at[i] = p.String()
	}
	for _, d := range differences {
		fmt.Fprintln(std.Out, d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d differences between the read models and the log at %s", len(differences), strings.Join(at, ", "))
	}
	fmt.Fprintf(std.Out, "the read models equal the log at %s\n", strings.Join(at, ", "))
	return nil
}

// audited is a journal as an audit reads it.
func audited(client *journal.Client, j journals.Journal) readmodels.Audited {
	return readmodels.Audited{Rules: j.Rules, Projections: j.Projections, Compare: j.Compare, Log: projections.NewLog(client, j.Rules, 0),
		Read: func() readmodels.Records {
			r := journal.NewReader(client, j.Rules, 0, journal.Before)
			r.Audit()
			return r
		}}
}

// progress returns what tells somebody at a terminal how far a long command is; nil where nobody sits there.
func progress(std settings.IO) func(string) {
	terminal, ok := std.Err.(*os.File)
	if !ok {
		return nil
	}
	if about, err := terminal.Stat(); err != nil || about.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return func(line string) { fmt.Fprintln(terminal, line) }
}

// OpenReadModels returns a pool on the database that the settings mean.
func OpenReadModels(ctx context.Context, s *settings.Settings) (*pgxpool.Pool, func(), error) {
	url, stop, err := findDatabase(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	pool, err := projections.Open(ctx, url)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return pool, func() { pool.Close(); stop() }, nil
}

// findDatabase returns the URL of the database that the settings mean: the one they name, that of the node which runs
// on the data folder, or else the folder's own, served until stop is called.
func findDatabase(ctx context.Context, s *settings.Settings) (url string, stop func(), err error) {
	if s.DatabaseURL != "" {
		return s.DatabaseURL, func() {}, nil
	}
	folder := local.Folder{Dir: s.Data}
	running, ok, err := local.ReadRunFile(folder.Path("run.json"))
	if err != nil {
		return "", nil, err
	}
	if ok {
		return running.DatabaseURL, func() {}, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: folder.Path("postgres"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() { server.Close() }, nil
}

// foldTries bounds how often rows are compared anew because they moved meanwhile.
const foldTries = 20

// compareWithFolds holds the rows of every journal that can be compared against a fold of the log, and the rows against one
// another. It returns which positions the rows stand at, and what differs.
func compareWithFolds(ctx context.Context, client *journal.Client, pool *pgxpool.Pool, table journals.Table) (at []string, differences []string, err error) {
	for _, j := range table {
		if j.Compare == nil {
			continue
		}
		sequence, found, err := compareWithFold(ctx, client, pool, j)
		if err != nil {
			return nil, nil, err
		}
		at = append(at, journal.LogPosition{Journal: j.Name(), Sequence: sequence}.String())
		differences = append(differences, found...)
	}
	broken, err := readmodels.Broken(ctx, pool)
	return at, append(differences, broken...), err
}

// compareWithFold folds a journal up to where its rows stand, and compares. While a venue trades they move on; then it
// folds on and compares again.
func compareWithFold(ctx context.Context, client *journal.Client, pool *pgxpool.Pool, j journals.Journal) (sequence int64, differences []string, err error) {
	fold := NewFold(client, j.Rules)
	defer fold.Close()
	for range foldTries {
		at, err := projections.ReadCheckpoint(ctx, pool, j.Name(), 0)
		if err != nil {
			return 0, nil, err
		}
		if at.Position.IsBefore() {
			return 0, nil, fmt.Errorf("the read models hold nothing of the journal %s", j.Name())
		}
		found, err := fold.To(ctx, at.Position.Sequence)
		if errors.Is(err, journal.ErrNoRecord) {
			return 0, nil, &journal.DivergedError{Journal: j.Name(), Have: at.Position, Found: found, Reason: "the log ends before it"}
		}
		if err != nil {
			return 0, nil, err
		}
		if !found.Equal(at.Position) {
			return 0, nil, &journal.DivergedError{Journal: j.Name(), Have: at.Position, Found: found,
				Reason: "the read models stand at a record that the log does not hold"}
		}
		differences, err := j.Compare(ctx, pool, fold.State, at.Position.Sequence)
		if !errors.Is(err, readmodels.ErrMoved) {
			return at.Position.Sequence, differences, err
		}
	}
	return 0, nil, fmt.Errorf("%w: the venue trades faster than it is compared; audit it while it is quiet", readmodels.ErrMoved)
}

// Fold folds a journal from its genesis, record by record, up to wherever it is asked to. It checks the chain, the
// keys, the headers and the timestamps as it goes.
type Fold struct {
	State   decide.State
	reader  *journal.Reader
	waiting []journal.Entry // read, not yet applied
	at      journal.Position
}

// NewFold returns a fold that stands before genesis. The caller closes it.
func NewFold(client *journal.Client, rules decide.Rules) *Fold {
	f := &Fold{State: rules.NewState(), reader: journal.NewReader(client, rules, 0, journal.Before), at: journal.Before}
	f.reader.Audit()
	return f
}

// Close ends what the fold reads with.
func (f *Fold) Close() { f.reader.Close() }

// To applies records up to the sequence and returns the position of the last. Its error is journal.ErrNoRecord where the log
// ends before that.
func (f *Fold) To(ctx context.Context, sequence int64) (journal.Position, error) {
	for f.at.Sequence < sequence {
		if len(f.waiting) == 0 {
			entries, err := f.reader.PollFor(ctx, sequence)
			if err != nil {
				return f.at, err
			}
			f.waiting = entries
		}
		e := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.State.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		f.at = e.Position
	}
	return f.at, nil
}
