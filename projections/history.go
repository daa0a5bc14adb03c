package projections

import (
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/projections/column"
)

// History describes the table with the earlier versions of a table's rows. A version is valid in the interval
// [since, until) of sequences. The version that is valid now is the row in the table itself. The column "sequence" of
// the row is its since, so a version is written when the next one replaces it. Rows of a table with a History MUST NOT be
// deleted.
//
// The versions of a row MUST be closed in the order of their sequences, each exactly once, and before the row itself
// changes. Then the intervals of a row have no overlaps and no gaps.
type History[T any] struct {
	of       *Table[T]
	versions *Table[Version[T]]
}

// Version is a row that was valid until the record with the sequence Until.
type Version[T any] struct {
	Row[T]
	Until int64
}

// The columns of the interval.
const (
	sinceColumn    = "since"
	untilColumn    = "until"
	sequenceColumn = "sequence" // of the table
)

// NewHistory returns the history of a table. Its table has the key and the columns that change, and those named in also.
func NewHistory[T any](t *Table[T], name string, also ...string) *History[T] {
	versions := &Table[Version[T]]{Name: name, Journal: t.Journal}
	for _, c := range t.Columns {
		if c.IsFixed() && !slices.Contains(also, c.Name) {
			continue
		}
		within := column.Within(c, func(v *Row[Version[T]]) *Row[T] { return &v.Value.Row })
		if c.Name == sequenceColumn {
			within = within.Renamed(sinceColumn)
		}
		versions.Columns = append(versions.Columns, within)
	}
	versions.Columns = append(versions.Columns, column.Int(untilColumn, func(v *Row[Version[T]]) *int64 { return &v.Value.Until }))
	return &History[T]{t, versions}
}

// Name returns the name of the table with the versions.
func (h *History[T]) Name() string { return h.versions.Name }

// Table returns the table of the current rows.
func (h *History[T]) Table() *Table[T] { return h.of }

// Versions returns the table with the versions.
func (h *History[T]) Versions() *Table[Version[T]] { return h.versions }

// Insert adds versions of rows that no row of the table is needed for, with COPY.
func (h *History[T]) Insert(b *Batch, versions []Version[T]) {
	if len(versions) == 0 {
		return
	}
	to := h.versions.Copy(b)
	for i := range versions {
		to.Add(&Row[Version[T]]{Value: versions[i]})
	}
}

// Close adds a statement that writes the versions in the table as they are before the batch changes them. Only the keys
// and Until of the arguments are used. It MUST come before the statement that changes the rows. A key that has no row yet
// has no version. If all is set, the batch fails if a row is missing.
func (h *History[T]) Close(b *Batch, replaced []Version[T], all bool) {
	h.insert(b, replaced, all, func(c *column.Definition) (sent bool, expression string) {
		switch {
		case c.Name == untilColumn:
			return true, "n." + c.Quoted()
		case c.Name == sinceColumn:
			return false, `t."` + sequenceColumn + `"`
		}
		return c.IsKey(), "t." + c.Quoted()
	})
}

// CloseKnown adds a statement that writes later versions of rows that are in the table before the batch. Columns that
// keep their first value get that of the row. All rows must exist.
func (h *History[T]) CloseKnown(b *Batch, versions []Version[T]) {
	h.insert(b, versions, true, func(c *column.Definition) (sent bool, expression string) {
		if c.IsFixed() {
			return false, "t." + c.Quoted()
		}
		return true, c.Assigned()
	})
}

// insert adds a statement that inserts versions, joined with the rows of the table. say says for each column whether
// its values are sent, and its expression in terms of the row t and the sent row n.
func (h *History[T]) insert(b *Batch, versions []Version[T], all bool, say func(*column.Definition) (bool, string)) {
	if len(versions) == 0 {
		return
	}
	rows := make([]Row[Version[T]], len(versions))
	for i := range versions {
		rows[i].Value = versions[i]
	}
	expected := -1
	if all {
		expected = len(versions)
	}
	sql, sent := insertJoined(h.versions.Name, h.of.Name, h.versions.defined(), say)
	b.Change(expected, sql, values(rows, h.versions.Columns, sent)...)
}

// insertJoined returns the statement of insert and the columns that it has parameters for, by their index.
func insertJoined(into, of string, columns []*column.Definition, say func(*column.Definition) (bool, string)) (sql string, sent []int) {
	var keys, expressions []string
	for i, c := range columns {
		send, expression := say(c)
		if send {
			sent = append(sent, i)
		}
		if c.IsKey() {
			keys = append(keys, "t."+c.Quoted()+" = n."+c.Quoted())
		}
		expressions = append(expressions, expression)
	}
	return "INSERT INTO " + into + " (" + list(columns, (*column.Definition).Quoted) + ") SELECT " +
		strings.Join(expressions, ", ") + unnest(columns, sent) + " JOIN " + of + " t ON " + strings.Join(keys, " AND "), sent
}

// AsOf limits a list to the rows as of a sequence. The list's conditions should find few rows in the table, because the
// version of each is looked up. If only is given, it adds conditions that find the versions instead; they refer to a
// version as h. Conditions may also use the columns named in today as they are now: "state" is then today_state.
func (h *History[T]) AsOf(l *List[T], sequence int64, only func(and func(condition string, args ...any)), today ...string) {
	w := &l.Where
	now, then, keys := h.columns()
	for _, name := range today {
		column := ", t." + name + " AS today_" + name
		now, then = now+column, then+column
	}
	past := "SELECT " + then + " FROM "
	if only == nil { // versions of a row end in their order, so the first one that ends later is the only candidate
		past += h.of.Name + " t JOIN LATERAL (SELECT * FROM " + h.versions.Name + " h WHERE " + keys +
			w.bind(" AND h."+untilColumn+" > ? ORDER BY h."+untilColumn+" LIMIT 1) h ON h."+sinceColumn+" <= ? WHERE t."+sequenceColumn+" > ?",
				sequence, sequence, sequence)
	} else {
		past += h.versions.Name + " h JOIN " + h.of.Name + " t ON " + keys +
			w.bind(" WHERE h."+sinceColumn+" <= ? AND h."+untilColumn+" > ?", sequence, sequence)
		only(func(condition string, args ...any) { past += " AND " + w.bind(condition, args...) })
	}
	l.from = "(SELECT " + now + " FROM " + h.of.Name + " t WHERE " + w.bind("t."+sequenceColumn+" <= ?", sequence) + " UNION ALL " + past + ") "
	l.eachBroker = false
}

// columns returns the select lists for the current row t of the table and for its version h, and the condition that t and h have the same key.
func (h *History[T]) columns() (now, then, keys string) {
	var rows, versions, same []string
	for i := range h.of.Columns {
		c := &h.of.Columns[i]
		row := "t." + c.Quoted()
		version := row
		switch {
		case c.IsKey():
			same = append(same, row+" = h."+c.Quoted())
		case c.Name == sequenceColumn:
			version = "h." + sinceColumn + ` AS "` + sequenceColumn + `"`
		case slices.ContainsFunc(h.versions.Columns, func(v column.Column[Row[Version[T]]]) bool { return v.Name == c.Name }):
			version = "h." + c.Quoted()
		}
		rows, versions = append(rows, row), append(versions, version)
	}
	return strings.Join(rows, ", "), strings.Join(versions, ", "), strings.Join(same, " AND ")
}
