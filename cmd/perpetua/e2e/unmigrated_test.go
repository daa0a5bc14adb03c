package e2e

import (
	"net/url"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestToolsWithoutTables runs the tools that need the read models on a database that was never migrated, and on one that an
// older build migrated.
func TestToolsWithoutTables(t *testing.T) {
	t.Parallel()
	v := newVenue(t)
	v.start()
	t.Cleanup(v.stop)
	empty, old := projectiontest.URL(t), projectiontest.MigratedURL(t)
	db := projectiontest.Open(t, old)
	if _, err := db.Exec(t.Context(), `DELETE FROM schema_versions
		WHERE version_id = (SELECT max(version_id) FROM schema_versions)`); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{empty: " has no tables of a venue: perpetua migrate", old: "run perpetua migrate"} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		want = "the database " + strings.TrimPrefix(u.Path, "/") + " at " + u.Host + "…" + want
		named, todo, _ := strings.Cut(want, "…")
		for _, tool := range [][]string{{"audit"}, {"rebuild"}, {"rebuild", "--compare-only"}, {"admin", "reader", "--name", "ann"}} {
			code, said := v.outcome(nil, append(tool, "--database-url", address)...)
			oneLine := strings.Count(strings.TrimSpace(said), "\n") == 0
			if code != exitFailed || !oneLine || !strings.Contains(said, named) || !strings.Contains(said, todo) {
				t.Errorf("%v exits with %d, want %q:\n%s", tool, code, want, said)
			}
		}
	}
}
