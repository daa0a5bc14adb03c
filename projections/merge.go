package projections

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A Merge makes the live rows equal to the rows of another schema of the same database, the new rows. It replaces no
// table, so grants, views, comments, publications and everything else that refers to a table remain. Call OpenMerge,
// Compare, Apply and Close in that order.
//
// Runners write live rows all the time, so the work has three steps:
//
//   - Compare reads every row in one snapshot and remembers the keys of the rows that differ. From before the snapshot on,
//     triggers record the keys of all rows that are written, in either schema: see the migration of changed_rows.
//   - Apply takes a later snapshot, compares only the recorded rows in it, and repeats this until a round records few rows.
//   - Apply then stops the runners, brings the new rows to the position of the live ones, and writes the rows that differ,
//     among those with a remembered or recorded key. This is one transaction.
//
// Runners wait while a snapshot is taken and during the last step, which takes as long as the number of rows that differ
// or were recorded last, however large the tables are. No step takes a lock for which a reader waits.
type Merge struct {
	live    *pgxpool.Pool
	schema  string // of the new rows
	follow  Follow
	conn    *pgx.Conn // its session holds the lock of record and the temporary tables with the keys
	target  string    // the schema of the live tables
	secured string    // the live tables that have row-level security for this user
	tables  []*mergedTable

	recording bool // the session holds the lock of record
	compared  bool
	blocked   time.Duration // the longest time for which a transaction of this merge stopped the runners
}

// Follow brings the new rows to the positions of the live ones, or leaves them where they are if they are ahead. The
// runners of the live rows wait for it. It should be quick, so the caller of Compare and Apply brings the new rows close
// first.
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

// open starts the session and reads the descriptions of the tables in both schemas.
func (m *Merge) open(ctx context.Context) error {
	acquired, err := m.live.Acquire(ctx)
	if err != nil {
		return err
	}
	m.conn = acquired.Hijack()
	// The statements of Compare read whole tables, which may take longer than the limits set for this user allow.
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
	if err := unlike(made, there); err != nil {
		return err
	}
	return m.seesRows(ctx)
}

// seesRows fails if row-level security hides all rows of a live table, and remembers the tables of which policies may hide some.
func (m *Merge) seesRows(ctx context.Context) error {
	var denied, user string
	if err := m.conn.QueryRow(ctx, `SELECT COALESCE(string_agg(name, ', ' ORDER BY name) FILTER (WHERE NOT allowed), ''),
			COALESCE(string_agg(name, ', ' ORDER BY name), ''), current_user::text
		FROM (SELECT c.relname::text AS name, EXISTS (SELECT FROM pg_policy p, unnest(p.polroles) role WHERE p.polrelid = c.oid AND p.polpermissive
				AND (role = 0 OR pg_has_role(current_user, role, 'USAGE'))) AS allowed
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE n.nspname = $1 AND c.relkind IN ('r', 'p') AND row_security_active(c.oid)) secured`, m.target).Scan(&denied, &m.secured, &user); err != nil {
		return err
	}
	if denied != "" {
		return fmt.Errorf("row-level security hides all rows of %s from the user %s: remove FORCE ROW LEVEL SECURITY from these "+
			"tables, or make a policy that shows the user all rows", denied, user)
	}
	return nil
}

// explained adds to an error of Postgres that policies of row-level security may have caused it: a row has the key of a hidden one,
// or a policy refuses it.
func (m *Merge) explained(err error) error {
	if m.secured != "" && (sqlState(err) == uniqueViolation || sqlState(err) == insufficientPrivilege) {
		return fmt.Errorf("%w: row-level security may hide rows of %s from the venue", err, m.secured)
	}
	return err
}

// Close stops the recording and ends the session. It is safe to call more than once.
func (m *Merge) Close() {
	if m.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), answers)
	defer cancel()
	if m.recording {
		// The keys are deleted before the lock is released, because another merge may take the lock and record its own.
		// The next merge deletes the keys that remain: those of transactions that are open now, and all if this session
		// is broken.
		_, _ = m.conn.Exec(ctx, "ROLLBACK; DELETE FROM "+changesIn(m.target)+"; SELECT pg_advisory_unlock_all()")
	}
	disconnect(ctx, m.conn)
	m.conn = nil
}

// Compare returns the tables that differ and remembers the keys of their rows. Unless the new rows of a journal are
// ahead of the live ones, both are as of the same record.
func (m *Merge) Compare(ctx context.Context) ([]TableDifference, error) {
	differences, err := m.compare(ctx)
	if err != nil {
		_, _ = m.conn.Exec(ctx, "ROLLBACK") // the session may be gone, and then so is the transaction
		return nil, fmt.Errorf("projections: comparing the schema %s with the live rows: %w", m.schema, err)
	}
	return differences, nil
}

func (m *Merge) compare(ctx context.Context) (differences []TableDifference, err error) {
	m.compared = false
	for _, t := range m.tables {
		// Without statistics on the new rows the joins would be planned for tables of a few pages.
		if _, err := m.conn.Exec(ctx, "ANALYZE "+t.in(m.schema)+"; DROP TABLE IF EXISTS pg_temp."+t.keys); err != nil {
			return nil, err
		}
	}
	if err := m.record(ctx); err != nil {
		return nil, err
	}
	// The lock of record keeps the live tables from losing more of their history.
	if err := m.forgetHistory(ctx); err != nil {
		return nil, err
	}
	if err := m.align(ctx); err != nil {
		return nil, err
	}
	// The snapshot shows what was recorded before it, and the comparison sees these changes itself.
	if _, err := m.conn.Exec(ctx, "DELETE FROM "+changesIn(m.target)+"; DELETE FROM "+changesIn(m.schema)); err != nil {
		return nil, err
	}
	for _, t := range m.tables {
		d, err := t.compare(ctx, m)
		if err != nil {
			return nil, fmt.Errorf("the table %s: %w", t.name, err)
		}
		if d != (TableDifference{Table: t.name}) {
			differences = append(differences, d)
		}
	}
	_, err = m.conn.Exec(ctx, "COMMIT")
	m.compared = err == nil
	return differences, err
}

// unrecorded bounds how long record waits for transactions that began to write before it.
const unrecorded = time.Minute

// record makes the triggers record the keys of the rows that are written, until the session ends. It waits for the end
// of every transaction that has written rows without recording them. No session waits for record: a trigger that finds
// the lock requested records its rows. See track_changes in the migration.
func (m *Merge) record(ctx context.Context) error {
	_, err := m.conn.Exec(ctx, fmt.Sprintf(`CREATE TEMPORARY TABLE IF NOT EXISTS %s (LIKE %s); SET lock_timeout = %d;
		SELECT pg_advisory_unlock_all(); SELECT pg_advisory_lock(hashtextextended('perpetua merge', 0)); SET lock_timeout = 0`,
		recorded, changesIn(m.schema), unrecorded.Milliseconds()))
	if sqlState(err) == lockNotAvailable {
		err = fmt.Errorf("for %v another rebuild has been at work, or a transaction that has written rows open: %w", unrecorded, err)
	}
	m.recording = err == nil
	return err
}

// lockNotAvailable is the SQLSTATE of a statement that has waited longer than lock_timeout.
const lockNotAvailable = "55P03"

// align begins a transaction on the session. Its snapshot shows both schemas as of the same record. The runners wait
// until the snapshot is taken, not until the transaction ends.
func (m *Merge) align(ctx context.Context) error {
	return m.stopped(ctx, m.live, func(tx pgx.Tx) error {
		if _, err := m.conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ"); err != nil {
			return err
		}
		_, err := m.conn.Exec(ctx, "SELECT pg_current_snapshot()") // the first query takes the snapshot
		return err
	})
}

// stopped runs a function in a transaction that stops the runners, after it has brought the new rows to the position of
// the live ones. It measures the time from the grant of the lock to the end of the commit, which releases it.
//
// A runner moves the checkpoint before it writes anything else, so it waits for this lock. Readers take no lock that
// conflicts with it.
func (m *Merge) stopped(ctx context.Context, db interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}, do func(tx pgx.Tx) error) error {
	var start time.Time
	// The transaction must see rows that follow commits after its first query. The user may have a default that prevents this.
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
			return err
		}
		checkpoints := pgx.Identifier{m.target, "checkpoints"}.Sanitize()
		if _, err := tx.Exec(ctx, "LOCK TABLE "+checkpoints+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		start = time.Now()
		if err := m.catchUp(ctx, tx); err != nil {
			return err
		}
		return do(tx)
	})
	if !start.IsZero() {
		m.blocked = max(m.blocked, time.Since(start))
	}
	return err
}

// catchUp brings the new rows to the positions of the live ones.
func (m *Merge) catchUp(ctx context.Context, tx pgx.Tx) error {
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

// Merged is the result of Apply.
type Merged struct {
	Rows    int64         // number of rows written
	Blocked time.Duration // the longest time for which runners waited, in Compare or in Apply
}

// Apply makes the live rows equal to the new ones. The live runners find their checkpoint where the new rows are and
// continue from there.
func (m *Merge) Apply(ctx context.Context) (done Merged, err error) {
	if !m.compared {
		return done, errors.New("projections: nothing was compared yet")
	}
	m.compared = false
	if err = m.narrow(ctx); err == nil {
		err = m.stopped(ctx, m.conn, func(tx pgx.Tx) error {
			done.Rows, err = m.write(ctx, tx)
			return err
		})
	}
	done.Blocked = m.blocked
	if err != nil {
		return done, fmt.Errorf("projections: merging the schema %s: %w", m.schema, m.explained(err))
	}
	return done, nil
}

// The rounds of narrow.
const (
	rounds  = 8
	fewRows = 500 // rows, which are compared in milliseconds
)

// narrow compares the rows that were written since the last snapshot, until a round finds few. The transaction that
// stops the runners then has few rows to compare, even if Compare took hours.
func (m *Merge) narrow(ctx context.Context) error {
	for range rounds {
		n, err := m.round(ctx)
		if err != nil {
			_, _ = m.conn.Exec(ctx, "ROLLBACK")
			return err
		}
		if n <= fewRows {
			return nil
		}
	}
	return nil
}

// round compares the rows that were written since the last snapshot, and returns how many were recorded.
func (m *Merge) round(ctx context.Context) (n int64, err error) {
	if err := m.align(ctx); err != nil {
		return 0, err
	}
	if n, err = m.collect(ctx, m.conn); err != nil {
		return n, err
	}
	if _, err := m.conn.Exec(ctx, "COMMIT"); err != nil {
		return n, err
	}
	// The transaction that stops the runners reads this table, and would read the deleted rows again.
	for _, schema := range []string{m.target, m.schema} {
		if _, err := m.conn.Exec(ctx, "VACUUM "+changesIn(schema)); err != nil {
			return n, err
		}
	}
	return n, nil
}

// write writes the rows that differ and returns how many.
func (m *Merge) write(ctx context.Context, tx pgx.Tx) (written int64, err error) {
	if err := durable(ctx, tx); err != nil {
		return 0, err
	}
	if err := m.renew(ctx, tx); err != nil {
		return 0, err
	}
	if err := m.partition(ctx, tx); err != nil {
		return 0, err
	}
	if _, err := m.collect(ctx, tx); err != nil {
		return 0, err
	}
	// Triggers of other tables change list_counts, so it comes last, and these changes are recorded.
	if _, err := tx.Exec(ctx, "SET LOCAL perpetua.recorded = '"+countsTable+"'"); err != nil {
		return 0, err
	}
	var counts *mergedTable
	for _, t := range m.tables {
		if t.name == countsTable {
			counts = t
			continue
		}
		n, err := t.merge(ctx, tx, m)
		if err != nil {
			return written, err
		}
		written += n
	}
	if err := m.complete(ctx, tx); err != nil {
		return written, err
	}
	if _, err := m.collect(ctx, tx); err != nil || counts == nil {
		return written, err
	}
	n, err := counts.merge(ctx, tx, m)
	return written + n, err
}

// countsTable contains the counts that triggers maintain.
const countsTable = "list_counts"

// changesTable holds the keys that triggers record. Its rows don't come from a journal.
const changesTable = "changed_rows"

// recorded is the temporary table to which collect moves the keys.
const recorded = "merge_recorded"

func changesIn(schema string) string { return pgx.Identifier{schema, changesTable}.Sanitize() }

// executor is a connection in a transaction, or a transaction.
type executor interface {
	Querier
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// collect deletes the recorded keys that the transaction sees and remembers those of rows that differ. It returns how
// many keys were recorded.
func (m *Merge) collect(ctx context.Context, tx executor) (n int64, err error) {
	// Without statistics on the temporary tables, the planner may expect many keys and read whole tables. It must look
	// the rows up by their keys.
	if _, err := tx.Exec(ctx, "TRUNCATE pg_temp."+recorded+`; SET LOCAL enable_seqscan = off; SET LOCAL enable_hashjoin = off;
		SET LOCAL enable_mergejoin = off`); err != nil {
		return 0, err
	}
	for _, schema := range []string{m.target, m.schema} {
		tag, err := tx.Exec(ctx, "WITH taken AS (DELETE FROM "+changesIn(schema)+" RETURNING table_name, key)"+
			" INSERT INTO pg_temp."+recorded+" SELECT DISTINCT table_name, key FROM taken")
		if err != nil {
			return n, err
		}
		n += tag.RowsAffected()
	}
	if n == 0 {
		return 0, nil
	}
	rows, err := tx.Query(ctx, "SELECT DISTINCT table_name FROM pg_temp."+recorded)
	if err != nil {
		return n, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return n, err
	}
	for _, t := range m.tables {
		if slices.Contains(names, t.name) {
			if err := t.remember(ctx, tx, m); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
