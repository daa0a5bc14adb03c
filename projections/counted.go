package projections

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Counted is a numbered list, newest row first, whose rows the database counts as they are made and change (see
// 00014_lists.sql). So neither its length nor the way to one of its pages takes longer the more rows it has.
//
// The rows are those of its parts, of which each is in the order of an index of its own.
type Counted[T any] struct {
	Table *Table[T] // whose keys are created_sequence and created_ordinal
	Parts []Part
}

// Part is the rows that are counted under a name.
type Part struct {
	Name    string
	Confine func(w *Where) // to these rows
}

// counted are the pages' places: chapter is the 65536 records that made the page's first row, place the 1024 in them, skip
// how many rows of these come before the page. $1 are the parts' names, $2 how many rows come before the page in all.
const counted = `WITH chapter AS (
		SELECT bucket, before FROM (
			SELECT bucket, sum(n) AS n, sum(sum(n)) OVER (ORDER BY bucket DESC) - sum(n) AS before
			FROM list_counts WHERE list = ANY($1) AND width = 65536 GROUP BY bucket
		) c WHERE before <= $2 AND $2 < before + n
	), place AS (
		SELECT (bucket + 1) * 1024 AS until, ($2 - before)::bigint AS skip FROM (
			SELECT l.bucket, sum(l.n) AS n, min(c.before) + sum(sum(l.n)) OVER (ORDER BY l.bucket DESC) - sum(l.n) AS before
			FROM chapter c, LATERAL (SELECT * FROM list_counts l
				WHERE l.list = ANY($1) AND l.width = 1024 AND l.bucket BETWEEN c.bucket * 64 AND c.bucket * 64 + 63 OFFSET 0) l
			GROUP BY l.bucket
		) b WHERE before <= $2 AND $2 < before + n
	) `

// Numbered returns the rows after so many others, at most size, and how many rows the list has in all.
func (l Counted[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	names := make([]string, len(l.Parts))
	w := Where{args: []any{names, int64(offset), int64(size)}}
	order := " ORDER BY created_sequence DESC, created_ordinal DESC "
	parts := make([]string, len(l.Parts))
	for i, part := range l.Parts {
		names[i], w.conditions = part.Name, nil
		part.Confine(&w)
		w.And("created_sequence < (SELECT until FROM place)")
		parts[i] = "(SELECT * FROM " + l.Table.Name + w.sql() + order + "LIMIT (SELECT skip + $3 FROM place))"
	}
	sql := counted + "SELECT " + l.Table.selected() + " FROM (" + strings.Join(parts, " UNION ALL ") + ") " + l.Table.Name + order +
		"LIMIT $3 OFFSET (SELECT skip FROM place)"
	list := List[T]{Table: l.Table}
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, Statement{sql, w.args, func(r pgx.Rows) error { return list.collect(r, &rows) }},
		Statement{"SELECT COALESCE(sum(n), 0)::bigint FROM list_counts WHERE list = ANY($1) AND width = 65536", []any{names}, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	if err != nil {
		return nil, 0, asOf, fmt.Errorf("a page of %s: %w", l.Table.Name, err)
	}
	return Paged[T]{Rows: rows}.Values(), total, asOf, nil
}
