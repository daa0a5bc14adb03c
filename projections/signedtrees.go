package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// SignedTrees records the signed trees of transparency logs. It implements transparency.Heads. Its Positions are those of the
// last records that were signed: a log without one of them has lost what strangers can prove.
type SignedTrees struct{ Pool Executor }

var _ transparency.Heads = SignedTrees{}

// Head implements transparency.Heads.
func (s SignedTrees) Head(ctx context.Context, of transparency.Origin) (h transparency.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	var root string
	var hash []byte
	err = s.Pool.QueryRow(ctx, `SELECT size, root, log_offset, hash, forgotten, signed FROM signed_trees WHERE origin = $1`, of.String()).
		Scan(&h.Size, &root, &h.Position.Offset, &hash, &h.Forgotten, &h.Recorded)
	if errors.Is(err, pgx.ErrNoRows) {
		return transparency.Head{Position: record.Before}, nil
	}
	if err != nil {
		return h, fmt.Errorf("projections: reading the signed tree of %v: %w", of, err)
	}
	h.Position.Sequence = h.Size - 1
	copy(h.Position.Hash[:], hash)
	if h.Root, err = tlog.ParseHash(root); err != nil {
		return h, fmt.Errorf("projections: the signed tree of %v: %w", of, err)
	}
	return h, nil
}

// Advance implements transparency.Heads.
func (s SignedTrees) Advance(ctx context.Context, of transparency.Origin, old, next transparency.Head) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		at := next.Position
		sql, args := `INSERT INTO signed_trees (origin, size, root, log_offset, hash, journal, partition) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT DO NOTHING`, []any{of.String(), next.Size, next.Root.String(), at.Offset, at.Hash[:], of.Journal, of.Partition}
		if old.Size > 0 {
			sql = `UPDATE signed_trees SET size = $2, root = $3, log_offset = $4, hash = $5, signed = clock_timestamp(), forgotten = false
				WHERE origin = $1 AND size = $6 AND root = $7 AND size < $2`
			args = append(args[:5], old.Size, old.Root.String())
		}
		tag, err := tx.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = transparency.ErrMoved
		}
		return err
	})
	if err != nil && !errors.Is(err, transparency.ErrMoved) {
		err = fmt.Errorf("projections: recording the tree of %v: %w", of, err)
	}
	return err
}

// Publish implements transparency.Heads. A checkpoint is published after its head is recorded, so there is a row.
func (s SignedTrees) Publish(ctx context.Context, of transparency.Origin, c transparency.Checkpoint) error {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	_, err := s.Pool.Exec(ctx, `UPDATE signed_trees SET checkpoint = $2, verifier = $3
		WHERE origin = $1 AND coalesce(split_part(checkpoint, E'\n', 2)::bigint, 0) <= $4`, of.String(), string(c.Note), c.Verifier, c.Size)
	if err != nil {
		return fmt.Errorf("projections: publishing a checkpoint of %v: %w", of, err)
	}
	return nil
}

// Published implements transparency.Heads.
func (s SignedTrees) Published(ctx context.Context, of transparency.Origin) (c transparency.Checkpoint, err error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	var note string
	err = s.Pool.QueryRow(ctx, `SELECT checkpoint, verifier, split_part(checkpoint, E'\n', 2)::bigint FROM signed_trees
		WHERE origin = $1 AND checkpoint IS NOT NULL`, of.String()).Scan(&note, &c.Verifier, &c.Size)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("projections: reading the checkpoint of %v: %w", of, err)
	}
	c.Note = []byte(note)
	return c, nil
}

// Positions returns the positions of the last signed records of a partition. It implements journal.Known.
func (s SignedTrees) Positions(ctx context.Context, name string, partition int32) ([]record.Position, error) {
	rows, err := s.Pool.Query(ctx, `SELECT log_offset, size - 1, hash FROM signed_trees WHERE journal = $1 AND partition = $2 AND NOT forgotten`, name, partition)
	if err == nil {
		var known []record.Position
		if known, err = pgx.CollectRows(rows, scanPosition); err == nil {
			return known, nil
		}
	}
	if undefinedTable(err) { // the database is not migrated yet
		return nil, nil
	}
	return nil, fmt.Errorf("projections: reading the signed trees of %s/%d: %w", name, partition, err)
}
