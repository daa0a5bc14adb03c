package lake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
)

// defineAll defines the tables of a journal.
func (s *snapshot) defineAll(ctx context.Context, journal string) error {
	for _, t := range dataset.Tables(journal) {
		if err := s.define(ctx, t); err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
	}
	return nil
}

// define makes a table that the catalog lacks, with its view, and gives a table the columns of this build. The id of a column is its
// field id in the files, so a file from before a column was added has NULL there.
func (s *snapshot) define(ctx context.Context, t dataset.Table) error {
	id, err := s.table(ctx, t.Name)
	if errors.Is(err, pgx.ErrNoRows) {
		return s.createTable(ctx, t)
	}
	if err != nil {
		return err
	}
	have, err := s.columns(ctx, id)
	if err != nil {
		return err
	}
	changed := false
	for _, c := range have {
		if slices.Contains(t.Columns, c) {
			continue
		}
		changed = true
		if _, err := s.tx.Exec(ctx, `UPDATE lake.ducklake_column SET end_snapshot = $1 WHERE table_id = $2 AND column_id = $3 AND end_snapshot IS NULL`,
			s.id, id, c.ID); err != nil {
			return err
		}
	}
	for i, c := range t.Columns {
		if slices.Contains(have, c) {
			continue
		}
		changed = true
		if err := s.createColumn(ctx, id, i, c); err != nil {
			return err
		}
	}
	if changed {
		s.altered = append(s.altered, id)
		s.changes = append(s.changes, fmt.Sprintf("altered_table:%d", id))
	}
	return nil
}

// table returns the id of a table.
func (s *snapshot) table(ctx context.Context, name string) (id int64, err error) {
	err = s.tx.QueryRow(ctx, `SELECT table_id FROM lake.ducklake_table WHERE table_name = $1 AND end_snapshot IS NULL`, name).Scan(&id)
	return id, err
}

// columns returns the columns that a table has now.
func (s *snapshot) columns(ctx context.Context, table int64) ([]dataset.Column, error) {
	rows, err := s.tx.Query(ctx, `SELECT column_id, column_name, column_type, nulls_allowed FROM lake.ducklake_column
		WHERE table_id = $1 AND end_snapshot IS NULL`, table)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[dataset.Column])
}

func (s *snapshot) createTable(ctx context.Context, t dataset.Table) error {
	id := s.catalogID()
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_table VALUES ($1, gen_random_uuid(), $2, NULL, 0, $3, $4, true)`,
		id, s.id, t.Name, t.Name+"/"); err != nil {
		return err
	}
	for i, c := range t.Columns {
		if err := s.createColumn(ctx, id, i, c); err != nil {
			return err
		}
	}
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_table_stats VALUES ($1, 0, 0, 0)`, id); err != nil {
		return err
	}
	s.altered = append(s.altered, id)
	s.changes = append(s.changes, fmt.Sprintf(`created_table:"main"."%s"`, t.Name))
	return s.createView(ctx, t.Name)
}

// createColumn makes a column of a table, at an index among all columns.
func (s *snapshot) createColumn(ctx context.Context, table int64, index int, c dataset.Column) error {
	_, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_column (column_id, begin_snapshot, table_id, column_order, column_name, column_type, default_value,
			nulls_allowed, default_value_type, default_value_dialect)
		VALUES ($1, $2, $3, $4, $5, $6, 'NULL', $7, 'literal', 'duckdb')`, c.ID, s.id, table, index+1, c.Name, c.Type, c.Optional)
	return err
}

// live is the schema of the views that add newer rows. They read Postgres under the name venue.
const live = "live"

// newer returns the view in Postgres with the newer rows of a table, or "" if there is none.
func newer(table string) string {
	switch table {
	case "prices", "books": // Postgres has only the latest price, and orders instead of books
		return ""
	case "triggers", "responses":
		return "onboarding_recent_" + table
	}
	return "recent_" + table
}

// createView makes the view with the rows of a table and newer ones. Each range is whole, so a row belongs to a later range if its record
// comes after the last row of the table.
func (s *snapshot) createView(ctx context.Context, table string) error {
	view := newer(table)
	if view == "" {
		return nil
	}
	schema, err := s.liveSchema(ctx)
	if err != nil {
		return err
	}
	of := "{DUCKLAKE_CATALOG}.main." + table
	sql := fmt.Sprintf(`SELECT * FROM %[1]s UNION ALL BY NAME SELECT * FROM venue.analytics.%[2]s WHERE sequence > (SELECT COALESCE(max(sequence), -1) FROM %[1]s)`,
		of, view)
	s.changes = append(s.changes, fmt.Sprintf(`created_view:"%s"."%s"`, live, table))
	_, err = s.tx.Exec(ctx, `INSERT INTO lake.ducklake_view VALUES ($1, gen_random_uuid(), $2, NULL, $3, $4, 'duckdb', $5, '')`,
		s.catalogID(), s.id, schema, table, sql)
	return err
}

// liveSchema returns the id of the schema of the views, and creates it if it is missing.
func (s *snapshot) liveSchema(ctx context.Context) (id int64, err error) {
	err = s.tx.QueryRow(ctx, `SELECT schema_id FROM lake.ducklake_schema WHERE schema_name = $1 AND end_snapshot IS NULL`, live).Scan(&id)
	if !errors.Is(err, pgx.ErrNoRows) {
		return id, err
	}
	id = s.catalogID()
	s.changes = append(s.changes, fmt.Sprintf(`created_schema:"%s"`, live))
	_, err = s.tx.Exec(ctx, `INSERT INTO lake.ducklake_schema VALUES ($1, gen_random_uuid(), $2, NULL, $3, $4, true)`, id, s.id, live, live+"/")
	return id, err
}
