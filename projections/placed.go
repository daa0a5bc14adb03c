package projections

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// Placed is a numbered list of rows that the database numbers from 1 as they are made, those of each owner by themselves (see
// 00017_places.sql). So a page takes no longer the more of them there are.
type Placed[T any] struct {
	Table *Table[T]
	// Where confines the list to all rows of one owner, or to none.
	Where       Where
	OldestFirst bool // and not the newest
}

// Numbered returns the rows after so many others, at most size, and how many rows the list has in all.
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
	list := List[T]{Table: l.Table}
	var rows []Row[T]
	asOf, err = Read(ctx, db, l.Table.Journal, Statement{sql, w.args, func(r pgx.Rows) error { return list.collect(r, &rows) }},
		Statement{"SELECT " + last, l.Where.args, func(r pgx.Rows) (err error) {
			total, err = pgx.CollectExactlyOneRow(r, pgx.RowTo[int])
			return err
		}})
	return Paged[T]{Rows: rows}.Values(), total, asOf, err
}
