package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Counted is a numbered list, newest row first, whose rows the database counts as they are made and change (see
// 00014_lists.sql, 00018_long_lists.sql and 00019_counts_by_group.sql). So neither its length nor the way to one of its pages takes
// longer the more rows it has.
type Counted[T any] struct {
	Table *Table[T] // whose keys are created_sequence and created_ordinal
	// Names are what its rows are counted under: each row under one of them.
	Names []string
	// Parts confine to the rows of the list, those of each part in the order of an index.
	Parts       []func(w *Where)
	OldestFirst bool
}

// onePlan has the statements of a read planned once, and not for each page. A planner that sees the arguments finds no better
// way: each part has its index, and which of its rows are read the database finds while it runs. Planning took longer than
// running, and only where a list was long: there, what a plan for all arguments is said to cost kept it from being chosen.
var onePlan = Statement{"SET LOCAL plan_cache_mode = force_generic_plan", nil, func(r pgx.Rows) error {
	r.Close()
	return r.Err()
}}

// Numbered returns the rows after so many others, at most size, and how many rows the list has in all.
func (l Counted[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	if len(l.Parts) == 0 { // no rows could be in it
		asOf, err = Read(ctx, db, l.Table.Journal)
		return []T{}, 0, asOf, err
	}
	w := Where{args: []any{l.Names, int64(size), int64(offset), l.OldestFirst}}
	parts := make([]string, len(l.Parts))
	for i, confine := range l.Parts {
		w.conditions = nil
		confine(&w)
		w.And("created_sequence < (SELECT until FROM page) AND created_sequence >= (SELECT since FROM page)")
		parts[i] = "SELECT * FROM " + l.Table.Name + w.sql()
	}
	sql := "WITH page AS MATERIALIZED (SELECT * FROM list_page($1, $2, $3, $4)) SELECT " + l.Table.selected() +
		" FROM (" + strings.Join(parts, " UNION ALL ") + ") " + l.Table.Name +
		" ORDER BY created_sequence DESC, created_ordinal DESC LIMIT (SELECT n FROM page) OFFSET (SELECT skip FROM page)"
	list := List[T]{Table: l.Table}
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, onePlan,
		Statement{sql, w.args, func(r pgx.Rows) error { return list.collect(r, &rows) }},
		Statement{"SELECT COALESCE(sum(n), 0)::bigint FROM list_counts WHERE list = ANY($1) AND width = 2097152", []any{l.Names}, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	if l.OldestFirst {
		slices.Reverse(rows)
	}
	return Paged[T]{Rows: rows}.Values(), total, asOf, err
}
