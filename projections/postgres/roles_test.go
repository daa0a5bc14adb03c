package postgres_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/jobs"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// refused checks that a statement fails with insufficient privileges.
func refused(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	_, err := c.Exec(t.Context(), sql)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != "42501" {
		t.Errorf("%s, as %s: %v", sql, c.Config().User, err)
	}
}

// run executes statements that must succeed.
func run(t *testing.T, c *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s, as %s: %v", sql, c.Config().User, err)
		}
	}
}

// migrate does what a venue does with its database when it starts.
func migrate(t *testing.T, address string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = projections.Migrate(t.Context(), pool)
	if err := errors.Join(err, projections.GrantReaders(t.Context(), pool), jobs.Migrate(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
}

// as returns the address of a server for another user.
func as(t *testing.T, address, user string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, "secret")
	return u.String()
}

// private are statements of an administrator who makes objects that are nobody else's.
var private = []string{
	"CREATE VIEW raw_owners AS SELECT encode(fields, 'hex') AS fields, encode(external_id, 'hex') AS external_id FROM owners",
	"CREATE TABLE notes AS SELECT 7 AS n", "CREATE MATERIALIZED VIEW frozen AS SELECT n FROM notes", "CREATE SEQUENCE alone",
	"CREATE FOREIGN DATA WRAPPER bare", "CREATE SERVER elsewhere FOREIGN DATA WRAPPER bare",
	"CREATE FOREIGN TABLE far (n integer) SERVER elsewhere",
	"REVOKE ALL ON raw_owners, notes, frozen, far FROM PUBLIC, dashboard",
	"CREATE FUNCTION whoami() RETURNS text LANGUAGE sql SECURITY DEFINER AS 'SELECT current_user::text'",
	"CREATE FUNCTION list_page(n integer) RETURNS integer LANGUAGE sql AS 'SELECT n'",
	"CREATE TYPE mood AS ENUM ('calm')", "CREATE SCHEMA desk", "CREATE TABLE desk.orders (n integer)", "CREATE SCHEMA audited",
}

// superusers are what the superuser owns in the database, and the privileges on it.
const superusers = `SELECT 'relation ' || oid::regclass || COALESCE(relacl::text, '') FROM pg_class
		WHERE relowner = 10 AND oid >= 16384 AND relkind <> 'i' AND relnamespace <> 'pg_toast'::regnamespace
	UNION ALL SELECT 'routine ' || oid::regprocedure || COALESCE(proacl::text, '') FROM pg_proc WHERE proowner = 10 AND oid >= 16384
	UNION ALL SELECT 'type ' || oid::regtype FROM pg_type
		WHERE typowner = 10 AND oid >= 16384 AND typcategory <> 'A' AND typrelid = 0
	UNION ALL SELECT 'schema ' || nspname || COALESCE(nspacl::text, '') FROM pg_namespace WHERE nspowner = 10 AND oid >= 16384
	UNION ALL SELECT 'database ' || datname FROM pg_database WHERE datdba = 10 AND datname = 'perpetua'
	ORDER BY 1`

// column returns the rows of a query with one column.
func column(t *testing.T, c *pgx.Conn, sql string) []string {
	t.Helper()
	rows, err := c.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// checkPrivate checks that an administrator's objects are as they were, and that readers cannot read them.
func checkPrivate(t *testing.T, s *postgres.Server, want []string) {
	t.Helper()
	if got := column(t, connect(t, s.AdminURL()), superusers); !slices.Equal(got, want) {
		t.Errorf("the superuser owns\n%q, not\n%q", got, want)
	}
	venue, analyst := connect(t, s.URL()), connect(t, as(t, s.URL(), "analyst"))
	if name := ask[string](t, venue, "SELECT whoami()"); name != "perpetua" {
		t.Errorf("the superuser's function runs as %s", name)
	}
	for _, c := range []*pgx.Conn{venue, analyst} {
		for _, name := range []string{"raw_owners", "notes", "frozen"} {
			refused(t, c, "SELECT * FROM "+name)
		}
		if ask[bool](t, c, "SELECT has_any_column_privilege('far', 'SELECT')") { // a SELECT would ask the wrapper first
			t.Errorf("%s may read the foreign table", c.Config().User)
		}
	}
	run(t, analyst, "SELECT * FROM orders", "SELECT id FROM owners")
	refused(t, analyst, "SELECT fields FROM owners")
}

// TestTheVenueIsNoSuperuser checks what the venue's role may not do.
func TestTheVenueIsNoSuperuser(t *testing.T) {
	c := connect(t, start(t, usedFolder(t)).URL())
	for _, sql := range []string{"CREATE ROLE intruder", "SELECT pg_read_file('postmaster.pid')", "COPY (SELECT 1) TO PROGRAM 'true'",
		"CREATE DATABASE another", "ALTER ROLE current_user SUPERUSER", "GRANT pg_read_all_data TO current_user"} {
		refused(t, c, sql)
	}
}

// TestReadersHaveATimeout checks the setting of the role itself. A server of an earlier version, whose role has none, gets it with
// the next start; one whose administrator has set another time keeps that.
func TestReadersHaveATimeout(t *testing.T) {
	const timeout = "SELECT setting FROM pg_roles, unnest(rolconfig) AS setting WHERE rolname = 'perpetua_reader'"
	dir := usedFolder(t)
	for _, c := range []struct{ change, want string }{
		{"SELECT 1", "statement_timeout=1min"},
		{"ALTER ROLE perpetua_reader RESET ALL", "statement_timeout=1min"},
		{"ALTER ROLE perpetua_reader SET statement_timeout = '7s'", "statement_timeout=7s"},
	} {
		s := start(t, dir)
		run(t, connect(t, s.AdminURL()), c.change)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = start(t, dir)
		if got := column(t, connect(t, s.URL()), timeout); !slices.Equal(got, []string{c.want}) {
			t.Errorf("after %s: %q, not %s", c.change, got, c.want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheSuperuserKeepsItsObjects starts a server again and again on which a superuser has made objects.
func TestTheSuperuserKeepsItsObjects(t *testing.T) {
	dir := usedFolder(t)
	s := start(t, dir)
	migrate(t, s.URL())
	admin := connect(t, s.AdminURL())
	run(t, admin, "CREATE ROLE dashboard")
	run(t, admin, private...)
	run(t, admin, "CREATE ROLE analyst LOGIN PASSWORD 'secret' IN ROLE perpetua_reader",
		"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO dashboard")
	want := column(t, admin, superusers)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = start(t, dir)
		migrate(t, s.URL())
		checkPrivate(t, s, want)
		given := column(t, connect(t, s.URL()), "SELECT defaclacl::text FROM pg_default_acl WHERE defaclrole = current_user::regrole")
		if len(given) > 0 {
			t.Errorf("default privileges on what the venue makes: %v", given)
		}
	}
}

// TestConversion starts a server on a data directory of a version whose venue was the superuser, with tables, with what a
// dashboard was given on them, and with what a superuser made for itself.
func TestConversion(t *testing.T) {
	dir := usedFolder(t)
	s := start(t, dir)
	admin := connect(t, s.AdminURL())
	data := ask[string](t, admin, "SELECT current_setting('data_directory')")
	run(t, admin, "REASSIGN OWNED BY perpetua_venue TO perpetua", "ALTER DATABASE perpetua OWNER TO perpetua",
		"DROP OWNED BY perpetua_venue", "DROP ROLE perpetua_venue", "CREATE ROLE dashboard LOGIN PASSWORD 'secret'",
		"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO dashboard")
	migrate(t, s.AdminURL())
	run(t, admin, "CREATE SCHEMA rebuilt", "CREATE TABLE rebuilt.schema_versions ()") // as a killed rebuild leaves it
	venues := column(t, admin, superusers)
	run(t, admin, private...)
	run(t, admin, "CREATE ROLE analyst LOGIN PASSWORD 'secret' IN ROLE perpetua_reader")
	want := slices.DeleteFunc(column(t, admin, superusers), func(o string) bool { return slices.Contains(venues, o) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(data, "perpetua_venue.password")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second start finds nothing to do
		s = start(t, dir)
		migrate(t, s.URL())
		run(t, connect(t, s.URL()), "DROP SCHEMA IF EXISTS rebuilt CASCADE")
		checkPrivate(t, s, want)
		run(t, connect(t, s.URL()), "ALTER TABLE orders ADD COLUMN IF NOT EXISTS m integer",
			"COMMENT ON VIEW market_trades IS 'public'",
			"INSERT INTO schema_versions (version_id, is_applied) VALUES (0, true)",
			"ALTER TYPE perpetua_jobs.river_job_state ADD VALUE IF NOT EXISTS 'late'",
			"ALTER FUNCTION perpetua_jobs.river_job_state_in_bitmask STABLE",
			"INSERT INTO perpetua_jobs.river_queue (name, updated_at) VALUES (now(), now())",
			"DROP TABLE IF EXISTS later", "CREATE TABLE later (n integer)")
		run(t, connect(t, as(t, s.URL(), "dashboard")), "SELECT * FROM orders", "SELECT * FROM market_trades", "SELECT * FROM later")
		running, err := postgres.AdminURL(dir, s.URL())
		if err != nil || running != s.AdminURL() {
			t.Errorf("the administrator's URL is %s, %v", running, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
