package readmodels

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Audit holds rows against the log in two ways, neither of which knows any table by name.
//
// The log is replayed through the projections into an empty schema beside the rows, and every column of every table is
// compared. That finds whatever became of the rows since they were written, and projections that have changed, but not
// a projection that is wrong: it makes the same mistake twice. So the new rows are held against a fold of the log, which
// knows nothing of projections, and the live rows against what must hold among them.
//
// The venue may go on meanwhile: the live rows are read in one snapshot, and the others are brought to its position. The
// caller drops the schema.
type Audit struct {
	Replay
	Live *pgxpool.Pool
}

// mostDifferences is how many are told of a table.
const mostDifferences = 100

// Run returns where the rows stand in each journal, and what differs.
func (a Audit) Run(ctx context.Context) (at []record.LogPosition, differences []string, err error) {
	r := a.begin()
	defer r.end()
	if err := a.follow(ctx, r, a.Live); err != nil { // without a snapshot, which nobody can vacuum behind
		return nil, nil, err
	}
	err = inSnapshot(ctx, a.Live, func(live pgx.Tx) error {
		if err := a.follow(ctx, r, live); err != nil { // what came meanwhile
			return err
		}
		return a.compare(ctx, r, live)
	})
	return r.positions(), r.found, err
}

// follow brings the folds and the rows beside to where the live rows stand in each journal.
func (a Audit) follow(ctx context.Context, r *replay, live projections.Querier) error {
	goals := make([]record.Position, len(r.journals))
	for i, j := range r.journals {
		c, err := projections.ReadCheckpoint(ctx, live, j.Rules.Journal(), 0)
		if err != nil {
			return err
		}
		if goals[i] = c.Position; c.Position.Sequence < j.at.Sequence {
			return fmt.Errorf("the rows of %s went back from sequence %d to %d during the audit", j.Rules.Journal(), j.at.Sequence, c.Position.Sequence)
		}
	}
	return r.follow(ctx, goals)
}

// compare holds the live rows against those beside, those against the folds, and the live rows against each other.
func (a Audit) compare(ctx context.Context, r *replay, live pgx.Tx) error {
	err := inSnapshot(ctx, a.Beside, func(made pgx.Tx) (err error) {
		r.found, err = projections.Differences(ctx, live, made, mostDifferences, func(table string) { r.tell("compared %s", table) })
		return err
	})
	if err != nil {
		return err
	}
	if err := r.compareFolds(ctx); err != nil {
		return err
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
