package projections

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Counted is a numbered list, newest row first, whose rows the database counts as they are made and change (see
// 00014_lists.sql). So neither its length nor the way to one of its pages takes longer the more rows it has.
type Counted[T any] struct {
	Table *Table[T] // whose keys are created_sequence and created_ordinal
	// Names are what its rows are counted under: each row under one of them.
	Names []string
	// Parts confine to the rows of the list, those of each part in the order of an index.
	Parts []func(w *Where)
}

// counted finds between which records the rows of a page lie. $1 are the names, $2 how many rows come before the page, $3 how
// many it may have. A chapter holds the rows of 65536 records, a block those of 512 in it; before is how many rows come before
// it. extent says that the page's rows were made from since on and before until, and skip how many others at first. So what
// is read are the rows of as many blocks as the page is spread over, whatever comes before it.
const counted = `WITH chapters AS (
		SELECT bucket, sum(n) AS n, sum(sum(n)) OVER (ORDER BY bucket DESC) - sum(n) AS before
		FROM list_counts WHERE list = ANY($1) AND width = 65536 GROUP BY bucket
	), ends AS (
		SELECT $2::bigint AS first, LEAST($2::bigint + $3::bigint, (SELECT sum(n) FROM chapters)) - 1 AS last
	), chapter AS (
		SELECT c.bucket, c.before FROM ends e, chapters c WHERE c.before <= e.first AND e.first < c.before + c.n OR c.before <= e.last AND e.last < c.before + c.n
	), block AS (
		SELECT l.bucket, sum(l.n) AS n, c.before + sum(sum(l.n)) OVER (PARTITION BY c.bucket ORDER BY l.bucket DESC) - sum(l.n) AS before
		FROM chapter c, LATERAL (SELECT * FROM list_counts l
			WHERE l.list = ANY($1) AND l.width = 512 AND l.bucket BETWEEN c.bucket * 128 AND c.bucket * 128 + 127 OFFSET 0) l
		GROUP BY c.bucket, c.before, l.bucket
	), extent AS (
		SELECT max((b.bucket + 1) * 512) FILTER (WHERE b.before <= e.first AND e.first < b.before + b.n) AS until,
			max(e.first - b.before) FILTER (WHERE b.before <= e.first AND e.first < b.before + b.n)::bigint AS skip,
			max(b.bucket * 512) FILTER (WHERE b.before <= e.last AND e.last < b.before + b.n) AS since
		FROM ends e, block b
	) `

// Numbered returns the rows after so many others, at most size, and how many rows the list has in all.
func (l Counted[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	if len(l.Parts) == 0 { // no rows could be in it
		asOf, err = Read(ctx, db, l.Table.Journal)
		return []T{}, 0, asOf, err
	}
	w := Where{args: []any{l.Names, int64(offset), int64(size)}}
	order := " ORDER BY created_sequence DESC, created_ordinal DESC "
	parts := make([]string, len(l.Parts))
	for i, confine := range l.Parts {
		w.conditions = nil
		confine(&w)
		w.And("created_sequence < (SELECT until FROM extent) AND created_sequence >= (SELECT since FROM extent)")
		parts[i] = "SELECT * FROM " + l.Table.Name + w.sql()
	}
	sql := counted + "SELECT " + l.Table.selected() + " FROM (" + strings.Join(parts, " UNION ALL ") + ") " + l.Table.Name + order +
		"LIMIT $3 OFFSET (SELECT skip FROM extent)"
	list := List[T]{Table: l.Table}
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, Statement{sql, w.args, func(r pgx.Rows) error { return list.collect(r, &rows) }},
		Statement{"SELECT COALESCE(sum(n), 0)::bigint FROM list_counts WHERE list = ANY($1) AND width = 65536", []any{l.Names}, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	return Paged[T]{Rows: rows}.Values(), total, asOf, err
}
