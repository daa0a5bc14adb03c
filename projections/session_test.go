package projections_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestPoolerWithoutSearchPath opens scratch tables through a pooler that ignores the search_path of a connection. They must not
// be taken for the live tables, which would become unlogged.
func TestPoolerWithoutSearchPath(t *testing.T) {
	at := projectiontest.VenueURL(t)
	live := projectiontest.Open(t, at)
	_, remove, err := projections.OpenScratch(t.Context(), (&projectiontest.Pooler{URL: at, Drops: []string{"search_path", "perpetua.scratch"}}).Start(t), "audited")
	if err == nil {
		remove()
	}
	if err == nil || !strings.Contains(err.Error(), "a pooler has dropped that parameter") {
		t.Errorf("through a pooler without search_path: %v", err)
	}
	if d, err := projections.FindDamage(t.Context(), live); err != nil || len(d.Unlogged)+len(d.Missing)+len(d.Invalid) > 0 {
		t.Errorf("the live tables: %+v, %v", d, err)
	}
}

// TestCheckSession: a pooler by transaction is found; a pooler that keeps a session, at least from a lock on, and none, are accepted.
func TestCheckSession(t *testing.T) {
	at := projectiontest.URL(t)
	for _, c := range []struct {
		name, url, want string
	}{
		{"directly", at, ""},
		{"by session", (&projectiontest.Pooler{URL: at}).Start(t), ""},
		{"by transaction until a lock", (&projectiontest.Pooler{URL: at, Shares: true, Pins: true}).Start(t), ""},
		{"by transaction", (&projectiontest.Pooler{URL: at, Shares: true}).Start(t), "let the pooler pool by session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pool, err := projections.Open(t.Context(), c.url)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			err = projections.CheckSession(t.Context(), pool)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, not %q", err, c.want)
			}
			var locks int
			if c.want == "" {
				if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
					pgx.QueryExecModeSimpleProtocol).Scan(&locks); err != nil {
					t.Error(err)
				}
			}
			if opened := pool.Stat().TotalConns(); locks > 0 || opened != 1 {
				t.Errorf("the pool has %d connections, and holds %d locks", opened, locks)
			}
		})
	}
}

// TestCheckSessionLeavesNothing: a pooler keeps its sessions open, and would keep the locks and transactions in them.
func TestCheckSessionLeavesNothing(t *testing.T) {
	at := projectiontest.URL(t)
	pool, err := projections.Open(t.Context(), (&projectiontest.Pooler{URL: at, Shares: true}).Start(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := projections.CheckSession(t.Context(), pool); !errors.Is(err, projections.ErrSharedSession) {
		t.Fatal(err)
	}
	var sessions, locks, transactions int
	if err := projectiontest.Open(t, at).QueryRow(t.Context(), `SELECT count(*), (SELECT count(*) FROM pg_locks JOIN pg_stat_activity o USING (pid)
			WHERE locktype = 'advisory' AND o.datname = current_database()), count(*) FILTER (WHERE state LIKE 'idle in transaction%')
		FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&sessions, &locks, &transactions); err != nil {
		t.Fatal(err)
	}
	if sessions != 2 || locks > 0 || transactions > 0 {
		t.Errorf("%d sessions with %d locks and %d transactions remain", sessions, locks, transactions)
	}
}

// TestCheckSessionAfterAMove: the database may have another address since the pool was made.
func TestCheckSessionAfterAMove(t *testing.T) {
	u, err := url.Parse(projectiontest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	host := u.Host
	u.Host = "127.0.0.1:1"
	at := u.String()
	pool, err := projections.OpenMoving(t.Context(), func() string { return at })
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	u.Host = host
	at = u.String()
	if err := projections.CheckSession(t.Context(), pool); err != nil {
		t.Error(err)
	}
}

// TestMigrateWithAnotherSearchPath: the tables of a venue are not made a second time in another schema.
func TestMigrateWithAnotherSearchPath(t *testing.T) {
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	if _, err := live.Exec(t.Context(), "CREATE SCHEMA own; CREATE SCHEMA \"The-own\""); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"own,public", "nowhere", `"The-own"`} {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("search_path", path)
		u.RawQuery = q.Encode()
		pool, err := projections.Open(t.Context(), u.String())
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		if _, err := projections.Migrate(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "are in the schema public") {
			t.Errorf("Migrate with the search_path %s: %v", path, err)
		}
		if _, _, err := projections.SchemaVersion(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "are in the schema public") {
			t.Errorf("SchemaVersion with the search_path %s: %v", path, err)
		}
	}
	var made int
	if err := live.QueryRow(t.Context(), "SELECT count(*) FROM pg_class WHERE relnamespace = 'own'::regnamespace").Scan(&made); err != nil || made > 0 {
		t.Errorf("%d tables were made, %v", made, err)
	}
}

// TestEncodings: a database with another encoding than UTF-8 is refused, and the default encoding of a user does not matter.
func TestEncodings(t *testing.T) {
	at := projectiontest.URL(t)
	plain := projectiontest.Open(t, at)
	if _, err := plain.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET client_encoding = LATIN1', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	plain.Reset()
	var letters int
	if err := plain.QueryRow(t.Context(), "SELECT length($1)", "Zürich").Scan(&letters); err != nil || letters != 6 {
		t.Errorf("Zürich has %d letters, %v", letters, err)
	}
	administrator := projectiontest.Admin(t, at)
	admin := projectiontest.Open(t, administrator)
	for _, encoding := range []string{"LATIN1", "SQL_ASCII"} {
		name := "encoded_" + strings.ToLower(rand.Text())
		if _, err := admin.Exec(t.Context(), "CREATE DATABASE "+name+" TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C' ENCODING '"+encoding+"'"); err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(administrator)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/" + name
		pool, err := projections.Open(t.Context(), u.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = projections.Migrate(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "has the encoding "+encoding) {
			t.Errorf("%s: %v", encoding, err)
		}
		pool.Close()
		if _, err := admin.Exec(t.Context(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	}
}

// TestFormsOfADatabase: the forms that an administrator chooses for strings, dates, and names do not matter to the statements.
func TestFormsOfADatabase(t *testing.T) {
	at := projectiontest.URL(t)
	plain := projectiontest.Open(t, at)
	var name string
	if err := plain.QueryRow(t.Context(), "SELECT quote_ident(current_database())").Scan(&name); err != nil {
		t.Fatal(err)
	}
	for _, setting := range []string{"standard_conforming_strings = off", "quote_all_identifiers = on", "array_nulls = off", "transform_null_equals = on",
		"datestyle = 'German, DMY'", "intervalstyle = sql_standard", "extra_float_digits = -15", "bytea_output = escape"} {
		if _, err := plain.Exec(t.Context(), "ALTER DATABASE "+name+" SET "+setting); err != nil {
			t.Fatal(err)
		}
	}
	plain.Reset()
	if _, err := projections.Migrate(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	if err := projections.GrantReaders(t.Context(), plain); err != nil {
		t.Fatal(err)
	}
	var readable bool
	if err := plain.QueryRow(t.Context(), "SELECT has_table_privilege($1, 'orders', 'SELECT')", projections.ReaderRole).Scan(&readable); err != nil || !readable {
		t.Errorf("orders can be read: %v, %v", readable, err)
	}
}

// TestScratchKeepsTheTablesOfOthers: a schema of another program is not dropped, although it has the name of the audit's.
func TestScratchKeepsTheTablesOfOthers(t *testing.T) {
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	if _, err := live.Exec(t.Context(), "CREATE SCHEMA audited; CREATE TABLE audited.invoices (id int)"); err != nil {
		t.Fatal(err)
	}
	if _, remove, err := projections.OpenScratch(t.Context(), at, "audited"); err == nil || !strings.Contains(err.Error(), "it is not the venue's") {
		if err == nil {
			remove()
		}
		t.Errorf("a schema of others: %v", err)
	}
	if _, err := live.Exec(t.Context(), "SELECT FROM audited.invoices"); err != nil {
		t.Error(err)
	}
}

// TestScratchOfAKilledRun: what a killed audit of this build or an earlier one has left is dropped, however early it was killed.
func TestScratchOfAKilledRun(t *testing.T) {
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	for _, left := range []string{
		"CREATE SCHEMA audited",
		"CREATE SCHEMA audited; CREATE TABLE audited.schema_versions (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY)",
		"CREATE SCHEMA audited; CREATE TABLE audited.schema_versions (id int); CREATE UNLOGGED TABLE audited.orders (id int)",
	} {
		if _, err := live.Exec(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		_, remove, err := projections.OpenScratch(t.Context(), at, "audited")
		if err != nil {
			t.Fatalf("%s: %v", left, err)
		}
		remove()
	}
}

// TestScratchHasNoTimeouts: limits for the statements of the user do not end an audit or a rebuild.
func TestScratchHasNoTimeouts(t *testing.T) {
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	if _, err := live.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = ''10s''', current_database());
		EXECUTE format('ALTER DATABASE %I SET lock_timeout = ''10s''', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	beside, remove, err := projections.OpenScratch(t.Context(), at, "audited")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	var statement, lock string
	if err := beside.QueryRow(t.Context(), "SELECT current_setting('statement_timeout'), current_setting('lock_timeout')").Scan(&statement, &lock); err != nil {
		t.Fatal(err)
	}
	if statement != "0" || lock != "0" {
		t.Errorf("statement_timeout is %s and lock_timeout %s", statement, lock)
	}
}

// TestMergeWithSerializableTransactions merges new rows that are brought further while the transaction of the merge is open.
func TestMergeWithSerializableTransactions(t *testing.T) {
	ctx := t.Context()
	entries := projectiontest.NewVenue(29).Entries(300)
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	if _, err := live.Exec(ctx, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = ''serializable''', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	live.Reset()
	r, stop := start(t, live, projectiontest.NewLog(entries[:100]...))
	wait(t, r, 99)
	stop()
	beside, remove, err := projections.OpenScratch(ctx, at, "rebuilt")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	log := projectiontest.NewLog(entries[:100]...)
	r, stop = start(t, beside, log)
	defer func() { stop() }()
	wait(t, r, 99)
	last := 100
	merge, err := projections.OpenMerge(ctx, live, "rebuilt", func(context.Context, map[string]projections.Checkpoint) error {
		log.Append(entries[last : last+50]...)
		last += 50
		return r.Wait(ctx, int64(last-1))
	})
	if err != nil {
		t.Fatal(err)
	}
	defer merge.Close()
	if _, err := merge.Compare(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := merge.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, digests(t, live), digests(t, beside))
}

// TestFindDamage finds what an administrator has done to the tables.
func TestFindDamage(t *testing.T) {
	live := projectiontest.Open(t, projectiontest.VenueURL(t))
	if _, err := live.Exec(t.Context(), "DROP TABLE fee_profiles CASCADE; ALTER TABLE candles SET UNLOGGED"); err != nil {
		t.Fatal(err)
	}
	d, err := projections.FindDamage(t.Context(), live)
	if err != nil || !slices.Equal(d.Missing, []string{"fee_profiles"}) || !slices.Equal(d.Unlogged, []string{"candles"}) || len(d.Invalid) > 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestMergeUnderRowLevelSecurity: a merge is refused if policies hide a whole table, and says so if they hide rows that it writes.
func TestMergeUnderRowLevelSecurity(t *testing.T) {
	ctx := t.Context()
	entries := projectiontest.NewVenue(29).Entries(100)
	at := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, at)
	r, stop := start(t, live, projectiontest.NewLog(entries...))
	wait(t, r, 99)
	stop()
	beside, remove, err := projections.OpenScratch(ctx, at, "rebuilt")
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	r, stop = start(t, beside, projectiontest.NewLog(entries...))
	wait(t, r, 99)
	stop()
	for _, c := range []struct{ sql, want string }{
		{"ALTER TABLE positions ENABLE ROW LEVEL SECURITY", ""}, // a policy does not hide rows from the owner of a table
		{"ALTER TABLE positions FORCE ROW LEVEL SECURITY", "row-level security hides all rows of positions from the user perpetua_venue"},
		{"CREATE POLICY whole ON positions USING (true)", ""},
		{"ALTER POLICY whole ON positions USING (false)", "row-level security may hide rows of positions from the venue"},
	} {
		if _, err := live.Exec(ctx, c.sql); err != nil {
			t.Fatal(err)
		}
		merge, err := projections.OpenMerge(ctx, live, "rebuilt", func(context.Context, map[string]projections.Checkpoint) error { return nil })
		if err == nil {
			if _, err = merge.Compare(ctx); err == nil {
				_, err = merge.Apply(ctx)
			}
			merge.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.sql, err, c.want)
		}
	}
}
