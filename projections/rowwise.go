package projections

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// row contains the columns of a row as text, nil for NULL.
type row []*string

// rowReader reads the rows of a table in the order of their keys.
type rowReader struct {
	rows pgx.Rows
	next row // nil after the last
}

func (l *layout) read(ctx context.Context, tx pgx.Tx) (*rowReader, error) {
	rows, err := tx.Query(ctx, l.query())
	if err != nil {
		return nil, err
	}
	r := &rowReader{rows: rows}
	return r, r.advance()
}

func (r *rowReader) advance() error {
	if !r.rows.Next() {
		r.next = nil
		return r.rows.Err()
	}
	r.next = make(row, len(r.rows.FieldDescriptions()))
	into := make([]any, len(r.next))
	for i := range r.next {
		into[i] = &r.next[i]
	}
	return r.rows.Scan(into...)
}

// tableComparison is the comparison of one table. extra and missing are rows without a counterpart.
type tableComparison struct {
	*comparison
	*layout
	reported       int
	extra, missing []row
	offsets        []offsetRun
}

// rows compares a table row by row.
func (c *comparison) rows(l *layout) error {
	live, err := l.read(c.ctx, c.live)
	if err != nil {
		return err
	}
	defer live.rows.Close()
	made, err := l.read(c.ctx, c.made)
	if err != nil {
		return err
	}
	defer made.rows.Close()
	t := &tableComparison{comparison: c, layout: l}
	for (live.next != nil || made.next != nil) && t.reported+len(t.extra)+len(t.missing) < c.most {
		var err error
		switch order := l.compare(live.next, made.next); {
		case order == 0:
			t.same(live.next, made.next)
			err = errors.Join(live.advance(), made.advance())
		case order < 0:
			t.extra = append(t.extra, live.next)
			err = live.advance()
		default:
			t.missing = append(t.missing, made.next)
			err = made.advance()
		}
		if err != nil {
			return err
		}
	}
	t.pair()
	for _, r := range t.extra {
		t.tell("%s (%s): a row too many", t.name, t.keyOf(r))
	}
	for _, r := range t.missing {
		t.tell("%s (%s): the row is missing", t.name, t.keyOf(r))
	}
	t.judgeOffsets()
	return nil
}

// compare compares the keys of two rows. A nil row sorts last.
func (l *layout) compare(a, b row) int {
	if a == nil || b == nil {
		return compareBool(a == nil, b == nil)
	}
	for _, column := range l.key {
		i := l.indexOf(column)
		order := compareTexts(a[i], b[i])
		if l.whole[column] && a[i] != nil && b[i] != nil {
			order = compareWhole(*a[i], *b[i])
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

func (l *layout) indexOf(column string) int { return slices.Index(l.columns, column) }

// compareTexts compares two texts. NULL sorts first.
func compareTexts(a, b *string) int {
	if a == nil || b == nil {
		return compareBool(a != nil, b != nil)
	}
	return strings.Compare(*a, *b)
}

// compareWhole compares two integers.
func compareWhole(a, b string) int {
	x, _ := strconv.ParseInt(a, 10, 64) // the columns have an integer type
	y, _ := strconv.ParseInt(b, 10, 64)
	return cmp.Compare(x, y)
}

// same compares two rows with the same key, column by column.
func (t *tableComparison) same(live, made row) {
	for i, column := range t.columns {
		if compareTexts(live[i], made[i]) == 0 {
			continue
		}
		message := fmt.Sprintf("%s (%s): %s is %s, the log says %s", t.name, t.keyOf(made), column, show(live[i]), show(made[i]))
		if !t.offset(column, made, message) {
			t.tell("%s", message)
			t.reported++
		}
	}
}

// pair matches extra rows with missing rows in a table without a primary key: a row is matched with the row that agrees
// in the most columns, if these are more than half.
func (t *tableComparison) pair() {
	if t.keyed {
		return
	}
	t.extra = slices.DeleteFunc(t.extra, func(live row) bool {
		best, most := -1, len(t.columns)/2
		for n, made := range t.missing {
			equal := 0
			for i := range t.columns {
				if compareTexts(live[i], made[i]) == 0 {
					equal++
				}
			}
			if equal > most {
				best, most = n, equal
			}
		}
		if best < 0 {
			return false
		}
		t.same(live, t.missing[best])
		t.missing = slices.Delete(t.missing, best, best+1)
		return true
	})
}

// keyOf describes a row by its key or, without a primary key, by all columns.
func (l *layout) keyOf(r row) string {
	parts := make([]string, len(l.key))
	for n, column := range l.key {
		parts[n] = column + " " + show(r[l.indexOf(column)])
	}
	return strings.Join(parts, ", ")
}

// show formats a value for a message.
func show(text *string) string {
	const longest = 200
	switch {
	case text == nil:
		return "NULL"
	case *text == "":
		return `""`
	case len(*text) > longest:
		return strings.ToValidUTF8((*text)[:longest], "") + "…"
	}
	return *text
}

// offsetRun is a run of consecutive records of a journal with differing offsets. Both ends are inclusive.
type offsetRun struct {
	journal     string
	first, last int64
	message     string // the message about the first record
}

// offsetColumn contains the offset of a record in the log. Several tables have it.
const offsetColumn = "log_offset"

// offset reports whether a difference concerns the offset of a record. If so, it is kept for judgeOffsets.
func (t *tableComparison) offset(column string, r row, message string) bool {
	journal, sequence := t.indexOf("journal"), t.indexOf("sequence")
	if column != offsetColumn || journal < 0 || sequence < 0 || r[journal] == nil || r[sequence] == nil {
		return false
	}
	n, err := strconv.ParseInt(*r[sequence], 10, 64)
	if err != nil {
		return false
	}
	if end := len(t.offsets) - 1; end >= 0 && t.name == recordsTable && t.offsets[end].journal == *r[journal] && t.offsets[end].last == n-1 {
		t.offsets[end].last = n
		return true
	}
	t.offsets = append(t.offsets, offsetRun{*r[journal], n, n, message})
	return true
}

// judgeOffsets reports offsets that differ for a single record. If the offsets of consecutive records differ, the rows
// were written from the original of a copied log. That explains the offsets of these records in other tables too.
func (t *tableComparison) judgeOffsets() {
	if t.name == recordsTable {
		t.moved = t.offsets
	}
	for _, d := range t.offsets {
		if !slices.ContainsFunc(t.moved, func(r offsetRun) bool {
			return r.journal == d.journal && r.first <= d.first && d.first <= r.last && r.first < r.last
		}) {
			t.tell("%s", d.message)
		}
	}
}
