package projections

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Counted is a numbered list, newest row first. Triggers in the database count its rows when rows are inserted and
// updated (see 00026_lists.sql). So the cost of the total and of each page does not grow with the number of rows.
type Counted[T any] struct {
	Table *Table[T] // its keys must be created_sequence and created_ordinal
	// Names are the groups under which its rows are counted. Each row belongs to exactly one of them.
	Names []string
	// Parts are conditions that together select the rows of the list. Each part must be readable in the order of an
	// index.
	Parts       []func(w *Where)
	OldestFirst bool
}

// onePlan makes the server use one generic plan for a query instead of planning each page. Knowing the arguments does
// not improve the plan: each part has its index, and the executor determines which rows are read. Planning took longer
// than execution, and happened only for long lists: there, the estimated cost of the generic plan kept the server from
// choosing it.
var onePlan = Statement{"SET LOCAL plan_cache_mode = force_generic_plan", nil, func(r pgx.Rows) error {
	r.Close()
	return r.Err()
}}

// Numbered skips offset rows and returns up to size of the following ones, and the total number of rows.
func (l Counted[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	if len(l.Parts) == 0 { // the list is empty
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
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, onePlan,
		Statement{sql, w.args, func(r pgx.Rows) error { return l.Table.collect(r, &rows) }},
		Statement{"SELECT COALESCE(sum(n), 0)::bigint FROM list_counts WHERE list = ANY($1) AND width = 2097152", []any{l.Names}, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	if l.OldestFirst {
		slices.Reverse(rows)
	}
	return Paged[T]{Rows: rows}.Values(), total, asOf, err
}
