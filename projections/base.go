package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/streams/base"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Bases keeps the bases of trimmed logs in the database, a row for each partition.
type Bases struct{ Pool Executor }

var _ base.Keeper = Bases{}

// Base implements base.Source. A database that was never migrated has none.
func (b Bases) Base(ctx context.Context, journal string, partition int32) (*record.Base, error) {
	stored, err := readBase(ctx, b.Pool, journal, partition)
	if undefinedTable(err) {
		return nil, nil
	}
	return stored, err
}

func readBase(ctx context.Context, db Querier, journal string, partition int32) (*record.Base, error) {
	stored := record.Base{Journal: journal, Partition: partition}
	var id [16]byte
	var hash []byte
	err := db.QueryRow(ctx, `SELECT partitions, journal_id, sequence, hash, term FROM bases WHERE journal = $1 AND partition = $2`, journal, partition).
		Scan(&stored.Partitions, &id, &stored.Sequence, &hash, &stored.Term)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("projections: reading the base of %s/%d: %w", journal, partition, err)
	}
	stored.JournalID = id
	copy(stored.Prev[:], hash)
	if err := stored.Validate(); err != nil {
		return nil, &base.DamagedError{Source: "the table bases", Err: err, Remedy: "delete the row of this journal and partition"}
	}
	return &stored, nil
}

// Keep implements base.Keeper. It waits for the disk, unlike the rows' transactions.
func (b Bases) Keep(ctx context.Context, to record.Base) error {
	if err := to.Validate(); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		// The lock makes a second session wait, so that it compares its base with the one that the first session stores.
		if _, err := tx.Exec(ctx, "LOCK TABLE bases IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		stored, err := readBase(ctx, tx, to.Journal, to.Partition)
		if err != nil {
			return err
		}
		if stored != nil {
			if err := base.MayReplace(*stored, to); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `INSERT INTO bases (journal, partition, partitions, journal_id, sequence, hash, term)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (journal, partition)
			DO UPDATE SET sequence = $5, hash = $6, term = $7`,
			to.Journal, to.Partition, to.Partitions, [16]byte(to.JournalID), to.Sequence, to.Prev[:], to.Term)
		return err
	})
	if err != nil {
		return fmt.Errorf("projections: keeping the base of %s/%d: %w", to.Journal, to.Partition, err)
	}
	return nil
}

// String implements base.Source.
func (b Bases) String() string { return "Postgres" }
