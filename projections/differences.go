package projections

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Differences holds every column of every table of one schema against another: that of live against that of made, which
// was filled from the log. It finds tables, columns and keys in the catalog, so whatever a migration adds is compared
// without being listed anywhere. Each difference names the table, the row by its key, and the column. At most `most`
// are told of each table. compared, unless it is nil, is called after each table.
//
// Both transactions must have snapshots of their own (REPEATABLE READ), as of the same positions of all journals. Equal
// tables are found equal by their digests, in the server; only rows of the others are read.
//
// An offset is a hint where to look for a record, and a log that was copied may have other offsets than the one it was
// copied from. So offsets that differ over a run of records are taken for those of the old place, and not told.
func Differences(ctx context.Context, live, made pgx.Tx, most int, compared func(table string)) ([]string, error) {
	c := &comparison{ctx: ctx, live: live, made: made, most: most}
	left, err := tables(ctx, live)
	if err != nil {
		return nil, err
	}
	right, err := tables(ctx, made)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(left, right)
	slices.SortFunc(all, func(a, b string) int { // records first: they tell whether the log was moved
		return cmp.Or(-compareBool(a == recordsTable, b == recordsTable), strings.Compare(a, b))
	})
	for _, table := range slices.Compact(all) {
		switch {
		case !slices.Contains(right, table):
			c.tell("the table %s is one that no migration makes", table)
		case !slices.Contains(left, table):
			c.tell("the table %s is missing", table)
		default:
			if err := c.table(table); err != nil {
				return nil, fmt.Errorf("projections: comparing the table %s: %w", table, err)
			}
		}
		if compared != nil {
			compared(table)
		}
	}
	return c.found, nil
}

// recordsTable is the table with a row for each record of every journal.
const recordsTable = "records"

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// comparison is one run of Differences.
type comparison struct {
	ctx        context.Context
	live, made pgx.Tx
	most       int
	found      []string
	moved      []offsetRun // of the table of records: the offsets there are those of another place of the log
}

func (c *comparison) tell(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// layout is what the catalog says of a table.
type layout struct {
	name    string
	columns []string
	key     []string // those of the primary key, or all if there is none
	keyed   bool
	whole   map[string]bool // columns of whole numbers
}

// table compares one table that is in both schemas.
func (c *comparison) table(name string) error {
	left, err := layoutOf(c.ctx, c.live, name)
	if err != nil {
		return err
	}
	right, err := layoutOf(c.ctx, c.made, name)
	if err != nil {
		return err
	}
	for _, column := range left.columns {
		if !slices.Contains(right.columns, column) {
			c.tell("%s has the column %s, which no migration makes", name, column)
		}
	}
	for _, column := range right.columns {
		if !slices.Contains(left.columns, column) {
			c.tell("%s has no column %s", name, column)
		}
	}
	both := layout{name: name, whole: right.whole, columns: slices.DeleteFunc(right.columns, func(column string) bool { return !slices.Contains(left.columns, column) })}
	if both.key, both.keyed = right.key, right.keyed; !right.keyed || slices.ContainsFunc(right.key, func(column string) bool { return !slices.Contains(both.columns, column) }) {
		both.key, both.keyed = both.columns, false
	}
	a, err := both.digest(c.ctx, c.live)
	if err != nil {
		return err
	}
	b, err := both.digest(c.ctx, c.made)
	if err != nil || a == b {
		return err
	}
	return c.rows(&both)
}

func layoutOf(ctx context.Context, tx pgx.Tx, name string) (l layout, err error) {
	l.name, l.whole = name, make(map[string]bool)
	rows, err := tx.Query(ctx, `SELECT column_name::text, data_type::text FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 ORDER BY 1`, name)
	if err != nil {
		return l, err
	}
	var column, kind string
	if _, err := pgx.ForEachRow(rows, []any{&column, &kind}, func() error {
		l.columns = append(l.columns, column)
		l.whole[column] = kind == "bigint" || kind == "integer" || kind == "smallint"
		return nil
	}); err != nil {
		return l, err
	}
	rows, err = tx.Query(ctx, `SELECT a.attname::text
		FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (number, place), pg_attribute a
		WHERE i.indrelid = format('%I.%I', current_schema(), $1::text)::regclass AND i.indisprimary
			AND a.attrelid = i.indrelid AND a.attnum = k.number
		ORDER BY k.place`, name)
	if err == nil {
		l.key, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	l.keyed = len(l.key) > 0
	return l, err
}

func (l *layout) from() string { return " FROM " + pgx.Identifier{l.name}.Sanitize() }

// texts returns the columns as they are selected for a comparison: as text, with the decimals of numerics.
func texts(columns []string) string {
	var b strings.Builder
	for i, column := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(pgx.Identifier{column}.Sanitize() + "::text")
	}
	return b.String()
}

// digest is that of Digests, of the columns in the order of their names.
func (l *layout) digest(ctx context.Context, tx pgx.Tx) (d Digest, err error) {
	err = tx.QueryRow(ctx, digestOf("ROW("+texts(l.columns)+")::text")+l.from()).Scan(&d.Rows, &d.Sum)
	return d, err
}

// query selects the rows in the order of their keys: whole numbers by value, all else by the bytes of its text, whatever
// the collation.
func (l *layout) query() string {
	order := make([]string, len(l.key))
	for i, column := range l.key {
		order[i] = "t." + pgx.Identifier{column}.Sanitize() // and not what is selected under the same name
		if !l.whole[column] {
			order[i] += `::text COLLATE "C"`
		}
		order[i] += " NULLS FIRST"
	}
	return "SELECT " + texts(l.columns) + l.from() + " t ORDER BY " + strings.Join(order, ", ")
}
