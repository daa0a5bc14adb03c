package projections_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestDataDictionary wants a comment on every table, view and column, and no name that a query would have to quote.
func TestDataDictionary(t *testing.T) {
	pool := projectiontest.Database(t)
	list := func(sql string) []string {
		t.Helper()
		rows, err := pool.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	const columns = ` FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum >= 0 AND NOT a.attisdropped
		WHERE c.relnamespace IN ('public'::regnamespace, 'analytics'::regnamespace) AND c.relkind IN ('r', 'v', 'm', 'p') AND c.relname <> 'schema_versions'`
	if n := len(list("SELECT c.relname || '.' || a.attname" + columns)); n < 380 {
		t.Fatalf("only %d columns", n)
	}
	for _, name := range list(`SELECT c.relname || '.' || a.attname` + columns + ` AND length(COALESCE(col_description(c.oid, a.attnum), '')) < 10`) {
		t.Errorf("the column %s has no comment", name)
	}
	for _, name := range list(`SELECT DISTINCT c.relname` + columns + ` AND length(COALESCE(obj_description(c.oid, 'pg_class'), '')) < 10`) {
		t.Errorf("%s has no comment", name)
	}
	for _, name := range list(`SELECT c.relname || '.' || a.attname` + columns + ` AND (a.attname IN (SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T'))
		OR c.relname IN (SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')))`) {
		t.Errorf("%s is a reserved word", name)
	}
}
