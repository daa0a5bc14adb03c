package readmodels

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Audit compares the live rows with the log in two ways. Neither of them names a table.
//
// It replays the log through the projections into an empty schema, and compares every column of every table with the
// live rows. That finds rows that were changed after they were written, and projections that have changed. It does not
// find a wrong projection, which makes the same mistake twice. So Audit also compares the new rows with a fold of the
// log that does not use projections, and checks the invariants among the live rows.
//
// The venue may run during an audit: the live rows are read in one snapshot, and the new rows are brought to its
// position. The caller drops the schema.
type Audit struct {
	Replay
	Live *pgxpool.Pool
}

// mostDifferences is the largest number of differences reported for a table.
const mostDifferences = 100

// Run returns the position of the live rows in each journal, and the differences.
func (a Audit) Run(ctx context.Context) (at []record.LogPosition, differences []string, err error) {
	r := a.begin()
	defer r.end()
	if err := a.follow(ctx, r, a.Live); err != nil { // outside of a snapshot, which would block vacuum
		return nil, nil, err
	}
	err = inSnapshot(ctx, a.Live, func(live pgx.Tx) error {
		if err := a.follow(ctx, r, live); err != nil { // the records since the first call
			return err
		}
		return a.compare(ctx, r, live)
	})
	return r.positions(), r.found, err
}

// follow brings the folds and the new rows to the position of the live rows in each journal.
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

// compare compares the live rows with the new rows and the new rows with the folds, and checks the invariants among the
// live rows.
func (a Audit) compare(ctx context.Context, r *replay, live pgx.Tx) error {
	from, err := projections.HistoryFrom(ctx, a.Live, live)
	if err != nil {
		return err
	}
	err = inSnapshot(ctx, a.Target, func(made pgx.Tx) (err error) {
		r.found, err = projections.Differences(ctx, live, made, from, mostDifferences, func(table string) { r.tell("compared " + table) })
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

// inSnapshot runs read in a transaction that reads one state of a database. The transaction has no time limit.
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
