package projections_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// code returns the SQLSTATE of an error.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

// TestReadersReadNothingSealed logs in as a reader and reads every column of every table and view.
func TestReadersReadNothingSealed(t *testing.T) {
	ctx := t.Context()
	url := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, url)
	for range 2 { // the second time there is nothing to grant
		if err := projections.GrantReaders(ctx, live); err != nil {
			t.Fatal(err)
		}
	}
	admin, err := pgx.Connect(ctx, projectiontest.Admin(t, url))
	if err != nil {
		t.Fatal(err)
	}
	name := "reader_" + strings.ToLower(rand.Text()[:12])
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if _, err := admin.Exec(ctx, "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
		admin.Close(ctx)
	})
	if err := projections.AddReader(ctx, admin, name, "it's secret", time.Minute); err != nil {
		t.Fatal(err)
	}
	reader := projectiontest.Open(t, projectiontest.As(t, url, name, "it's secret"))
	var timeout string
	if err := reader.QueryRow(ctx, "SHOW statement_timeout").Scan(&timeout); err != nil || timeout != "1min" {
		t.Errorf("statement_timeout is %s, %v", timeout, err)
	}
	sealed := map[string]bool{}
	for _, column := range strings.Fields(`owners.external_id owners.fields owner_history.external_id owner_history.fields trigger_history.reason erasures.reason holds.reason documents.name responses.answers triggers.reason
		trigger_events.reason trigger_events.internal_reason trigger_events.external_reference webhooks.private_key webhooks.next_private_key
		delivery_attempts.response notices.reason`) {
		sealed[column] = true
	}
	rows, err := live.Query(ctx, `SELECT c.oid::regclass::text, a.attname::text, COALESCE(col_description(c.oid, a.attnum), '')
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
		WHERE c.relnamespace IN ('public'::regnamespace, 'analytics'::regnamespace) AND c.relkind IN ('r', 'v', 'p') AND NOT c.relispartition AND c.relname NOT IN ('schema_versions', 'changed_rows') AND NOT a.attisdropped`)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name, Comment string }])
	if err != nil || len(columns) < 380 {
		t.Fatalf("%d columns, %v", len(columns), err)
	}
	for _, c := range columns {
		full := c.Table + "." + c.Name
		_, err := reader.Exec(ctx, "SELECT "+c.Name+" FROM "+c.Table+" LIMIT 1")
		if hidden := sealed[full]; hidden && code(err) != "42501" || !hidden && err != nil {
			t.Errorf("reading %s: %v", full, err)
		}
		if strings.HasPrefix(c.Comment, "Sealed") && !sealed[full] {
			t.Errorf("%s is sealed and can be read", full)
		}
		delete(sealed, full)
	}
	if len(sealed) > 0 {
		t.Errorf("there are no columns %v", sealed)
	}
	for _, statement := range []string{"UPDATE balances SET balance = 0", "DELETE FROM orders", "CREATE TABLE loot (n integer)", "CREATE TEMPORARY TABLE loot (n integer)", "SELECT * FROM owners", "SELECT * FROM changed_rows"} {
		if _, err := reader.Exec(ctx, "SET TRANSACTION READ WRITE; "+statement); code(err) != "42501" {
			t.Errorf("%s: %v", statement, err)
		}
	}
	if _, err := live.Exec(ctx, "CREATE TEMPORARY TABLE own (n integer); DROP TABLE own"); err != nil {
		t.Errorf("the owner's temporary table: %v", err)
	}
	if err := projections.AddReader(ctx, admin, name, "other", 2*time.Second); err != nil {
		t.Error(err)
	}
	again := projectiontest.Open(t, projectiontest.As(t, url, name, "other"))
	if _, err := again.Exec(ctx, "SELECT pg_sleep(60)"); code(err) != "57014" {
		t.Errorf("after the change, a long query: %v", err)
	}
	if err := projections.AddReader(ctx, admin, admin.Config().User, "x", time.Hour); err == nil {
		t.Error("the administrator was made a reader")
	}
}

// TestWithoutTheRightToMakeRoles migrates as a user who may not make roles, on a server without the role of readers.
func TestWithoutTheRightToMakeRoles(t *testing.T) {
	ctx := t.Context()
	dir, err := projectiontest.Folder("perpetua-roles-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := postgres.Start(ctx, postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	as := func(url string) *pgxpool.Pool { return projectiontest.Open(t, url) }
	admin, venue := as(server.AdminURL()), as(server.URL())
	run := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(ctx, sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	run("DROP ROLE perpetua_reader")
	if _, err := projections.Migrate(ctx, venue); err != nil {
		t.Fatal(err)
	}
	if err := projections.GrantReaders(ctx, venue); !errors.Is(err, projections.ErrNoReaderRole) || !strings.Contains(err.Error(), projections.CreateReaderRole) {
		t.Errorf("granting without the role: %v", err)
	}
	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := projections.AddReader(ctx, conn, "ann", "x", time.Minute); err == nil || !strings.Contains(err.Error(), "IN ROLE perpetua_reader; ALTER ROLE") {
		t.Errorf("a user made without the right to: %v", err)
	}
	readable := func() (yes bool) { // within a minute
		t.Helper()
		if err := admin.QueryRow(ctx, `SELECT has_table_privilege('perpetua_reader', 'orders', 'SELECT') AND NOT has_column_privilege('perpetua_reader', 'owners', 'fields', 'SELECT')
			AND (SELECT rolconfig = '{statement_timeout=1min}' FROM pg_roles WHERE rolname = 'perpetua_reader')`).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		return yes
	}
	run(projections.CreateReaderRole)
	if err := projections.GrantReaders(ctx, venue); err != nil || !readable() {
		t.Errorf("once an administrator has made the role: %v", err)
	}
	run("DROP OWNED BY perpetua_reader")
	run("DROP ROLE perpetua_reader")
	run("ALTER ROLE perpetua_venue CREATEROLE")
	if err := projections.GrantReaders(ctx, venue); err != nil || !readable() {
		t.Errorf("by a user who may make roles: %v", err)
	}
}
