// Package projectiontest gives tests a Postgres of their own, a log in memory, and entries to put into it.
package projectiontest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"os"
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

// server is the URL of the server that Main started; TestMain offers no way to hand a value to the tests.
var server = os.Getenv(URLVariable)

// Main runs a package's tests with a Postgres server and returns the exit code. Call it from TestMain.
func Main(m *testing.M) int {
	if server != "" {
		return m.Run()
	}
	dir, err := Folder("perpetua-projections-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := postgres.Start(ctx, postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting Postgres:", err)
		return 1
	}
	defer func() { _ = s.Close() }()
	server = s.URL()
	return m.Run()
}

// URL returns the URL of a new and empty database. On a server that isn't Main's, the end of the test drops it.
func URL(t testing.TB) string {
	t.Helper()
	name := "test_" + rand.Text()[:16]
	execute(t, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if os.Getenv(URLVariable) != "" {
		t.Cleanup(func() { execute(t, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)") })
	}
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// Open opens the database at the URL and migrates it. The pool is closed at the end of the test.
func Open(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := projections.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := projections.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// Database returns a pool on a new, migrated database.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return Open(t, URL(t))
}

func execute(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if server == "" {
		t.Fatal("projectiontest.Main was not called")
	}
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
