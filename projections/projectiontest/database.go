// Package projectiontest provides tests with a separate Postgres database, a log in memory, and entries for the log.
package projectiontest

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// URLVariable names the environment variable with the URL of a server to use instead of one that Main starts. Its
// user must be allowed to create databases.
const URLVariable = "PERPETUA_TEST_DATABASE_URL"

// server is the URL of the server that Main started, as its administrator, and databaseOwner the user, with the password, who
// owns the databases; nil for the administrator. copyOption is appended to the statement that copies a database. TestMain offers
// no way to hand a value to the tests.
var (
	server        = os.Getenv(URLVariable)
	databaseOwner *url.Userinfo
	copyOption    string
)

// Main runs a package's tests with a Postgres server and returns the exit code. Call it from TestMain.
func Main(m *testing.M) int {
	if server != "" {
		code := m.Run()
		if err := dropTemplates(); err != nil {
			fmt.Fprintln(os.Stderr, "removing the databases that others were copied from:", err)
		}
		return code
	}
	dir, err := Folder("perpetua-projections-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	s, err := postgres.Start(ctx, postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting Postgres:", err)
		return 1
	}
	defer func() { _ = s.Close() }()
	at, err := url.Parse(s.URL())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server, databaseOwner = s.AdminURL(), at.User
	if err := hasten(); err != nil {
		fmt.Fprintln(os.Stderr, "the settings of Postgres for tests:", err)
		return 1
	}
	return m.Run()
}

// hasten changes settings of the server that Main started. Its data need not survive a crash of the machine, so nothing is
// synced, and the write-ahead log contains no whole pages. This makes checkpoints cheap. The copy of a database by its files
// needs two of them, and takes a third of the processor time of a copy through the write-ahead log. Postgres 14 always copies
// files. Autovacuum would start a process for one database after the other, and change plans in the middle of a test: a test
// that needs statistics says ANALYZE.
func hasten() error {
	for _, sql := range []string{"ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET full_page_writes = off",
		"ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()"} {
		if err := execute(sql); err != nil {
			return err
		}
	}
	at, err := url.Parse(server)
	if err != nil {
		return err
	}
	for _, user := range []*url.Userinfo{at.User, databaseOwner} {
		if err := cheapen(user); err != nil {
			return err
		}
	}
	version, err := serverVersion()
	if err == nil && version >= 15 {
		copyOption = " STRATEGY FILE_COPY"
	}
	return err
}

// cheapen hashes the password of a role again, once instead of 4096 times. A client hashes it as often for each connection.
func cheapen(role *url.Userinfo) error {
	password, _ := role.Password()
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(sha256.New, password, salt, 1, sha256.Size)
	if err != nil {
		return err
	}
	key := func(of string) []byte {
		h := hmac.New(sha256.New, salted)
		h.Write([]byte(of))
		return h.Sum(nil)
	}
	stored, text := sha256.Sum256(key("Client Key")), base64.StdEncoding.EncodeToString
	return execute(fmt.Sprintf("ALTER ROLE %s PASSWORD 'SCRAM-SHA-256$1:%s$%s:%s'", pgx.Identifier{role.Username()}.Sanitize(),
		text(salt), text(stored[:]), text(key("Server Key"))))
}

// URL returns the URL of a new and empty database. On a server that isn't Main's, the end of the test drops it.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, "template1")
}

// MigratedURL is URL for a database that has the tables of the rows, as projections.Migrate leaves it.
func MigratedURL(t testing.TB) string {
	t.Helper()
	return copied(t, rowsTemplate)
}

// VenueURL is URL for a database that has the tables of the rows and of the jobs, as the first start of a venue leaves it.
func VenueURL(t testing.TB) string {
	t.Helper()
	return copied(t, venueTemplate)
}

func copied(t testing.TB, template func() (string, error)) string {
	t.Helper()
	from, err := template()
	if err != nil {
		t.Fatal(err)
	}
	return create(t, from)
}

// create makes a database that is a copy of another.
func create(t testing.TB, from string) string {
	t.Helper()
	name := newName()
	if err := copyDatabase(name, from); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(URLVariable) != "" {
		t.Cleanup(func() {
			if err := dropDatabase(name); err != nil {
				t.Error(err)
			}
		})
	}
	at, err := urlOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// Admin returns the URL of a database that URL, MigratedURL or VenueURL has returned, or of another one on the same
// server, as the administrator of the server.
func Admin(t testing.TB, of string) string {
	t.Helper()
	at, err := url.Parse(of)
	if err == nil {
		var admin *url.URL
		if admin, err = url.Parse(server); err == nil {
			at.User = admin.User
			return at.String()
		}
	}
	t.Fatal(err)
	return ""
}

// As returns the URL of a database as another user.
func As(t testing.TB, of, user, password string) string {
	t.Helper()
	at, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.UserPassword(user, password)
	return at.String()
}

// Recreate drops the database at a URL and makes an empty one of the same name and owner.
func Recreate(t testing.TB, of string) {
	t.Helper()
	at, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(at.Path, "/")
	if err := dropDatabase(name); err != nil {
		t.Fatal(err)
	}
	if err := copyDatabase(name, "template1"); err != nil {
		t.Fatal(err)
	}
}

// Open opens the database at the URL. The pool is closed at the end of the test.
func Open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// open is projections.Open with a minute for each new connection, unless the URL sets connect_timeout. On a busy machine, a connection
// may take longer than the five seconds after which a node tries again.
func open(ctx context.Context, of string) (*pgxpool.Pool, error) {
	at, err := url.Parse(of)
	if err != nil {
		return nil, err
	}
	if settings := at.Query(); !settings.Has("connect_timeout") {
		settings.Set("connect_timeout", "60")
		at.RawQuery = settings.Encode()
	}
	return projections.Open(ctx, at.String())
}

// Database returns a pool on a new, migrated database.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, MigratedURL(t))
}
