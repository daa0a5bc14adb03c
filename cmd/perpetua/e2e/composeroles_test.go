package e2e

import (
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// venuePassword is the password of perpetua_venue in these tests.
const venuePassword = "venue5"

// bareServer starts a Postgres that has a superuser and a database, and none of the venue's roles, as an image does.
func bareServer(t *testing.T) (address string, admin *pgxpool.Pool) {
	t.Helper()
	dir, err := projectiontest.Folder("perpetua-bare-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := postgres.Start(t.Context(), postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	admin = projectiontest.Open(t, server.AdminURL())
	for _, sql := range []string{"ALTER DATABASE perpetua OWNER TO perpetua", "DROP OWNED BY perpetua_venue",
		"DROP ROLE perpetua_venue", "DROP ROLE perpetua_reader"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	return server.AdminURL(), admin
}

// mounted returns the path in the repository of what compose mounts at a path of the container of Postgres.
func mounted(t *testing.T, at string) string {
	t.Helper()
	for _, volume := range readDeployment(t).services["postgres"].Volumes {
		if from, to, ok := strings.Cut(strings.TrimSuffix(volume, ":ro"), ":"); ok && to == at {
			return filepath.Join(dockerDir, from)
		}
	}
	t.Fatalf("nothing is mounted at %s", at)
	return ""
}

// makeRoles runs the script of compose as the user and on the database of a URL, and returns the URL of the venue's role.
func makeRoles(t *testing.T, address string) (venue string) {
	t.Helper()
	program.Need(t, "psql")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	script := exec.CommandContext(t.Context(), "sh", mounted(t, "/docker-entrypoint-initdb.d/roles.sh"))
	script.Env = append(os.Environ(), "PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGPASSWORD="+password,
		"PERPETUA_SQL="+mounted(t, "/perpetua-sql"), "POSTGRES_USER="+u.User.Username(),
		"POSTGRES_DB="+strings.TrimPrefix(u.Path, "/"), "POSTGRES_VENUE_PASSWORD="+venuePassword)
	if said, err := script.CombinedOutput(); err != nil {
		t.Fatalf("the script: %v\n%s", err, said)
	}
	u.User = url.UserPassword(postgres.Owner, venuePassword)
	return u.String()
}

// checkVenueRole migrates as the venue's role, and checks what that role and the readers may do.
func checkVenueRole(t *testing.T, venue string) {
	t.Helper()
	pool := projectiontest.Open(t, venue)
	if _, err := projections.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := projections.GrantReaders(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	for what, sql := range map[string]string{
		"the role has attributes": `SELECT NOT (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
			FROM pg_roles WHERE rolname = current_user`,
		"the role owns no database": `SELECT pg_get_userbyid(datdba) = current_user
			FROM pg_database WHERE datname = current_database()`,
		"others own tables":          "SELECT count(*) = 0 FROM pg_tables WHERE schemaname = 'public' AND tableowner <> current_user",
		"there are no tables":        "SELECT count(*) > 0 FROM pg_tables WHERE schemaname = 'public'",
		"readers can log in":         "SELECT NOT rolcanlogin FROM pg_roles WHERE rolname = 'perpetua_reader'",
		"readers have no timeout":    "SELECT rolconfig = '{statement_timeout=1min}' FROM pg_roles WHERE rolname = 'perpetua_reader'",
		"readers cannot read orders": "SELECT has_table_privilege('perpetua_reader', 'orders', 'SELECT')",
		"readers read sealed fields": "SELECT NOT has_column_privilege('perpetua_reader', 'owners', 'fields', 'SELECT')",
	} {
		var good bool
		if err := pool.QueryRow(t.Context(), sql).Scan(&good); err != nil || !good {
			t.Errorf("%s (%v)", what, err)
		}
	}
}

// TestComposeMakesTheVenuesRole runs the script of compose on an empty database, twice.
func TestComposeMakesTheVenuesRole(t *testing.T) {
	t.Parallel()
	address, _ := bareServer(t)
	for range 2 {
		checkVenueRole(t, makeRoles(t, address))
	}
}

// TestComposeConvertsADatabase runs the script on a database of an earlier version, whose tables belong to the superuser, twice.
func TestComposeConvertsADatabase(t *testing.T) {
	t.Parallel()
	address, admin := bareServer(t)
	if _, err := projections.Migrate(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "CREATE VIEW raw_owners AS SELECT encode(fields, 'hex') FROM owners"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		checkVenueRole(t, makeRoles(t, address))
		var private bool
		if err := admin.QueryRow(t.Context(), `SELECT relowner = current_user::regrole AND relacl IS NULL FROM pg_class
			WHERE relname = 'raw_owners'`).Scan(&private); err != nil || !private {
			t.Errorf("the administrator's view is no longer private (%v)", err)
		}
	}
}

// TestRolesOfAManagedPostgres runs the script as an administrator who is not a superuser, on a database of another name.
func TestRolesOfAManagedPostgres(t *testing.T) {
	t.Parallel()
	address, admin := bareServer(t)
	for _, sql := range []string{"CREATE ROLE manager LOGIN CREATEROLE CREATEDB PASSWORD 'm1'",
		"CREATE DATABASE managed OWNER manager"} {
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword("manager", "m1"), "/managed"
	for range 2 {
		checkVenueRole(t, makeRoles(t, u.String()))
	}
}
