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
		return "COPY " + t.Name + " (" + list(t.defined(), (*column.Definition).Quoted) + ") FROM STDIN (FORMAT binary)"
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
	sql, sent := update(t.Name, t.Index, t.defined(), names)
	b.Change(len(rows), sql, values(rows, t.Columns, sent)...)
}

// update returns the statement of Update and the columns that it has parameters for, by their index.
func update(table, index string, columns []*column.Definition, names []string) (sql string, sent []int) {
	var set, found []string
	for i, c := range columns {
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
		sent = append(sent, i)
	}
	if index != "" {
		found = append(found, "t."+index)
	}
	return "UPDATE " + table + " t SET " + strings.Join(set, ", ") + unnest(columns, sent) + " WHERE " + strings.Join(found, " AND "), sent
}

// Upsert adds a statement to a batch that inserts rows, or updates the changeable columns of the row with the same key.
// If names are given, only these columns and the keys are written.
func (t *Table[T]) Upsert(b *Batch, rows []Row[T], names ...string) {
	if len(rows) == 0 {
		return
	}
	sql, sent := upsert(t.Name, t.defined(), names)
	b.Queue(sql, values(rows, t.Columns, sent)...)
}

// upsert returns the statement of Upsert and the columns that it has parameters for, by their index.
func upsert(table string, columns []*column.Definition, names []string) (sql string, sent []int) {
	var keys, set, quoted, expressions []string
	for i, c := range columns {
		if c.IsKey() {
			keys = append(keys, c.Quoted())
		} else if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		} else if !c.IsFixed() {
			set = append(set, c.Quoted()+" = "+c.Merge())
		}
		sent, quoted, expressions = append(sent, i), append(quoted, c.Quoted()), append(expressions, c.Value())
	}
	return "INSERT INTO " + table + " AS t (" + strings.Join(quoted, ", ") + ") SELECT " + strings.Join(expressions, ", ") + unnest(columns, sent) +
		" ON CONFLICT (" + strings.Join(keys, ", ") + ") DO UPDATE SET " + strings.Join(set, ", "), sent
}

// unnest returns the clause that makes rows n from the parameters of the columns that are sent.
func unnest(columns []*column.Definition, sent []int) string {
	parameters, names := make([]string, len(sent)), make([]string, len(sent))
	for n, i := range sent {
		parameters[n], names[n] = "$"+strconv.Itoa(n+1)+"::"+columns[i].Element(), columns[i].Quoted()
	}
	return " FROM unnest(" + strings.Join(parameters, ", ") + ") AS n (" + strings.Join(names, ", ") + ")"
}

// values returns the parameters for the columns that are sent.
func values[T any](rows []T, columns []column.Column[T], sent []int) []any {
	args := make([]any, len(sent))
	for n, i := range sent {
		args[n] = columns[i].Values(rows)
	}
	return args
}

// list joins the non-empty results of say for all columns.
func list(columns []*column.Definition, say func(*column.Definition) string) string {
	names := make([]string, 0, len(columns))
	for _, c := range columns {
		if s := say(c); s != "" {
			names = append(names, s)
		}
	}
	return strings.Join(names, ", ")
}

// defined returns the definitions of the columns.
func (t *Table[T]) defined() []*column.Definition {
	all := make([]*column.Definition, len(t.Columns))
	for i := range t.Columns {
		all[i] = &t.Columns[i].Definition
	}
	return all
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
func (t *Table[T]) selected() string { return list(t.defined(), (*column.Definition).Selected) }

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
