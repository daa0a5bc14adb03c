package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// AnchorEvery is the distance between two anchors, in records.
const AnchorEvery = 4096

// Querier is a pool, a connection or a transaction from which a checkpoint can be read.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Checkpoint is the position of the rows of one journal partition.
type Checkpoint struct {
	Journal   string
	Partition int32
	Position  record.Position
	Time      scalar.Time // of the last record applied; zero before genesis
}

// ReadCheckpoint returns the checkpoint of a partition, or journal.Before if no record was applied.
func ReadCheckpoint(ctx context.Context, db Querier, name string, partition int32) (Checkpoint, error) {
	c := Checkpoint{Journal: name, Partition: partition, Position: record.Before}
	var hash []byte
	err := db.QueryRow(ctx, `SELECT log_offset, sequence, hash, time FROM checkpoints WHERE journal = $1 AND partition = $2`,
		name, partition).Scan(&c.Position.Offset, &c.Position.Sequence, &hash, column.IntoTime(&c.Time))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("projections: reading the checkpoint of %s/%d: %w", name, partition, err)
	}
	copy(c.Position.Hash[:], hash)
	return c, nil
}

// errMoved says that the checkpoint is not at the expected position: another runner has applied the next records.
var errMoved = errors.New("another runner has moved the checkpoint")

// moveCheckpoint begins a transaction, moves the checkpoint from old to the position of the last entry, adds the anchors
// among the entries, and runs the statements in before. It returns errMoved if the checkpoint is not at old. This is the first step of a runner's
// transaction: a second runner waits here until the first one commits, and then finds that the checkpoint has moved.
func moveCheckpoint(ctx context.Context, conn *pgx.Conn, name string, partition int32, old record.Position, entries []record.Entry,
	before *pgx.Batch) (err error) {
	last := entries[len(entries)-1]
	to, at := last.Position, column.Timestamp(last.Record.Time)
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	if old.IsBefore() {
		// Of two concurrent inserts, the second waits for the first at the key and then inserts nothing.
		batch.Queue(`INSERT INTO checkpoints (journal, partition, log_offset, sequence, hash, time)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`, name, partition, to.Offset, to.Sequence, to.Hash[:], at)
	} else {
		batch.Queue(`UPDATE checkpoints SET log_offset = $3, sequence = $4, hash = $5, time = $6
			WHERE journal = $1 AND partition = $2 AND sequence = $7 AND hash = $8`,
			name, partition, to.Offset, to.Sequence, to.Hash[:], at, old.Sequence, old.Hash[:])
	}
	queueAnchors(batch, name, partition, entries)
	batch.QueuedQueries = append(batch.QueuedQueries, before.QueuedQueries...)
	results := conn.SendBatch(ctx, batch)
	defer func() {
		if closed := results.Close(); err == nil {
			err = closed
		}
		if err != nil && !errors.Is(err, errMoved) {
			err = fmt.Errorf("projections: moving the checkpoint of %s/%d: %w", name, partition, err)
		}
	}()
	if _, err := results.Exec(); err != nil {
		return err
	}
	tag, err := results.Exec()
	if err == nil && tag.RowsAffected() != 1 {
		err = errMoved
	}
	return err
}

// queueAnchors queues the statement that writes the anchors among the entries, if any.
func queueAnchors(batch *pgx.Batch, name string, partition int32, entries []record.Entry) {
	var sequences, offsets []int64
	var hashes [][]byte
	for _, e := range entries {
		if p := e.Position; p.Sequence%AnchorEvery == 0 {
			sequences, offsets, hashes = append(sequences, p.Sequence), append(offsets, p.Offset), append(hashes, e.Position.Hash[:])
		}
	}
	if len(sequences) > 0 {
		batch.Queue(`INSERT INTO anchors (journal, partition, sequence, log_offset, hash)
			SELECT $1, $2, * FROM unnest($3::bigint[], $4::bigint[], $5::bytea[])`, name, partition, sequences, offsets, hashes)
	}
}

// Known returns all positions of a journal in the database: checkpoints and anchors. An owner compares them with its
// fold before it takes a term, and writes a genesis only if there are none.
//
// It reads the database and not a runner's memory. A crash of Postgres may lose the last transactions, positions and
// rows together; the remaining positions are older, and the log contains them too. Every returned position belongs to a
// record that readers have received. A log without that record is damaged, no matter what happened to the rows.
func Known(ctx context.Context, db Querier, name string, partition int32) ([]record.Position, error) {
	// Tools also read databases of earlier versions that are not migrated yet. Their column log_offset is named
	// "offset".
	rows, err := db.Query(ctx, `SELECT COALESCE(to_jsonb(c)->>'log_offset', to_jsonb(c)->>'offset')::bigint, sequence, hash
		FROM checkpoints c WHERE journal = $1 AND partition = $2
		UNION SELECT COALESCE(to_jsonb(a)->>'log_offset', to_jsonb(a)->>'offset')::bigint, sequence, hash
		FROM anchors a WHERE journal = $1 AND partition = $2 ORDER BY 2, 1`, name, partition)
	if err == nil {
		var known []record.Position
		if known, err = pgx.CollectRows(rows, scanPosition); err == nil {
			return known, nil
		}
	}
	if undefinedTable(err) { // the database was never migrated, so it has no positions
		return nil, nil
	}
	return nil, fmt.Errorf("projections: reading the known positions of %s/%d: %w", name, partition, err)
}

// KnownTo returns the positions in a database. It implements journal.Known.
type KnownTo struct{ DB Querier }

// Positions returns the checkpoints and anchors of a partition.
func (k KnownTo) Positions(ctx context.Context, name string, partition int32) ([]record.Position, error) {
	return Known(ctx, k.DB, name, partition)
}

// Anchor returns the nearest anchor at or below a sequence, from which a reader can seek, or journal.Before.
func Anchor(ctx context.Context, db Querier, name string, partition int32, sequence int64) (record.Position, error) {
	rows, err := db.Query(ctx, `SELECT log_offset, sequence, hash FROM anchors
		WHERE journal = $1 AND partition = $2 AND sequence <= $3 ORDER BY sequence DESC LIMIT 1`, name, partition, sequence)
	if err == nil {
		var p record.Position
		p, err = pgx.CollectExactlyOneRow(rows, scanPosition)
		if err == nil {
			return p, nil
		}
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return record.Before, nil
	}
	return record.Before, fmt.Errorf("projections: reading an anchor of %s/%d: %w", name, partition, err)
}

func scanPosition(row pgx.CollectableRow) (p record.Position, err error) {
	var hash []byte
	err = row.Scan(&p.Offset, &p.Sequence, &hash)
	copy(p.Hash[:], hash)
	return p, err
}

func undefinedTable(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42P01"
}
