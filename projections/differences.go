package projections

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Differences compares every column of every table in two schemas: live, and made, which was filled from the log. It
// reads tables, columns and keys from the catalog, so it covers new migrations without changes. Each difference names
// the table, the row by its key, and the column. At most `most` differences are reported for each table. compared,
// unless it is nil, is called after each table. from has a sequence for tables of history: versions that ended there or
// before are left out. See HistoryFrom.
//
// Each transaction must have its own snapshot (REPEATABLE READ). Both snapshots must be at the same positions of all
// journals. The server first compares digests of the tables. Only tables with different digests are read.
//
// An offset is only a hint where to look for a record, and a copied log may have other offsets than the original. So
// offsets that differ over a run of consecutive records are attributed to the original log and not reported.
func Differences(ctx context.Context, live, made pgx.Tx, from map[string]int64, most int, compared func(table string)) ([]string, error) {
	c := &comparison{ctx: ctx, live: live, made: made, from: from, most: most}
	left, err := tables(ctx, live)
	if err != nil {
		return nil, err
	}
	right, err := tables(ctx, made)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(left, right)
	slices.SortFunc(all, func(a, b string) int { // records first: they show whether the log was copied
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
	from       map[string]int64
	most       int
	found      []string
	moved      []offsetRun // runs of differing offsets in the records table: their rows come from the original of a copied log
}

func (c *comparison) tell(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// layout is the catalog's description of a table.
type layout struct {
	name    string
	where   string // the condition of the rows, as SQL, or empty
	columns []string
	key     []string // the primary key, or all columns if there is none
	keyed   bool
	whole   map[string]bool // columns of an integer type
}

// table compares one table that exists in both schemas.
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
	if from, versions := c.from[name]; versions {
		both.where = fmt.Sprintf(" WHERE t.%s > %d", untilColumn, from)
	}
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
	rows, err := tx.Query(ctx, `SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute
		WHERE attrelid = format('%I.%I', current_schema(), $1::text)::regclass AND attnum > 0 AND NOT attisdropped ORDER BY 1`, name)
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

func (l *layout) from() string { return " FROM " + pgx.Identifier{l.name}.Sanitize() + " t" + l.where }

// texts returns the select list of a comparison: columns as text, which keeps the decimals of numerics.
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

// digest returns the number of rows and a digest of the columns, as Digests does.
func (l *layout) digest(ctx context.Context, tx pgx.Tx) (d Digest, err error) {
	err = tx.QueryRow(ctx, digestOf("ROW("+texts(l.columns)+")::text", l.from())).Scan(&d.Rows, &d.Sum)
	return d, err
}

// query selects the rows in the order of their keys: integers by value, other types by the bytes of their text,
// independent of the collation.
func (l *layout) query() string {
	order := make([]string, len(l.key))
	for i, column := range l.key {
		order[i] = "t." + pgx.Identifier{column}.Sanitize() // qualified, so that it does not refer to the selected text of the same name
		if !l.whole[column] {
			order[i] += `::text COLLATE "C"`
		}
		order[i] += " NULLS FIRST"
	}
	return "SELECT " + texts(l.columns) + l.from() + " ORDER BY " + strings.Join(order, ", ")
}
