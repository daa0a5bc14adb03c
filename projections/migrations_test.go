package projections_test

import (
	"maps"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// A database with rows is taken back to an earlier schema and brought up again: the rows are those that the
// projections write into the new one. A table that came after the earlier schema lost its rows on the way, and is left
// out.
func TestMigrationsKeepTheRows(t *testing.T) {
	ctx := t.Context()
	entries := projectiontest.NewVenue(22).Entries(1500)
	// When a stop fired is in no other row, so a schema that has lost the column gets it back by a rebuild alone.
	forgets := func(pool *pgxpool.Pool) *pgxpool.Pool {
		t.Helper()
		if _, err := pool.Exec(ctx, "UPDATE orders SET triggered = NULL"); err != nil {
			t.Fatal(err)
		}
		return pool
	}
	want := digests(t, forgets(project(t, entries, 0)))
	pool := forgets(project(t, entries[:1200], 0))
	before := digests(t, pool)
	var earlier map[string]projections.Digest
	kept := func(all map[string]projections.Digest) map[string]projections.Digest {
		maps.DeleteFunc(all, func(name string, _ projections.Digest) bool { _, there := earlier[name]; return !there })
		return all
	}
	versions := projectiontest.Migrations(t, pool)
	if _, err := versions.DownTo(ctx, 8); err != nil { // the first schema that had rows in use
		t.Fatal(err)
	}
	earlier = digests(t, pool)
	if len(earlier) < 15 {
		t.Fatalf("only %d tables in the earlier schema", len(earlier))
	}
	if _, err := versions.Up(ctx); err != nil {
		t.Fatal(err)
	}
	same(t, kept(digests(t, pool)), kept(before))
	r, stop := start(t, pool, projectiontest.NewLog(entries...))
	wait(t, r, 1499)
	stop()
	same(t, kept(digests(t, forgets(pool))), kept(want))
}
