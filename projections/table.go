package projections

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/column"
)

// Table describes a table of a projection: its name and its columns, each described once. The code that writes rows and
// the code that reads them derive everything from this description.
type Table[T any] struct {
	Name    string
	Journal string // the journal with the checkpoint that the rows are as of
	// Keys are the columns of a row's key in paged lists: the sequence and, unless it is always 0, the ordinal.
	Keys []string
	// Index is the condition of the partial index by which Update finds rows. It is empty if the index covers all rows.
	Index   string
	Columns []column.Column[Row[T]]
	// Loaded completes a row after it was read. It may be nil.
	Loaded func(row *Row[T]) error
}

// Adder adds new rows to a batch.
type Adder[T any] struct {
	table *Table[T]
	to    *column.Rows
}

// Copy returns an Adder that adds new rows of the table to a batch, with COPY.
func (t *Table[T]) Copy(b *Batch) Adder[T] {
	return Adder[T]{t, b.rows(t.Name, func() string {
		return "COPY " + t.Name + " (" + list(t.Columns, (*column.Column[Row[T]]).Quoted) + ") FROM STDIN (FORMAT binary)"
	})}
}

// Add adds a row.
func (a Adder[T]) Add(row *Row[T]) {
	a.to.Begin(len(a.table.Columns))
	for i := range a.table.Columns {
		a.table.Columns[i].Encode(a.to, row)
	}
}

// Update adds a statement to a batch that updates the changeable columns of existing rows, found by their keys. The
// batch fails if a row is missing. If names are given, only these columns are updated.
func (t *Table[T]) Update(b *Batch, rows []Row[T], names ...string) {
	if len(rows) == 0 {
		return
	}
	var sent []column.Column[Row[T]]
	var set, found []string
	for _, c := range t.Columns {
		switch {
		case c.IsFixed():
			continue
		case c.IsKey():
			found = append(found, "t."+c.Quoted()+" = n."+c.Quoted())
		case len(names) > 0 && !slices.Contains(names, c.Name):
			continue
		default:
			set = append(set, c.Quoted()+" = "+c.Assigned())
		}
		sent = append(sent, c)
	}
	if t.Index != "" {
		found = append(found, "t."+t.Index)
	}
	b.Change(len(rows), "UPDATE "+t.Name+" t SET "+strings.Join(set, ", ")+unnest(sent)+" WHERE "+strings.Join(found, " AND "),
		values(rows, sent)...)
}

// Upsert adds a statement to a batch that inserts rows, or updates the changeable columns of the row with the same key.
// If names are given, only these columns and the keys are written.
func (t *Table[T]) Upsert(b *Batch, rows []Row[T], names ...string) {
	if len(rows) == 0 {
		return
	}
	var sent []column.Column[Row[T]]
	var keys, set []string
	for _, c := range t.Columns {
		if c.IsKey() {
			keys = append(keys, c.Quoted())
		} else if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		} else if !c.IsFixed() {
			set = append(set, c.Quoted()+" = "+c.Merge())
		}
		sent = append(sent, c)
	}
	b.Queue("INSERT INTO "+t.Name+" AS t ("+list(sent, (*column.Column[Row[T]]).Quoted)+") SELECT "+
		list(sent, (*column.Column[Row[T]]).Value)+unnest(sent)+
		" ON CONFLICT ("+strings.Join(keys, ", ")+") DO UPDATE SET "+strings.Join(set, ", "), values(rows, sent)...)
}

// unnest returns the clause that makes rows n from the columns' parameters.
func unnest[T any](columns []column.Column[T]) string {
	parameters := make([]string, len(columns))
	for i := range columns {
		parameters[i] = "$" + strconv.Itoa(i+1) + "::" + columns[i].Element()
	}
	return " FROM unnest(" + strings.Join(parameters, ", ") + ") AS n (" + list(columns, (*column.Column[T]).Quoted) + ")"
}

func values[T any](rows []T, columns []column.Column[T]) []any {
	args := make([]any, len(columns))
	for i := range columns {
		args[i] = columns[i].Values(rows)
	}
	return args
}

// list joins the non-empty results of say for all columns.
func list[T any](columns []column.Column[T], say func(*column.Column[T]) string) string {
	names := make([]string, 0, len(columns))
	for i := range columns {
		if s := say(&columns[i]); s != "" {
			names = append(names, s)
		}
	}
	return strings.Join(names, ", ")
}

// All returns all rows of the table, ordered by Keys if the table has any, and the sequence that they are as of.
func (t *Table[T]) All(ctx context.Context, db DB) ([]T, int64, error) {
	return List[T]{Table: t, Order: t.OldestFirst()}.All(ctx, db)
}

// Each calls do for every row of the table, in no particular order, and returns the sequence that the rows are as of. It
// holds only one row in memory.
func (t *Table[T]) Each(ctx context.Context, db DB, do func(row *T)) (asOf int64, err error) {
	return Read(ctx, db, t.Journal, Statement{SQL: "SELECT " + t.selected() + " FROM " + t.Name, Collect: func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			r, err := t.scan(rows)
			if err != nil {
				return err
			}
			do(&r.Value)
		}
		return rows.Err()
	}})
}

// selected returns the select list of a query, which scan reads.
func (t *Table[T]) selected() string { return list(t.Columns, (*column.Column[Row[T]]).Selected) }

func (t *Table[T]) scan(row pgx.CollectableRow) (r Row[T], err error) {
	into := make([]any, 0, len(t.Columns))
	for i := range t.Columns {
		if c := &t.Columns[i]; c.IsRead() {
			into = append(into, c.Into(&r))
		}
	}
	if err = row.Scan(into...); err == nil && t.Loaded != nil {
		err = t.Loaded(&r)
	}
	if err != nil {
		err = fmt.Errorf("a row of %s: %w", t.Name, err)
	}
	return r, err
}
