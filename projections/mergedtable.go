package projections

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// mergedTable is the catalog's description of a table, and the remembered keys: those of rows that may differ.
type mergedTable struct {
	name    string
	columns []string // in the order of the migrations
	types   []string // of the columns
	key     []string // the primary key's columns
	unique  bool     // there is another unique index
	tracked bool     // triggers record its changes

	keys  string // the temporary table with the keys
	found int64  // rows in it
}

// mergedTables returns the tables of a schema that hold rows of the log, in the order of their names.
func mergedTables(ctx context.Context, db Querier, schema string) ([]*mergedTable, error) {
	rows, err := db.Query(ctx, `SELECT c.relname::text,
			array_agg(a.attname::text ORDER BY a.attnum), array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum),
			COALESCE((SELECT array_agg(k.attname::text ORDER BY array_position(i.indkey::smallint[], k.attnum))
				FROM pg_index i JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = ANY (i.indkey)
				WHERE i.indrelid = c.oid AND i.indisprimary), '{}'),
			EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND NOT i.indisprimary),
			(SELECT count(*) = 3 FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid AND p.pronamespace = c.relnamespace
				WHERE g.tgrelid = c.oid AND p.proname = 'record_changes' AND g.tgenabled IN ('A', 'O'))
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
			AND c.relname <> ALL ($2)
		GROUP BY c.oid, c.relname, c.relnamespace ORDER BY 1`, schema, NotProjected())
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*mergedTable, error) {
		t := &mergedTable{}
		return t, row.Scan(&t.name, &t.columns, &t.types, &t.key, &t.unique, &t.tracked)
	})
	for i, t := range all {
		t.keys = fmt.Sprintf("merge_keys_%d", i)
	}
	return all, err
}

// unlike returns an error that lists the differences between the live tables and the ones that the migrations make.
func unlike(made, there []*mergedTable) error {
	var wrong []string
	for _, t := range made {
		at := slices.IndexFunc(there, func(l *mergedTable) bool { return l.name == t.name })
		if at < 0 {
			wrong = append(wrong, "there is no table "+t.name)
			continue
		}
		live := there[at]
		for i, column := range t.columns {
			switch n := slices.Index(live.columns, column); {
			case n < 0:
				wrong = append(wrong, t.name+" has no column "+column)
			case live.types[n] != t.types[i]:
				wrong = append(wrong, fmt.Sprintf("%s.%s is of type %s and not %s", t.name, column, live.types[n], t.types[i]))
			}
		}
		if len(t.key) == 0 || !slices.Equal(t.key, live.key) {
			wrong = append(wrong, fmt.Sprintf("the primary key of %s is (%s) and not (%s)",
				t.name, strings.Join(live.key, ", "), strings.Join(t.key, ", ")))
		}
		if !t.tracked || !live.tracked {
			wrong = append(wrong, "a trigger that records the changes of "+t.name+" is missing or disabled")
		}
	}
	if wrong != nil {
		return fmt.Errorf("the live tables are not those that the migrations make: %s", strings.Join(wrong, "; "))
	}
	return nil
}

func (t *mergedTable) in(schema string) string { return pgx.Identifier{schema, t.name}.Sanitize() }

// each joins an expression for each column. It replaces ? by the column's name.
func each(columns []string, expression, separator string) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		parts[i] = strings.ReplaceAll(expression, "?", pgx.Identifier{column}.Sanitize())
	}
	return strings.Join(parts, separator)
}

// differ returns a condition that is true if a live row t and a new row n differ in any byte: 1.0 and 1.00 differ. It
// calls the function of the operator *<>, because the parser would apply the operator to each column separately.
func (t *mergedTable) differ() string {
	return "record_image_ne(ROW(" + each(t.columns, "t.?", ", ") + "), ROW(" + each(t.columns, "n.?", ", ") + "))"
}

// compare remembers the keys of the rows that differ.
func (t *mergedTable) compare(ctx context.Context, m *Merge) (TableDifference, error) {
	d := TableDifference{Table: t.name}
	first := pgx.Identifier{t.key[0]}.Sanitize()
	if _, err := m.conn.Exec(ctx, "CREATE TEMPORARY TABLE "+t.keys+" AS SELECT "+each(t.key, "COALESCE(t.?, n.?) AS ?", ", ")+
		", CASE WHEN t."+first+" IS NULL THEN 'missing' WHEN n."+first+" IS NULL THEN 'extra' ELSE 'changed' END AS merge_kind"+
		" FROM "+t.in(m.target)+" t FULL JOIN "+t.in(m.schema)+" n ON "+each(t.key, "t.? = n.?", " AND ")+
		" WHERE "+t.differ()); err != nil {
		return d, err
	}
	err := m.conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE merge_kind = 'missing'), count(*) FILTER (WHERE merge_kind = 'extra'),
		count(*) FILTER (WHERE merge_kind = 'changed') FROM `+t.keys).Scan(&d.Missing, &d.Extra, &d.Changed)
	t.found = d.Missing + d.Extra + d.Changed
	return d, err
}

// remember adds the recorded keys of rows that differ to those that compare has found.
func (t *mergedTable) remember(ctx context.Context, tx executor, m *Merge) error {
	values := make([]string, len(t.key)) // the columns of the key
	for i, column := range t.key {
		values[i] = fmt.Sprintf("key[%d]::%s AS %s", i+1, t.types[slices.Index(t.columns, column)], pgx.Identifier{column}.Sanitize())
	}
	tag, err := tx.Exec(ctx, "INSERT INTO "+t.keys+" ("+each(t.key, "?", ", ")+") SELECT "+each(t.key, "k.?", ", ")+
		" FROM (SELECT DISTINCT "+strings.Join(values, ", ")+" FROM pg_temp."+recorded+" WHERE table_name = '"+t.name+"') k"+
		" LEFT JOIN "+t.in(m.target)+" t ON "+each(t.key, "t.? = k.?", " AND ")+
		" LEFT JOIN "+t.in(m.schema)+" n ON "+each(t.key, "n.? = k.?", " AND ")+" WHERE "+t.differ())
	if err != nil {
		return fmt.Errorf("the table %s: %w", t.name, err)
	}
	t.found += tag.RowsAffected()
	return nil
}

// merge makes the live rows with a remembered key equal to the new ones, and returns how many rows it wrote. A row that
// exists in one schema only is inserted or deleted.
func (t *mergedTable) merge(ctx context.Context, tx pgx.Tx, m *Merge) (written int64, err error) {
	if t.found == 0 {
		return 0, nil
	}
	live, made := t.in(m.target), t.in(m.schema)
	same := each(t.key, "t.? = n.?", " AND ")
	keys := "(SELECT DISTINCT " + each(t.key, "?", ", ") + " FROM " + t.keys + ") k"
	ofLive := " USING " + keys + " WHERE " + each(t.key, "t.? = k.?", " AND ") + " AND "
	ofMade := ", " + keys + " WHERE " + each(t.key, "n.? = k.?", " AND ") + " AND "
	// A table with another unique index has no updates: a row that differs is deleted and inserted. An update could give
	// a row the value that another row has until its own update.
	unchanged := same
	if t.unique {
		unchanged += " AND NOT (" + t.differ() + ")"
	}
	columns := each(t.columns, "?", ", ")
	rest := slices.DeleteFunc(slices.Clone(t.columns), func(column string) bool { return slices.Contains(t.key, column) })
	statements := []string{"DELETE FROM " + live + " t" + ofLive +
		"NOT EXISTS (SELECT FROM " + made + " n WHERE " + unchanged + ")"}
	if !t.unique && len(rest) > 0 {
		statements = append(statements, "UPDATE "+live+" t SET "+each(rest, "? = n.?", ", ")+
			" FROM "+made+" n"+ofMade+same+" AND "+t.differ())
	}
	statements = append(statements, "INSERT INTO "+live+" ("+columns+") SELECT "+each(t.columns, "n.?", ", ")+
		" FROM "+made+" n"+ofMade+"NOT EXISTS (SELECT FROM "+live+" t WHERE "+same+")")
	for _, statement := range statements {
		tag, err := tx.Exec(ctx, statement)
		if err != nil {
			return written, fmt.Errorf("the table %s: %w", t.name, err)
		}
		written += tag.RowsAffected()
	}
	return written, nil
}
