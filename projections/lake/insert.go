package lake

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/dataset"
)

// insert adds a file to its table, with statistics of the file and of the table.
func (s *snapshot) insert(ctx context.Context, f DataFile) error {
	table, err := s.table(ctx, f.Table)
	if err != nil {
		return err
	}
	id, size := s.nextFileID, int64(len(f.Content))
	s.nextFileID++
	var firstRow int64
	if err := s.tx.QueryRow(ctx, `UPDATE lake.ducklake_table_stats SET record_count = record_count + $2, next_row_id = next_row_id + $2,
		file_size_bytes = file_size_bytes + $3 WHERE table_id = $1 RETURNING next_row_id - $2`, table, f.Rows, size).Scan(&firstRow); err != nil {
		return err
	}
	if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_data_file (data_file_id, table_id, begin_snapshot, path, path_is_relative, file_format,
			record_count, file_size_bytes, footer_size, row_id_start)
		VALUES ($1, $2, $3, $4, true, 'parquet', $5, $6, $7, $8)`, id, table, s.id, f.Path, f.Rows, size, f.Footer, firstRow); err != nil {
		return err
	}
	s.changes = append(s.changes, fmt.Sprintf("inserted_into_table:%d", table))
	if err := s.insertStats(ctx, table, id, f.Columns); err != nil {
		return err
	}
	return s.widenStats(ctx, table, f.Columns)
}

// insertStats writes the statistics of the columns of a file.
func (s *snapshot) insertStats(ctx context.Context, table, file int64, all []dataset.Stats) error {
	_, err := s.tx.CopyFrom(ctx, pgx.Identifier{"lake", "ducklake_file_column_stats"},
		[]string{"data_file_id", "table_id", "column_id", "column_size_bytes", "value_count", "null_count", "min_value", "max_value"},
		pgx.CopyFromSlice(len(all), func(i int) ([]any, error) {
			c := all[i]
			return []any{file, table, int64(c.ID), c.Bytes, c.Values, c.Nulls, c.Min, c.Max}, nil
		}))
	return err
}

// widenStats makes the statistics of the columns of a table include those of a file.
func (s *snapshot) widenStats(ctx context.Context, table int64, all []dataset.Stats) error {
	for _, c := range all {
		merged := c
		var nulls bool
		var low, high *string
		rows, err := s.tx.Query(ctx, `SELECT contains_null, min_value, max_value FROM lake.ducklake_table_column_stats WHERE table_id = $1 AND column_id = $2`,
			table, c.ID)
		if err != nil {
			return err
		}
		if _, err := pgx.ForEachRow(rows, []any{&nulls, &low, &high}, func() error {
			return merged.Widen(&dataset.Stats{Column: c.Column, Min: low, Max: high})
		}); err != nil {
			return err
		}
		if _, err := s.tx.Exec(ctx, `DELETE FROM lake.ducklake_table_column_stats WHERE table_id = $1 AND column_id = $2`, table, c.ID); err != nil {
			return err
		}
		if _, err := s.tx.Exec(ctx, `INSERT INTO lake.ducklake_table_column_stats (table_id, column_id, contains_null, min_value, max_value)
			VALUES ($1, $2, $3, $4, $5)`, table, c.ID, nulls || c.Nulls > 0, merged.Min, merged.Max); err != nil {
			return err
		}
	}
	return nil
}
