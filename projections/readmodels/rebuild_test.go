package readmodels_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// rebuilt is a database with the rows of three journals, whose runners run, and the logs.
type rebuilt struct {
	t        *testing.T
	url      string
	live     *pgxpool.Pool
	logs     []*projectiontest.Log
	journals []readmodels.Audited
	runners  []*projections.Runner
	printed  []string
}

// newRebuilt starts the runners on the first part of the trading entries, and on all of the others.
func newRebuilt(t *testing.T, trade []record.Entry) *rebuilt {
	t.Helper()
	return newRebuiltAt(t, projectiontest.MigratedURL(t), trade)
}

// newRebuiltAt is newRebuilt for the database at a URL.
func newRebuiltAt(t *testing.T, url string, trade []record.Entry) *rebuilt {
	t.Helper()
	r := &rebuilt{t: t, url: url}
	r.live = projectiontest.Open(t, r.url)
	registrar := projectiontest.NewRegistrar(t, 35)
	registrar.Play(600)
	r.journals = audited(trade, people(36))
	log := projectiontest.NewLog(registrar.Entries...)
	r.journals = append(r.journals, readmodels.Audited{Rules: domain.Rules(), Projections: readmodels.Onboarding(), Log: log,
		Read: func() readmodels.Records { return logReader{log.From(record.Before)} },
		Compare: func(ctx context.Context, pool *pgxpool.Pool, s decide.State, at int64) ([]string, error) {
			return readmodels.CompareOnboarding(ctx, pool, s.(*domain.State), at)
		}})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for _, j := range r.journals {
		runner := projections.Config{Pool: r.live, Log: j.Log, Journal: j.Rules.Journal()}.Runner(j.Projections...)
		r.logs, r.runners = append(r.logs, j.Log.(*projectiontest.Log)), append(r.runners, runner)
		running.Go(func() { _ = runner.Run(ctx) })
	}
	r.settle()
	return r
}

// settle waits until the live rows have reached the end of every log.
func (r *rebuilt) settle() {
	r.t.Helper()
	for i, runner := range r.runners {
		end, err := r.logs[i].Tip(r.t.Context())
		must(r.t, err)
		within, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		must(r.t, runner.Wait(within, r.sequenceAt(i, end)))
		cancel()
	}
}

// sequenceAt returns the sequence of the last record before an offset.
func (r *rebuilt) sequenceAt(i int, end int64) int64 {
	reader := r.logs[i].From(record.Before)
	defer reader.Close()
	entries, err := reader.Poll(r.t.Context())
	must(r.t, err)
	at := slices.IndexFunc(entries, func(e record.Entry) bool { return e.Position.Offset+1 == end })
	return entries[at].Position.Sequence
}

// rebuild rebuilds the rows and returns what it printed.
func (r *rebuilt) rebuild(compareOnly bool, confirm func()) []string {
	r.t.Helper()
	ctx := r.t.Context()
	beside, remove, err := projections.OpenScratch(ctx, r.url, "rebuilt")
	must(r.t, err)
	defer remove()
	r.printed = nil
	goals := make([]record.Position, len(r.runners))
	for i, runner := range r.runners {
		goals[i] = runner.Position()
	}
	_, err = readmodels.Rebuild{Replay: readmodels.Replay{Target: beside, Journals: r.journals}, Live: r.live, Schema: "rebuilt", CompareOnly: compareOnly,
		Confirm: func(context.Context) error { confirm(); return nil },
		Print:   func(line string) { r.printed = append(r.printed, line) }}.Run(ctx, goals)
	must(r.t, err)
	return r.printed
}

// exec runs statements as the server's administrator.
func (r *rebuilt) exec(statements ...string) {
	r.t.Helper()
	admin := asAdmin(r.t, r.live)
	for _, s := range statements {
		if _, err := admin.Exec(r.t.Context(), s); err != nil {
			r.t.Fatalf("%s: %v", s, err)
		}
	}
}

// withoutAutovacuum switches autovacuum off and waits until it has ended. To truncate a table it takes a lock for which readers
// wait. projectiontest.Main has switched it off on its server.
func (r *rebuilt) withoutAutovacuum() {
	r.t.Helper()
	var on string
	if must(r.t, r.live.QueryRow(r.t.Context(), "SHOW autovacuum").Scan(&on)); on == "off" {
		return
	}
	r.exec("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
	admin := asAdmin(r.t, r.live)
	r.t.Cleanup(func() {
		for _, s := range []string{"ALTER SYSTEM RESET autovacuum", "SELECT pg_reload_conf()"} {
			if _, err := admin.Exec(context.WithoutCancel(r.t.Context()), s); err != nil {
				r.t.Error(err)
			}
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		select {
		case <-r.t.Context().Done():
			r.t.Fatal("autovacuum did not end")
		case <-tick.C:
		}
		must(r.t, admin.QueryRow(r.t.Context(),
			"SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum %')").Scan(&running))
	}
}

// built is what others have built on the tables, as the catalog describes it.
func (r *rebuilt) built() (lines []string) {
	r.t.Helper()
	rows, err := r.live.Query(r.t.Context(), `SELECT 'table ' || c.oid || ' ' || c.relname || ' ' || COALESCE(c.relacl::text, '') || ' ' || COALESCE(obj_description(c.oid, 'pg_class'), '')
			FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v', 'm')
		UNION ALL SELECT 'column ' || attrelid::regclass || '.' || attname || ' ' || attacl::text FROM pg_attribute WHERE attacl IS NOT NULL
		UNION ALL SELECT 'default ' || defaclacl::text FROM pg_default_acl
		UNION ALL SELECT 'published ' || prrelid::regclass FROM pg_publication_rel
		UNION ALL SELECT 'trigger ' || tgrelid::regclass || ' ' || tgname || ' ' || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
		UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'f'
		UNION ALL SELECT 'policy ' || polname FROM pg_policy ORDER BY 1`)
	must(r.t, err)
	lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
	must(r.t, err)
	return lines
}

// TestRebuildKeepsWhatOthersBuilt damages live rows in every way, and rebuilds them while the runners write and an analyst
// reads, whose queries may not wait for a lock.
func TestRebuildKeepsWhatOthersBuilt(t *testing.T) {
	ctx := t.Context()
	o := projectiontest.NewOwner(t, 37)
	o.Play(400)
	known := len(o.Entries)
	o.Play(400)
	later := o.Entries[known:]
	r := newRebuilt(t, o.Entries[:known])
	r.withoutAutovacuum()
	analyst := "analyst_" + strings.ToLower(r.live.Config().ConnConfig.Database[5:13])
	r.exec("CREATE ROLE " + analyst + " LOGIN PASSWORD 'secret'")
	t.Cleanup(func() {
		admin := asAdmin(t, r.live)
		for _, s := range []string{"DROP OWNED BY " + analyst, "DROP ROLE " + analyst} {
			if _, err := admin.Exec(context.WithoutCancel(t.Context()), s); err != nil {
				t.Error(err)
			}
		}
	})
	r.exec("GRANT SELECT ON ALL TABLES IN SCHEMA public TO "+analyst, "GRANT UPDATE (name) ON brokers TO "+analyst,
		"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO "+analyst,
		"CREATE VIEW positions_by_symbol AS SELECT symbol, sum(abs(amount)) / 2 AS held FROM positions GROUP BY symbol",
		"GRANT SELECT ON positions_by_symbol TO "+analyst,
		"CREATE MATERIALIZED VIEW busiest AS SELECT customer_code, count(*) AS n FROM trades GROUP BY 1",
		"COMMENT ON TABLE trades IS 'what the desk looks at first'",
		"CREATE TABLE notes (code uuid REFERENCES orders, note text)", "INSERT INTO notes SELECT code, 'seen' FROM orders",
		"CREATE PUBLICATION warehouse FOR TABLE "+strings.Join(r.tables(), ", "))
	want := r.digests()
	built := r.built()

	// No damage: no row is written.
	versions := r.versions()
	check(t, "of sound rows", r.rebuild(true, nil)[1:], []string{"every table equals the live one"})
	if printed := r.rebuild(false, func() {}); !strings.Contains(printed[len(printed)-1], "the live tables equal the new ones; 0 rows were written") {
		t.Errorf("of sound rows: %q", printed)
	}
	check(t, "the versions of sound rows", r.versions(), versions)
	check(t, "what others built", r.built(), built)

	r.damage()
	// The merge has to wait for this transaction in the middle of its work, so that everything below happens meanwhile.
	watch := asAdmin(t, r.live)
	obstacle, err := watch.Begin(ctx)
	must(t, err)
	defer obstacle.Rollback(ctx)
	_, err = obstacle.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0; SELECT FROM webhooks FOR UPDATE") // which no runner writes
	must(t, err)
	u := projectiontest.As(t, r.url, analyst, "secret")
	reading := projectiontest.Open(t, u+"&lock_timeout=1")
	reads := 0
	read := func() {
		for _, table := range append(r.tables(), "positions_by_symbol", "market_trades") {
			var n int
			if err := reading.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&n); err != nil {
				t.Errorf("reading %s: %v", table, err)
			}
			reads++
		}
	}
	printed := make(chan []string, 1)
	confirmed := make(chan struct{})
	go func() {
		defer close(printed) // also where it fails
		printed <- r.rebuild(false, func() { close(confirmed) })
	}()
	write := func() { // and what is written since the comparison
		if len(later) > 0 {
			n := min(7, len(later))
			r.logs[0].Append(later[:n]...)
			later = later[n:]
		}
	}
	for waiting := true; waiting; {
		select {
		case <-confirmed:
			waiting = false
		case lines := <-printed:
			t.Fatalf("the rebuild has ended: %q", lines)
		default:
			write()
			read()
		}
	}
	for blocked := false; !blocked; {
		select {
		case lines := <-printed:
			t.Fatalf("the rebuild has ended: %q", lines)
		default:
		}
		write()
		read()
		must(t, watch.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
			AND $1::integer = ANY (pg_blocking_pids(pid)))`, int32(obstacle.Conn().PgConn().PID())).Scan(&blocked))
	}
	r.logs[0].Append(later...)
	read()
	must(t, obstacle.Commit(ctx))
	lines := <-printed
	for _, table := range []string{"brokers", "customers", "documents", "list_counts", "notices", "records", "trades", "webhooks"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, table+" differs: ") }) {
			t.Errorf("of the damage to %s nothing is said", table)
		}
	}
	read()
	r.settle()
	check(t, "what others built", r.built(), built)
	for table, digest := range r.fresh() {
		if got := r.digests()[table]; got != digest {
			t.Errorf("the table %s has %v, want %v", table, got, digest)
		}
	}
	if same := r.digests(); same["owners"] != want["owners"] || same["orders"] == want["orders"] {
		t.Error("the rows that came meanwhile are not there, or others are not as they were")
	}
	check(t, "of the rows once they are rebuilt", r.rebuild(true, nil)[1:], []string{"every table equals the live one"})
	t.Logf("%d reads, %q", reads, lines)
}

// tables returns the names of the tables of rows.
func (r *rebuilt) tables() (names []string) {
	for name := range r.digests() {
		if name != "notes" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (r *rebuilt) digests() map[string]projections.Digest {
	r.t.Helper()
	return projectiontest.Digests(r.t, r.live)
}

// fresh returns the digests of rows that the logs make in another database.
func (r *rebuilt) fresh() map[string]projections.Digest {
	r.t.Helper()
	pool := projectiontest.Database(r.t)
	for i, j := range r.journals {
		reader := r.logs[i].From(record.Before)
		entries, err := reader.Poll(r.t.Context())
		must(r.t, err)
		reader.Close()
		apply(r.t, pool, j.Rules.Journal(), j.Projections, entries)
	}
	return projectiontest.Digests(r.t, pool)
}

// versions returns what is written anew when a row is written, by table.
func (r *rebuilt) versions() map[string]string {
	r.t.Helper()
	out := make(map[string]string)
	for _, table := range r.tables() {
		var sum string
		must(r.t, r.live.QueryRow(r.t.Context(), "SELECT COALESCE(md5(string_agg(ctid::text || xmin::text, ' ' ORDER BY ctid)), '') FROM "+table).Scan(&sum))
		out[table] = sum
	}
	return out
}

// damage changes a column of two rows of every table, takes a row away and adds one, without the database counting it.
func (r *rebuilt) damage() {
	r.t.Helper()
	must(r.t, pgx.BeginFunc(r.t.Context(), asAdmin(r.t, r.live), func(tx pgx.Tx) error {
		statements := []string{"SET LOCAL session_replication_role = replica"}
		for _, columns := range spoilables(r.t, r.live) {
			table := columns[0].Table
			if table == "checkpoints" || table == "notes" { // the runners compare and set the one, and the others are not ours
				continue
			}
			last := slices.IndexFunc(columns, func(c spoilable) bool { return !c.Key && c.Kind == "numeric" || !c.Key && c.Name == "sequence" })
			if last < 0 {
				last = slices.IndexFunc(columns, func(c spoilable) bool { return !c.Key })
			}
			name := fmt.Sprintf("%q", columns[last].Name)
			statements = append(statements, fmt.Sprintf("UPDATE %s SET %s = %s WHERE ctid IN (SELECT ctid FROM %[1]s ORDER BY ctid LIMIT 2)", table, name, spoilt(name, columns[last].Kind)),
				fmt.Sprintf("DELETE FROM %s WHERE ctid = (SELECT max(ctid) FROM %[1]s WHERE (SELECT count(*) FROM %[1]s) > 4)", table))
		}
		statements = append(statements,
			"INSERT INTO brokers VALUES ('nobody', 'Nobody', now(), 1)", "INSERT INTO list_counts VALUES ('nothing', 512, 1, 1)",
			// Two rows that each take the other's number: no order of updates could put that right.
			"UPDATE documents d SET place = -place WHERE owner_id = (SELECT owner_id FROM documents GROUP BY 1 HAVING count(*) > 1 LIMIT 1)",
			"UPDATE documents d SET place = 1 + (SELECT count(*) FROM documents o WHERE o.owner_id = d.owner_id) + place WHERE place < 0")
		for _, s := range statements {
			if _, err := tx.Exec(r.t.Context(), s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	}))
}
