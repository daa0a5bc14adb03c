package readmodels

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// Audit holds rows against the log in two ways, neither of which knows any table by name.
//
// The log is replayed through the projections into an empty schema beside the rows, and every column of every table is
// compared. That finds whatever became of the rows since they were written, and projections that have changed, but not
// a projection that is wrong: it makes the same mistake twice. So the new rows are held against a fold of the log, which
// knows nothing of projections, and the live rows against what must hold among them.
//
// The venue may go on meanwhile: the live rows are read in one snapshot, and the others are brought to its position.
type Audit struct {
	Live *pgxpool.Pool
	// Beside is where the log is replayed: a migrated schema without rows, which the caller drops.
	Beside   *pgxpool.Pool
	Journals []Audited
	// Told is told every second how far the audit is, unless it is nil.
	Told func(progress string)
}

// Audited is a journal as an audit reads it.
type Audited struct {
	Rules       decide.Rules
	Projections []projections.Projection
	// Log is replayed, and Read opens another reading from the first record on, which checks what it reads.
	Log  projections.Log
	Read func() Records
	// Compare holds rows against a fold as of a sequence and tells the differences; nil where there is nothing to compare.
	Compare func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error)
}

// Records is a reading of a journal; *journal.Reader is one. next is the offset after the last record looked at.
type Records interface {
	Next(ctx context.Context) (entries []journal.Entry, next int64, err error)
	Close()
}

// mostDifferences is how many are told of a table.
const mostDifferences = 100

// Run returns where the rows stand in each journal, and what differs.
func (a Audit) Run(ctx context.Context) (at []journal.LogPosition, differences []string, err error) {
	r := &audit{Audit: a}
	for _, j := range a.Journals {
		p := &auditedJournal{Audited: j, state: j.Rules.NewState(), at: journal.Before, bound: projections.NewBounded(j.Log)}
		p.runner = projections.Config{Pool: a.Beside, Log: p.bound, Journal: j.Rules.Journal()}.Runner(j.Projections...)
		p.records = j.Read()
		defer p.records.Close()
		r.journals = append(r.journals, p)
	}
	if err := r.follow(ctx, a.Live); err != nil { // without a snapshot, which nobody can vacuum behind
		return nil, nil, err
	}
	err = inSnapshot(ctx, a.Live, func(live pgx.Tx) error {
		if err := r.follow(ctx, live); err != nil { // what came meanwhile
			return err
		}
		return r.compare(ctx, live)
	})
	for _, j := range r.journals {
		at = append(at, journal.LogPosition{Journal: j.Rules.Journal(), Sequence: j.at.Sequence})
	}
	return at, r.found, err
}

// audit is one run.
type audit struct {
	Audit
	journals []*auditedJournal
	found    []string
}

// auditedJournal is a journal, its fold and its rows beside.
type auditedJournal struct {
	Audited
	records Records
	looked  int64           // the offset after the last record read
	waiting []journal.Entry // read, not yet folded
	state   decide.State
	at      journal.Position
	bound   *projections.Bounded
	runner  *projections.Runner
}

// follow brings the folds and the rows beside to where the live rows stand in each journal.
func (r *audit) follow(ctx context.Context, live projections.Querier) error {
	goals := make([]projections.Checkpoint, len(r.journals))
	for i, j := range r.journals {
		var err error
		if goals[i], err = projections.ReadCheckpoint(ctx, live, j.Rules.Journal(), 0); err != nil {
			return err
		}
		if goals[i].Position.Sequence < j.at.Sequence {
			return fmt.Errorf("the rows of %s went back from sequence %d to %d during the audit", j.Rules.Journal(), j.at.Sequence, goals[i].Position.Sequence)
		}
	}
	group, working := errgroup.WithContext(ctx)
	for i, j := range r.journals {
		goal := goals[i].Position
		j.bound.Raise(goal.Sequence)
		group.Go(func() error { return j.fold(working, goal) })
		// Should the log not hold the goal, the fold says so, and this ends with it.
		group.Go(func() error {
			if err := j.runner.Replay(working, goal.Sequence); err != nil {
				return fmt.Errorf("replaying %s: %w", j.Rules.Journal(), err)
			}
			return nil
		})
	}
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			for i, j := range r.journals {
				r.tell("%s: %d of %d records", j.Rules.Journal(), j.runner.Position().Sequence+1, goals[i].Position.Sequence+1)
			}
		}
	}
}

func (r *audit) tell(format string, args ...any) {
	if r.Told != nil {
		r.Told(fmt.Sprintf(format, args...))
	}
}

// fold applies records up to the goal, which the log must hold. It does not wait for records that are not there: the
// live rows were made of them.
func (j *auditedJournal) fold(ctx context.Context, goal journal.Position) error {
	name := j.Rules.Journal()
	end, err := j.Log.Tip(ctx)
	if err != nil {
		return err
	}
	for j.at.Sequence < goal.Sequence {
		if len(j.waiting) == 0 {
			if j.looked >= end {
				return &journal.DivergedError{Journal: name, Have: goal, Found: j.at, Reason: "the rows hold records that the log does not"}
			}
			if err := j.read(ctx, &end); err != nil {
				return err
			}
			continue
		}
		e := j.waiting[0]
		j.waiting = j.waiting[1:]
		j.state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
		j.at = e.Position
	}
	if j.at.Hash != goal.Hash {
		return &journal.DivergedError{Journal: name, Have: goal, Found: j.at, Reason: "the rows stand at a record that the log does not hold"}
	}
	return nil
}

// lookAgain is how often an audit that waits for records asks whether the log still reaches that far.
const lookAgain = time.Second

// read waits for more records. Where none come, it asks again where the log ends: one that has lost its end since never reaches
// it. What is told once only may be the word of a broker that has just lost the partition.
func (j *auditedJournal) read(ctx context.Context, end *int64) error {
	for shorter := false; ; {
		some, cancel := context.WithTimeout(ctx, lookAgain)
		entries, next, err := j.records.Next(some)
		cancel()
		if err == nil {
			j.waiting, j.looked = entries, next
			return nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		now, err := j.Log.Tip(ctx)
		if err != nil {
			return err
		}
		if now < *end && shorter {
			*end = now
			return nil
		}
		shorter = now < *end
	}
}

// compare holds the live rows against those beside, those against the folds, and the live rows against each other.
func (r *audit) compare(ctx context.Context, live pgx.Tx) error {
	err := inSnapshot(ctx, r.Beside, func(made pgx.Tx) (err error) {
		r.found, err = projections.Differences(ctx, live, made, mostDifferences, func(table string) { r.tell("compared %s", table) })
		return err
	})
	if err != nil {
		return err
	}
	for _, j := range r.journals {
		if j.Compare == nil {
			continue
		}
		differences, err := j.Compare(ctx, r.Beside, j.state, j.at.Sequence)
		if err != nil {
			return err
		}
		for _, d := range differences {
			r.found = append(r.found, "the projections make other rows than the log says: "+d)
		}
	}
	broken, err := Broken(ctx, live)
	r.found = append(r.found, broken...)
	return err
}

// inSnapshot runs in a transaction that reads one state of a database, however long that takes.
func inSnapshot(ctx context.Context, pool *pgxpool.Pool, read func(tx pgx.Tx) error) error {
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return read(tx)
}
