package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Merge makes the live rows equal to the rows of another schema of the same database, without replacing a table:
// grants, views, comments, publications and everything else that refers to a table stay. Open it, Compare, Apply, Close.
//
// Live rows are read and written all the time, so the work is split. Compare takes as long as reading every row and
// blocks nobody: it records the keys of the rows that differ. Apply stops the runners, brings the new rows to the
// position of the live ones, and writes the rows that differ: those that Compare recorded and those that have changed in
// either schema since, as long as they still differ. Rows that are equal are not touched. Apply is one transaction and
// takes no lock that a reader would wait for.
type Merge struct {
	live   *pgxpool.Pool
	schema string
	follow Follow
	conn   *pgx.Conn // its session holds the temporary tables with the keys
	target string    // the schema of the live tables
	tables []*mergedTable
	since  string // rows that a transaction older than this wrote are as Compare saw them
}

// Follow brings the new rows to the positions of the live ones. A journal whose new rows are ahead stays where it is. No
// runner can move the live rows meanwhile, so it should be quick: the caller has brought the new rows close before.
type Follow func(ctx context.Context, live map[string]Checkpoint) error

// TableDifference is what Compare found in a table that differs.
type TableDifference struct {
	Table   string `json:"table"`
	Missing int64  `json:"missing"` // rows that only the new table has
	Extra   int64  `json:"extra"`   // rows that only the live table has
	Changed int64  `json:"changed"` // rows that both have, with different columns
}

// String describes the difference in one line.
func (d TableDifference) String() string {
	return fmt.Sprintf("%s differs: %d rows are missing, %d are extra, %d have other values", d.Table, d.Missing, d.Extra, d.Changed)
}

// OpenMerge prepares to merge the rows of a schema, which OpenScratch or OpenBeside has opened, into the live ones. It
// fails if the live tables are not the ones that the migrations make, because then no row can be merged.
func OpenMerge(ctx context.Context, live *pgxpool.Pool, schema string, follow Follow) (*Merge, error) {
	m := &Merge{live: live, schema: schema, follow: follow}
	if err := m.open(ctx); err != nil {
		m.Close()
		return nil, fmt.Errorf("projections: preparing to merge the schema %s: %w", schema, err)
	}
	return m, nil
}

func (m *Merge) open(ctx context.Context) error {
	acquired, err := m.live.Acquire(ctx)
	if err != nil {
		return err
	}
	m.conn = acquired.Hijack()
	// The statements below read whole tables once. Limits that somebody has set for the user are for other queries.
	if _, err := m.conn.Exec(ctx, `SET work_mem = '128MB'; SET statement_timeout = 0; SET lock_timeout = 0;
		SET idle_in_transaction_session_timeout = 0`); err != nil {
		return err
	}
	if err := m.conn.QueryRow(ctx, "SELECT current_schema()").Scan(&m.target); err != nil {
		return err
	}
	made, err := mergedTables(ctx, m.conn, m.schema)
	if err != nil {
		return err
	}
	if len(made) == 0 {
		return errors.New("it has no tables")
	}
	there, err := mergedTables(ctx, m.conn, m.target)
	if err != nil {
		return err
	}
	m.tables = made
	return unlike(made, there)
}

// Close ends the session. It is safe to call more than once.
func (m *Merge) Close() {
	if m.conn != nil {
		disconnect(context.Background(), m.conn)
		m.conn = nil
	}
}

// Compare returns the tables that differ and records the keys of their rows. Unless the new rows of a journal are ahead
// of the live ones, both are as of the same record.
func (m *Merge) Compare(ctx context.Context) ([]TableDifference, error) {
	differences, err := m.compare(ctx)
	if err != nil {
		m.since = ""
		_, _ = m.conn.Exec(ctx, "ROLLBACK") // the session may be gone, and then so is the transaction
		return nil, fmt.Errorf("projections: comparing the schema %s with the live rows: %w", m.schema, err)
	}
	return differences, nil
}

func (m *Merge) compare(ctx context.Context) (differences []TableDifference, err error) {
	for i, t := range m.tables {
		// Without statistics on the new rows the joins would be planned for tables of a few pages.
		if _, err := m.conn.Exec(ctx, "ANALYZE "+t.in(m.schema)+"; DROP TABLE IF EXISTS pg_temp."+t.keys(i)); err != nil {
			return nil, err
		}
	}
	if err := m.align(ctx); err != nil {
		return nil, err
	}
	for i, t := range m.tables {
		d, err := t.compare(ctx, m, i)
		if err != nil {
			return nil, fmt.Errorf("the table %s: %w", t.name, err)
		}
		if d != (TableDifference{Table: t.name}) {
			differences = append(differences, d)
		}
	}
	_, err = m.conn.Exec(ctx, "COMMIT")
	return differences, err
}

// align begins a transaction on the session whose snapshot shows both schemas as of the same record. The runners wait
// until it is taken, not until it ends.
func (m *Merge) align(ctx context.Context) error {
	return pgx.BeginFunc(ctx, m.live, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			return err
		}
		if err := m.catchUp(ctx, tx); err != nil {
			return err
		}
		if _, err := m.conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
			return err
		}
		return m.conn.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::xid::text").Scan(&m.since)
	})
}

// catchUp stops the runners until the transaction ends, and brings the new rows to where the live ones are. The lock
// conflicts with that of a runner, which moves the checkpoint before it writes anything else, and with no reader's.
func (m *Merge) catchUp(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, "LOCK TABLE "+pgx.Identifier{m.target, "checkpoints"}.Sanitize()+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, "SELECT DISTINCT journal FROM "+pgx.Identifier{m.target, "checkpoints"}.Sanitize())
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	live := make(map[string]Checkpoint)
	for _, name := range names {
		if live[name], err = ReadCheckpoint(ctx, tx, name, 0); err != nil {
			return err
		}
	}
	return m.follow(ctx, live)
}

// Merged is what Apply did.
type Merged struct {
	Rows    int64         // that were written
	Blocked time.Duration // for which runners waited
}

// Apply makes the live rows equal to the new ones. The live runners find their checkpoint where the new rows are and
// continue from there.
func (m *Merge) Apply(ctx context.Context) (done Merged, err error) {
	if m.since == "" {
		return done, errors.New("projections: nothing was compared yet")
	}
	err = pgx.BeginFunc(ctx, m.conn, func(tx pgx.Tx) error {
		if err := durable(ctx, tx); err != nil {
			return err
		}
		if err := m.catchUp(ctx, tx); err != nil {
			return err
		}
		start := time.Now()
		// list_counts comes last: triggers of other tables change it.
		order := slices.Clone(m.tables)
		slices.SortStableFunc(order, func(a, b *mergedTable) int { return compareBool(a.name == countsTable, b.name == countsTable) })
		for _, t := range order {
			n, err := t.merge(ctx, tx, m, slices.Index(m.tables, t))
			if err != nil {
				return fmt.Errorf("the table %s: %w", t.name, err)
			}
			done.Rows += n
		}
		done.Blocked = time.Since(start)
		return nil
	})
	if err != nil {
		return done, fmt.Errorf("projections: merging the schema %s: %w", m.schema, err)
	}
	m.since = ""
	return done, nil
}

// countsTable holds what triggers count.
const countsTable = "list_counts"

// shrinking are the tables from which projections delete rows. What was deleted leaves no trace that a search for
// changed rows could find, so these tables are merged whole. They are small.
var shrinking = []string{"webhooks", countsTable}

// mergedTable is a table as the catalog describes it.
type mergedTable struct {
	name    string
	columns []string // in the order of the migrations
	types   []string // of the columns
	key     []string // the primary key's columns
	unique  bool     // there is another unique index
}

// mergedTables returns the tables of a schema that hold rows of the log, in the order of their names.
func mergedTables(ctx context.Context, db Querier, schema string) ([]*mergedTable, error) {
	rows, err := db.Query(ctx, `SELECT c.relname::text,
			array_agg(a.attname::text ORDER BY a.attnum), array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum),
			COALESCE((SELECT array_agg(k.attname::text ORDER BY array_position(i.indkey::smallint[], k.attnum))
				FROM pg_index i JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = ANY (i.indkey)
				WHERE i.indrelid = c.oid AND i.indisprimary), '{}'),
			EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND NOT i.indisprimary)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND c.relkind IN ('r', 'p') AND c.relname <> $2
		GROUP BY c.oid, c.relname ORDER BY 1`, schema, versions)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*mergedTable, error) {
		t := &mergedTable{}
		return t, row.Scan(&t.name, &t.columns, &t.types, &t.key, &t.unique)
	})
}

// unlike returns an error that names what the live tables lack or have otherwise.
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
			wrong = append(wrong, fmt.Sprintf("the primary key of %s is (%s) and not (%s)", t.name, strings.Join(live.key, ", "), strings.Join(t.key, ", ")))
		}
	}
	if wrong != nil {
		return fmt.Errorf("the live tables are not those that the migrations make: %s", strings.Join(wrong, "; "))
	}
	return nil
}

func (t *mergedTable) in(schema string) string { return pgx.Identifier{schema, t.name}.Sanitize() }

// keys names the temporary table with the keys of the rows that may differ.
func (t *mergedTable) keys(number int) string { return fmt.Sprintf("merge_keys_%d", number) }

// each joins an expression for each column, in which ? stands for the column's name.
func each(columns []string, expression, separator string) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		parts[i] = strings.ReplaceAll(expression, "?", pgx.Identifier{column}.Sanitize())
	}
	return strings.Join(parts, separator)
}

// differ is true of a live row t and a new row n that do not hold the same bytes: 1.0 and 1.00 differ. It is the function
// of the operator *<>, which the parser would apply to the columns one by one.
func (t *mergedTable) differ() string {
	return "record_image_ne(ROW(" + each(t.columns, "t.?", ", ") + "), ROW(" + each(t.columns, "n.?", ", ") + "))"
}

// compare records the keys of the rows that differ.
func (t *mergedTable) compare(ctx context.Context, m *Merge, number int) (TableDifference, error) {
	d := TableDifference{Table: t.name}
	first := pgx.Identifier{t.key[0]}.Sanitize()
	if _, err := m.conn.Exec(ctx, "CREATE TEMPORARY TABLE "+t.keys(number)+" AS SELECT "+each(t.key, "COALESCE(t.?, n.?) AS ?", ", ")+
		", CASE WHEN t."+first+" IS NULL THEN 'missing' WHEN n."+first+" IS NULL THEN 'extra' ELSE 'changed' END AS merge_kind"+
		" FROM "+t.in(m.target)+" t FULL JOIN "+t.in(m.schema)+" n ON "+each(t.key, "t.? = n.?", " AND ")+" WHERE "+t.differ()); err != nil {
		return d, err
	}
	err := m.conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE merge_kind = 'missing'), count(*) FILTER (WHERE merge_kind = 'extra'),
		count(*) FILTER (WHERE merge_kind = 'changed') FROM `+t.keys(number)).Scan(&d.Missing, &d.Extra, &d.Changed)
	return d, err
}

// merge makes the live table equal to the new one, and returns how many rows it wrote.
func (t *mergedTable) merge(ctx context.Context, tx pgx.Tx, m *Merge, number int) (written int64, err error) {
	live, made := t.in(m.target), t.in(m.schema)
	same := each(t.key, "t.? = n.?", " AND ")
	keys, ofLive, ofMade := "", "", ""
	if !slices.Contains(shrinking, t.name) {
		none, err := t.changed(ctx, tx, m, number)
		if err != nil || none {
			return 0, err
		}
		keys = "(SELECT DISTINCT " + each(t.key, "?", ", ") + " FROM " + t.keys(number) + ") k"
		ofLive, ofMade = " USING "+keys+" WHERE "+each(t.key, "t.? = k.?", " AND ")+" AND ", ", "+keys+" WHERE "+each(t.key, "n.? = k.?", " AND ")+" AND "
	} else {
		ofLive, ofMade = " WHERE ", " WHERE "
	}
	// A row that keeps its key is updated in place, unless the update of one row could conflict with another that is yet
	// to be updated.
	kept := same
	if t.unique {
		kept += " AND NOT (" + t.differ() + ")"
	}
	columns := each(t.columns, "?", ", ")
	rest := slices.DeleteFunc(slices.Clone(t.columns), func(column string) bool { return slices.Contains(t.key, column) })
	statements := []string{"DELETE FROM " + live + " t" + ofLive + "NOT EXISTS (SELECT FROM " + made + " n WHERE " + kept + ")"}
	if !t.unique && len(rest) > 0 {
		statements = append(statements, "UPDATE "+live+" t SET "+each(rest, "? = n.?", ", ")+" FROM "+made+" n"+ofMade+same+" AND "+t.differ())
	}
	statements = append(statements, "INSERT INTO "+live+" ("+columns+") SELECT "+each(t.columns, "n.?", ", ")+" FROM "+made+" n"+ofMade+
		"NOT EXISTS (SELECT FROM "+live+" t WHERE "+same+")")
	for _, statement := range statements {
		tag, err := tx.Exec(ctx, statement)
		if err != nil {
			return written, err
		}
		written += tag.RowsAffected()
	}
	return written, nil
}

// changed adds the keys of the rows that were written since Compare to those that it recorded, and reports whether there
// are none. A row that a transaction wrote which Compare did not see has that transaction's number, which is not below the
// lowest one that was at work then. Transactions that had nothing to do with these tables make it find more rows than
// necessary, never fewer.
func (t *mergedTable) changed(ctx context.Context, tx pgx.Tx, m *Merge, number int) (none bool, err error) {
	keys, since := each(t.key, "?", ", "), " WHERE age(xmin) <= age('"+m.since+"'::xid)"
	if _, err := tx.Exec(ctx, "INSERT INTO "+t.keys(number)+" ("+keys+") SELECT "+keys+" FROM "+t.in(m.target)+since+
		" UNION ALL SELECT "+keys+" FROM "+t.in(m.schema)+since); err != nil {
		return false, err
	}
	if err := tx.QueryRow(ctx, "SELECT NOT EXISTS (SELECT FROM "+t.keys(number)+")").Scan(&none); err != nil || none {
		return none, err
	}
	_, err = tx.Exec(ctx, "ANALYZE "+t.keys(number))
	return false, err
}
