package readmodels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Replay creates new rows from the log. It applies the log to an empty schema through the projections and,
// independently, to a fold that does not use projections or tables. Then it compares the rows with the fold. Audit and
// Rebuild both start with a Replay.
type Replay struct {
	// Target is the database of the new rows: a migrated schema without rows.
	Target   *pgxpool.Pool
	Journals []Audited
	// Progress is called every second with the progress. It may be nil.
	Progress func(progress string)
}

// Audited is a journal that a replay reads.
type Audited struct {
	Rules       decide.Rules
	Projections []projections.Projection
	// Log is replayed into the rows. Read opens a second reader of the same log for the fold. It starts at the first
	// record and verifies the records.
	Log  projections.Log
	Read func() Records
	// Compare compares rows with a fold at a sequence and returns the differences. It is nil if there is nothing to
	// compare.
	Compare func(ctx context.Context, pool *pgxpool.Pool, state decide.State, sequence int64) ([]string, error)
}

// Records reads a journal; *journal.Reader implements it. next is the offset after the last record read.
type Records interface {
	Next(ctx context.Context) (entries []record.Entry, next int64, err error)
	Close()
}

// replay is one run of a Replay.
type replay struct {
	Replay
	journals []*auditedJournal
	found    []string
}

// begin opens the journals. The caller must call end.
func (p Replay) begin() *replay {
	r := &replay{Replay: p}
	for _, j := range p.Journals {
		a := &auditedJournal{Audited: j, state: j.Rules.NewState(), at: record.Before, bound: projections.NewBounded(j.Log), records: j.Read()}
		a.runner = projections.Config{Pool: p.Target, Log: a.bound, Journal: j.Rules.Journal()}.Runner(j.Projections...)
		r.journals = append(r.journals, a)
	}
	return r
}

func (r *replay) end() {
	for _, j := range r.journals {
		j.records.Close()
	}
}

// positions returns the positions of the folds and the rows.
func (r *replay) positions() (at []record.LogPosition) {
	for _, j := range r.journals {
		at = append(at, record.LogPosition{Journal: j.Rules.Journal(), Sequence: j.at.Sequence})
	}
	return at
}

// auditedJournal is a journal with its fold and its new rows.
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

// follow brings the folds and the rows to a position in each journal. The log must hold that position.
func (r *replay) follow(ctx context.Context, goals []record.Position) error {
	group, working := errgroup.WithContext(ctx)
	for i, j := range r.journals {
		goal := goals[i]
		// First: the runner would otherwise wait for records that it may not read yet.
		j.bound.Raise(goal.Sequence)
		group.Go(func() error { return j.fold(working, goal) })
		// If the log does not hold the goal, fold returns an error, which also ends this goroutine. Alone, the runner
		// would wait forever.
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
			r.tell(r.progress(goals))
		}
	}
}

func (r *replay) tell(progress string) {
	if r.Progress != nil {
		r.Progress(progress)
	}
}

// progress says how many records of each journal have rows.
func (r *replay) progress(goals []record.Position) string {
	parts := make([]string, len(r.journals))
	for i, j := range r.journals {
		parts[i] = fmt.Sprintf("%s %d of %d", j.Rules.Journal(), j.runner.Position().Sequence+1, goals[i].Sequence+1)
	}
	return "records: " + strings.Join(parts, ", ")
}

// fold applies records up to the goal. It returns a *record.DivergedError if the log does not hold the goal. It does
// not wait for records after the end of the log, because the live rows already contain the goal.
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

// lookAgain is the interval at which an audit that waits for records checks the end of the log.
const lookAgain = time.Second

// read waits for more records. After each timeout it asks for the end of the log, because a log that has lost its end
// never reaches the former end. It believes a shorter end only when that is reported twice: the first report may come
// from a broker that has just lost the partition.
func (j *auditedJournal) read(ctx context.Context, end *int64) error {
	for shorter := false; ; {
		timeout, cancel := context.WithTimeout(ctx, lookAgain)
		entries, next, err := j.records.Next(timeout)
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

// compareFolds compares the rows with the folds.
func (r *replay) compareFolds(ctx context.Context) error {
	for _, j := range r.journals {
		if j.Compare == nil {
			continue
		}
		differences, err := j.Compare(ctx, r.Target, j.state, j.at.Sequence)
		if err != nil {
			return err
		}
		for _, d := range differences {
			r.found = append(r.found, "the projections make other rows than the log says: "+d)
		}
	}
	return nil
}
