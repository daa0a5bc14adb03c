package lake

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Catalog is the DuckLake catalog in the schema lake of a database.
type Catalog struct {
	Pool *pgxpool.Pool
	Data string // folder or URL of the data files as DuckDB opens it, with a slash at the end
}

// Range is a full range of an archive.
type Range struct {
	Journal   string
	Partition int32
	Number    int64       // from 0
	Next      int64       // sequence of the first record after the range
	Hash      record.Hash // of the last record
	Manifest  record.Hash // of the manifest in the archive
}

// DataFile is a file of a table in the bucket.
type DataFile struct {
	dataset.File
	Path string // relative to the folder of the table
}

// OrderError reports that a range does not follow the last one in the catalog.
type OrderError struct {
	Range
	Last int64 // number of the last range in the catalog; -1 if there is none
}

// Error names both ranges.
func (e *OrderError) Error() string {
	return fmt.Sprintf("lake: range %d of %s/%d was added to a catalog whose last one is %d", e.Number, e.Journal, e.Partition, e.Last)
}

// Last returns the last range of a partition in the catalog, or nil.
func (c Catalog) Last(ctx context.Context, journal string, partition int32) (*Range, error) {
	r, err := last(ctx, c.Pool, journal, partition)
	if err != nil {
		return nil, fmt.Errorf("lake: reading the last range of %s/%d in the catalog: %w", journal, partition, err)
	}
	return r, nil
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func last(ctx context.Context, db querier, journal string, partition int32) (*Range, error) {
	r := Range{Journal: journal, Partition: partition}
	var hash []byte
	var manifest string
	err := db.QueryRow(ctx, `SELECT range, sequence, hash, manifest FROM lake.ranges WHERE journal = $1 AND partition = $2 ORDER BY range DESC LIMIT 1`,
		journal, partition).Scan(&r.Number, &r.Next, &hash, &manifest)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	copy(r.Hash[:], hash)
	return &r, r.Manifest.UnmarshalText([]byte(manifest))
}

// Paths returns the paths of the files of a table, relative to the folder of the table, that begin with a name.
func (c Catalog) Paths(ctx context.Context, table, name string) ([]string, error) {
	rows, err := c.Pool.Query(ctx, `SELECT f.path FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id)
		WHERE t.table_name = $1 AND starts_with(f.path, $2)`, table, name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// Files returns the files of all tables as the bucket must have them. Prefix is that of FillerConfig.
func (c Catalog) Files(ctx context.Context, prefix string) ([]blob.Expected, error) {
	rows, err := c.Pool.Query(ctx, `SELECT $1::text || s.path || t.path || f.path, f.file_size_bytes
		FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id) JOIN lake.ducklake_schema s USING (schema_id)
		WHERE f.end_snapshot IS NULL AND t.end_snapshot IS NULL ORDER BY f.data_file_id`, prefix)
	if err != nil {
		return nil, fmt.Errorf("lake: reading the files of the catalog: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e blob.Expected, err error) {
		err = row.Scan(&e.Key, &e.Size)
		key := e.Key
		e.Sum = func(sum [sha256.Size]byte) bool { return strings.HasSuffix(key, endOf(sum)) }
		return e, err
	})
}

// change runs a transaction that changes the catalog.
func (c Catalog) change(ctx context.Context, what func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, c.Pool, func(tx pgx.Tx) error {
		// All journals share the ids of snapshots and files, so the lock makes other sessions wait.
		if _, err := tx.Exec(ctx, "SET LOCAL synchronous_commit = on; LOCK TABLE lake.ranges IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		return what(tx)
	})
}

// Define creates the catalog and the tables of a journal unless they exist. DuckDB can't attach a catalog without a snapshot, and a
// venue may need long for its first full range.
func (c Catalog) Define(ctx context.Context, journal string) error {
	err := c.change(ctx, func(tx pgx.Tx) error {
		s, err := begin(ctx, tx, c.Data)
		if err != nil {
			return err
		}
		if err := s.defineAll(ctx, journal); err != nil || len(s.altered) == 0 {
			return err
		}
		return s.end(ctx)
	})
	if err != nil {
		return fmt.Errorf("lake: defining the tables of %s in the catalog: %w", journal, err)
	}
	return nil
}

// Locate writes where the files are to a catalog that exists. Add and Define do that too.
func (c Catalog) Locate(ctx context.Context) error {
	if err := c.change(ctx, func(tx pgx.Tx) error { return locate(ctx, tx, c.Data) }); err != nil {
		return fmt.Errorf("lake: writing the place of the files to the catalog: %w", err)
	}
	return nil
}

// Add adds a range with its files, which MUST be durable. It reports false if the catalog has the range already. The error is an
// *OrderError if the range does not follow the last one. Add waits for the disk.
func (c Catalog) Add(ctx context.Context, r Range, files []DataFile) (added bool, err error) {
	err = c.change(ctx, func(tx pgx.Tx) error {
		have, err := last(ctx, tx, r.Journal, r.Partition)
		if err != nil {
			return err
		}
		number := int64(-1)
		if have != nil {
			number = have.Number
		}
		switch {
		case number >= r.Number:
			return nil
		case number+1 != r.Number:
			return &OrderError{r, number}
		}
		added = true
		return c.add(ctx, tx, r, files)
	})
	if err != nil {
		return false, fmt.Errorf("lake: adding range %d of %s/%d to the catalog: %w", r.Number, r.Journal, r.Partition, err)
	}
	return added, nil
}

func (c Catalog) add(ctx context.Context, tx pgx.Tx, r Range, files []DataFile) error {
	s, err := begin(ctx, tx, c.Data)
	if err != nil {
		return err
	}
	if err := s.defineAll(ctx, r.Journal); err != nil {
		return err
	}
	for _, f := range files {
		if err := s.insert(ctx, f); err != nil {
			return fmt.Errorf("table %s: %w", f.Table, err)
		}
	}
	if err := s.end(ctx); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO lake.ranges (journal, partition, range, sequence, hash, manifest, snapshot_id) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		r.Journal, r.Partition, r.Number, r.Next, r.Hash[:], r.Manifest.String(), s.id)
	return err
}

// snapshot is a snapshot of the catalog in the making.
type snapshot struct {
	tx                        pgx.Tx
	id, schema                int64 // of the snapshot, and its schema version
	nextCatalogID, nextFileID int64
	altered                   []int64 // tables
	changes                   []string
}

// begin starts the snapshot after the last one. It creates the catalog if there is none, and updates where its data is.
func begin(ctx context.Context, tx pgx.Tx, data string) (*snapshot, error) {
	s := &snapshot{tx: tx}
	err := s.load(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		if err = s.create(ctx, data); err == nil {
			err = s.load(ctx)
		}
	}
	if err != nil {
		return nil, err
	}
	s.id++
	return s, locate(ctx, tx, data)
}

// locate writes where the files are.
func locate(ctx context.Context, tx pgx.Tx, data string) error {
	_, err := tx.Exec(ctx, "UPDATE lake.ducklake_metadata SET value = $1 WHERE key = 'data_path' AND scope IS NULL AND value <> $1", data)
	return err
}

func (s *snapshot) load(ctx context.Context) error {
	return s.tx.QueryRow(ctx, `SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM lake.ducklake_snapshot
		ORDER BY snapshot_id DESC LIMIT 1`).Scan(&s.id, &s.schema, &s.nextCatalogID, &s.nextFileID)
}

// format is the version of the DuckLake specification that the catalog has.
const format = "1.0"

// create makes the first snapshot, which has an empty schema, as the specification has it.
func (s *snapshot) create(ctx context.Context, data string) error {
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_metadata (key, value)
		VALUES ('version', $1), ('created_by', 'perpetua'), ('data_path', $2), ('encrypted', 'false')`, format, data); err != nil {
		return err
	}
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_snapshot VALUES (0, clock_timestamp(), 0, 1, 0)`); err != nil {
		return err
	}
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_snapshot_changes (snapshot_id, changes_made) VALUES (0, 'created_schema:"main"')`); err != nil {
		return err
	}
	_, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_schema VALUES (0, gen_random_uuid(), 0, NULL, 'main', 'main/', true)`)
	return err
}

// end writes the snapshot.
func (s *snapshot) end(ctx context.Context) error {
	if len(s.altered) > 0 {
		s.schema++
		if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_schema_versions SELECT $1, $2, unnest($3::bigint[])`, s.id, s.schema, s.altered); err != nil {
			return err
		}
	}
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_snapshot VALUES ($1, clock_timestamp(), $2, $3, $4)`,
		s.id, s.schema, s.nextCatalogID, s.nextFileID); err != nil {
		return err
	}
	_, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_snapshot_changes (snapshot_id, changes_made, author) VALUES ($1, $2, 'perpetua')`,
		s.id, strings.Join(s.changes, ","))
	return err
}

func (s *snapshot) catalogID() int64 {
	id := s.nextCatalogID
	s.nextCatalogID++
	return id
}
