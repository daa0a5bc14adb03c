package projectiontest

import (
	_ "embed"
	"testing"

	"github.com/jackc/pgx/v5"
)

//go:embed testdata/before-0.1.0.sql
var unreleased string

// UnreleasedURL is URL for a database with the empty tables of the last build before version 0.1.0.
func UnreleasedURL(t testing.TB) string {
	t.Helper()
	at := URL(t)
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), unreleased); err != nil {
		t.Fatal(err)
	}
	return at
}
