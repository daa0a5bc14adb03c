package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// auditCommand folds the trading journal, checking its chain, keys, headers and timestamps, and holds every balance,
// position, order and setting in Postgres against the fold. It prints what differs and fails if anything does.
func auditCommand(ctx context.Context, args []string, std stdio) error {
	s, err := parseSettings("audit", args, std, nil)
	if err != nil {
		return err
	}
	client, stop, err := openLog(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	pool, close, err := openReadModels(ctx, s)
	if err != nil {
		return err
	}
	defer close()
	sequence, differences, err := audit(ctx, client, pool)
	if err != nil {
		return err
	}
	for _, d := range differences {
		fmt.Fprintln(std.out, d)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d differences between the read models and the log at sequence %d", len(differences), sequence)
	}
	fmt.Fprintf(std.out, "the read models equal the log at trading/0@%d\n", sequence)
	return nil
}

// openReadModels returns a pool on the database that the settings mean.
func openReadModels(ctx context.Context, s *settings) (*pgxpool.Pool, func(), error) {
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
func findDatabase(ctx context.Context, s *settings) (url string, stop func(), err error) {
	if s.DatabaseURL != "" {
		return s.DatabaseURL, func() {}, nil
	}
	folder := dataFolder{dir: s.Data}
	running, ok, err := readRunFile(folder.path("run.json"))
	if err != nil {
		return "", nil, err
	}
	if ok {
		return running.DatabaseURL, func() {}, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: folder.path("postgres"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() { server.Close() }, nil
}

// auditTries bounds how often an audit goes on because the read models moved while it compared.
const auditTries = 20

// audit folds the trading journal up to where the read models stand, and compares. While a venue trades they move on;
// then it folds on and compares again.
func audit(ctx context.Context, client *journal.Client, pool *pgxpool.Pool) (sequence int64, differences []string, err error) {
	fold := journalFold{reader: journal.NewReader(client, trading.Rules(), 0, journal.Before), state: trading.Rules().NewState().(*trading.State)}
	fold.reader.Audit()
	defer fold.reader.Close()
	for range auditTries {
		at, err := projections.ReadCheckpoint(ctx, pool, "trading", 0)
		if err != nil {
			return 0, nil, err
		}
		if at.Position.IsBefore() {
			return 0, nil, errors.New("the read models hold nothing of the trading journal")
		}
		found, err := fold.to(ctx, at.Position.Sequence)
		if err != nil {
			return 0, nil, err
		}
		if found != at.Position {
			return 0, nil, &journal.DivergedError{Journal: "trading", Have: at.Position, Found: found,
				Reason: "the read models stand at a record that the log does not hold"}
		}
		differences, err := readmodels.Compare(ctx, pool, fold.state, at.Position.Sequence)
		if errors.Is(err, readmodels.ErrMoved) {
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		broken, err := readmodels.Broken(ctx, pool)
		return at.Position.Sequence, append(differences, broken...), err
	}
	return 0, nil, fmt.Errorf("%w: the venue trades faster than it is compared; audit it while it is quiet", readmodels.ErrMoved)
}

// journalFold folds a journal record by record, up to wherever it is asked to.
type journalFold struct {
	reader  *journal.Reader
	state   *trading.State
	waiting []journal.Entry // read, not yet applied
	at      journal.Position
}

// to applies records up to the sequence and returns the position of the last.
func (f *journalFold) to(ctx context.Context, sequence int64) (journal.Position, error) {
	for f.at.Sequence < sequence || f.at == (journal.Position{}) {
		if len(f.waiting) == 0 {
			entries, err := f.reader.Poll(ctx)
			if err != nil {
				return f.at, err
			}
			f.waiting = entries
		}
		e := f.waiting[0]
		f.waiting = f.waiting[1:]
		f.state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		f.at = e.Position
	}
	return f.at, nil
}
