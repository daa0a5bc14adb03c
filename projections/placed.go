package projections

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Placed is a numbered list of rows that the database numbers from 1 for each owner, as the rows are created (see
// place_document in 00034_owners.sql). So the cost of a page does not grow with the number of rows.
type Placed[T any] struct {
	Table *Table[T]
	// Where must select all rows of one owner or no rows.
	Where       Where
	OldestFirst bool // instead of newest first
}

// Numbered skips offset rows and returns up to size of the following ones, and the total number of rows.
func (l Placed[T]) Numbered(ctx context.Context, db DB, size, offset int) (out []T, total int, asOf int64, err error) {
	last := "COALESCE((SELECT place FROM " + l.Table.Name + l.Where.sql() + " ORDER BY place DESC LIMIT 1), 0)"
	w := l.Where.clone()
	order := " ORDER BY place DESC"
	if l.OldestFirst {
		w.And("place > ?::bigint", int64(offset))
		order = " ORDER BY place"
	} else {
		w.And("place <= "+last+" - ?::bigint", int64(offset))
	}
	w.args = append(w.args, size)
	sql := "SELECT " + l.Table.selected() + " FROM " + l.Table.Name + w.sql() + order + " LIMIT $" + strconv.Itoa(len(w.args))
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, Statement{sql, w.args, func(r pgx.Rows) error { return l.Table.collect(r, &rows) }},
		Statement{"SELECT " + last, l.Where.args, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	return Paged[T]{Rows: rows}.Values(), total, asOf, err
}
