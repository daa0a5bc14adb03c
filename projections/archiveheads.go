package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/streams/archive"
)

// ArchiveHeads keeps the heads of archives in the database, a row for each partition.
type ArchiveHeads struct{ Pool Executor }

var _ archive.Heads = ArchiveHeads{}

// Head implements archive.Heads. A database that is not migrated yet has none.
func (a ArchiveHeads) Head(ctx context.Context, journal string, partition int32) (*archive.Head, error) {
	h, err := readHead(ctx, a.Pool, journal, partition)
	if undefinedTable(err) {
		return nil, nil
	}
	return h, err
}

func readHead(ctx context.Context, db Querier, journal string, partition int32) (*archive.Head, error) {
	h := new(archive.Head)
	h.Base.Journal, h.Base.Partition = journal, partition
	var id [16]byte
	var manifest string
	var hash []byte
	err := db.QueryRow(ctx, `SELECT partitions, journal_id, range, manifest, sequence, hash, term, log_offset FROM archive_heads
		WHERE journal = $1 AND partition = $2`, journal, partition).
		Scan(&h.Base.Partitions, &id, &h.Range, &manifest, &h.Base.Sequence, &hash, &h.Base.Term, &h.LastOffset)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("projections: reading the head of the archive of %s/%d: %w", journal, partition, err)
	}
	h.Base.JournalID = id
	copy(h.Base.Prev[:], hash)
	if err = h.Manifest.UnmarshalText([]byte(manifest)); err == nil {
		err = h.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("projections: the row of %s/%d in the table archive_heads is damaged; if the archive is sound, delete it: %w", journal, partition, err)
	}
	return h, nil
}

// Keep implements archive.Heads. It waits for the disk, unlike the rows' transactions.
func (a ArchiveHeads) Keep(ctx context.Context, h archive.Head) error {
	if err := h.Validate(); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, a.Pool, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		// The lock makes a second session wait, so that it compares its head with the one that the first session stores.
		if _, err := tx.Exec(ctx, "LOCK TABLE archive_heads IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		stored, err := readHead(ctx, tx, h.Base.Journal, h.Base.Partition)
		if err != nil {
			return err
		}
		if newer, err := h.Replaces(stored); err != nil || !newer {
			return err
		}
		b := h.Base
		_, err = tx.Exec(ctx, `INSERT INTO archive_heads (journal, partition, partitions, journal_id, range, manifest, sequence, hash, term, log_offset)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (journal, partition)
			DO UPDATE SET range = $5, manifest = $6, sequence = $7, hash = $8, term = $9, log_offset = $10, kept = clock_timestamp()`,
			b.Journal, b.Partition, b.Partitions, [16]byte(b.JournalID), h.Range, h.Manifest.String(), b.Sequence, b.Prev[:], b.Term, h.LastOffset)
		return err
	})
	if err != nil {
		return fmt.Errorf("projections: keeping the head of the archive of %s/%d: %w", h.Base.Journal, h.Base.Partition, err)
	}
	return nil
}

// String implements archive.Heads.
func (a ArchiveHeads) String() string { return "Postgres" }
