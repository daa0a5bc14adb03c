package readmodels

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Replay makes rows anew: the log goes through the projections into an empty schema and, beside that, through a fold which
// knows nothing of projections or tables. The rows are held against the fold. An audit and a rebuild both begin with it.
type Replay struct {
	// Beside is where the rows are made: a migrated schema without rows.
	Beside   *pgxpool.Pool
	Journals []Audited
	// Told is told every second how far it is, unless it is nil.
	Told func(progress string)
}

// Audited is a journal as a replay reads it.
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
	Next(ctx context.Context) (entries []record.Entry, next int64, err error)
	Close()
}

// Run makes the rows up to a position in each journal, and returns where they stand and what differs: between them and the
// fold, or among them.
func (p Replay) Run(ctx context.Context, goals []record.Position) (at []record.LogPosition, differences []string, err error) {
	r := p.begin()
	defer r.end()
	if err := r.follow(ctx, goals); err != nil {
		return nil, nil, err
	}
	if err := r.compareFolds(ctx); err != nil {
		return nil, nil, err
	}
	broken, err := Broken(ctx, p.Beside)
	return r.positions(), append(r.found, broken...), err
}

// replay is one run.
type replay struct {
	Replay
	journals []*auditedJournal
	found    []string
}

// begin opens the journals. The caller ends the run.
func (p Replay) begin() *replay {
	r := &replay{Replay: p}
	for _, j := range p.Journals {
		a := &auditedJournal{Audited: j, state: j.Rules.NewState(), at: record.Before, bound: projections.NewBounded(j.Log), records: j.Read()}
		a.runner = projections.Config{Pool: p.Beside, Log: a.bound, Journal: j.Rules.Journal()}.Runner(j.Projections...)
		r.journals = append(r.journals, a)
	}
	return r
}

func (r *replay) end() {
	for _, j := range r.journals {
		j.records.Close()
	}
}

// positions returns where the folds and the rows stand.
func (r *replay) positions() (at []record.LogPosition) {
	for _, j := range r.journals {
		at = append(at, record.LogPosition{Journal: j.Rules.Journal(), Sequence: j.at.Sequence})
	}
	return at
}

// auditedJournal is a journal, its fold and its rows beside.
type auditedJournal struct {
	Audited
	records Records
	looked  int64          // the offset after the last record read
	waiting []record.Entry // read, not yet folded
	state   decide.State
	at      record.Position
	bound   *projections.Bounded
	runner  *projections.Runner
}

// follow brings the folds and the rows to a position in each journal, which its log must hold.
func (r *replay) follow(ctx context.Context, goals []record.Position) error {
	group, working := errgroup.WithContext(ctx)
	for i, j := range r.journals {
		goal := goals[i]
		// First: the runner would otherwise wait for records that it may not read yet.
		j.bound.Raise(goal.Sequence)
		group.Go(func() error { return j.fold(working, goal) })
		// Should the log not hold the goal, the fold says so, and this ends with it: the runner would wait for ever.
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
				r.tell("%s: %d of %d records", j.Rules.Journal(), j.runner.Position().Sequence+1, goals[i].Sequence+1)
			}
		}
	}
}

func (r *replay) tell(format string, args ...any) {
	if r.Told != nil {
		r.Told(fmt.Sprintf(format, args...))
	}
}

// fold applies records up to the goal, which the log must hold. It does not wait for records that are not there: the
// live rows were made of them.
func (j *auditedJournal) fold(ctx context.Context, goal record.Position) error {
	name := j.Rules.Journal()
	end, err := j.Log.Tip(ctx)
	if err != nil {
		return err
	}
	for j.at.Sequence < goal.Sequence {
		if len(j.waiting) == 0 {
			if j.looked >= end {
				return &record.DivergedError{Journal: name, Have: goal, Found: j.at, Reason: "the rows hold records that the log does not"}
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
		return &record.DivergedError{Journal: name, Have: goal, Found: j.at, Reason: "the rows stand at a record that the log does not hold"}
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

// compareFolds holds the rows against the folds.
func (r *replay) compareFolds(ctx context.Context) error {
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
	return nil
}
