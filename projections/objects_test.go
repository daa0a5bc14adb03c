package projections_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// objects returns the names that a list of postgres.Objects contains, in order.
func objects(t *testing.T, list string) []string {
	t.Helper()
	_, after, found := strings.Cut(postgres.Objects, "SET LOCAL perpetua."+list+" = '")
	names, _, ended := strings.Cut(after, "';")
	if !found || !ended {
		t.Fatalf("there is no list %s", list)
	}
	return slices.Sorted(slices.Values(strings.Fields(names)))
}

// TestObjectsAreThoseOfTheMigrations compares the lists with the catalog of a database that was just migrated.
func TestObjectsAreThoseOfTheMigrations(t *testing.T) {
	ctx := t.Context()
	live := projectiontest.Open(t, projectiontest.VenueURL(t))
	// One like those of an administrator whose user is in --database-url: the venue's user owns it too.
	if _, err := live.Exec(ctx, "CREATE VIEW raw_owners AS SELECT encode(fields, 'hex') AS fields FROM owners"); err != nil {
		t.Fatal(err)
	}
	if err := projections.GrantReaders(ctx, live); err != nil {
		t.Fatal(err)
	}
	var readers bool
	if err := live.QueryRow(ctx, "SELECT has_any_column_privilege('perpetua_reader', 'raw_owners', 'SELECT')").
		Scan(&readers); err != nil || readers {
		t.Errorf("readers may read a view that no migration made (%v)", err)
	}
	if _, err := live.Exec(ctx, "DROP VIEW raw_owners"); err != nil {
		t.Fatal(err)
	}
	const ours = "NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND nspname !~ '^pg_temp'"
	readable, withheld := objects(t, "readable"), objects(t, "withheld")
	for _, c := range []struct {
		what, sql string
		want      []string
	}{
		{"relations besides indexes and sequences of columns", `SELECT c.oid::regclass::text
			FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname ` + ours + ` AND relkind NOT IN ('i', 'I', 't') AND NOT relispartition
				AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
					AND deptype IN ('a', 'i') AND relkind = 'S')`,
			slices.Concat(readable, withheld)},
		{"relations that readers may read", `SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
			WHERE nspname ` + ours + ` AND relkind <> 'S' AND has_any_column_privilege('perpetua_reader', c.oid, 'SELECT')`, readable},
		{"routines", `SELECT replace(p.oid::regprocedure::text, 'timestamp with time zone', 'timestamptz') FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
			WHERE nspname ` + ours, objects(t, "routines")},
		{"types besides those of rows and arrays", `SELECT t.oid::regtype::text
			FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace LEFT JOIN pg_class c ON c.oid = typrelid
			WHERE nspname ` + ours + ` AND typcategory <> 'A' AND (c.oid IS NULL OR c.relkind = 'c')`, objects(t, "types")},
		{"schemas besides public, with those of tools", `SELECT nspname FROM pg_namespace
			WHERE nspname ` + ours + ` AND nspname <> 'public' UNION VALUES ('audited'), ('rebuilt')`,
			objects(t, "schemas")},
	} {
		rows, err := live.Query(ctx, c.sql)
		if err != nil {
			t.Fatal(err)
		}
		there, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(there)
		if want := slices.Sorted(slices.Values(c.want)); !slices.Equal(there, want) {
			t.Errorf("%s:\n%v, listed are\n%v", c.what, there, want)
		}
	}
}
