package projectiontest

import (
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/perpetua-exchange/perpetua/schemas"
)

// Migrations returns what takes the schema of a database back to an earlier one, and brings it up again.
func Migrations(t testing.TB, pool *pgxpool.Pool) *goose.Provider {
	t.Helper()
	files, err := fs.Sub(schemas.SQL, "sql")
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { _ = db.Close() })
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName("schema_versions"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
