package projections_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// catalog describes everything that migrations make in the schema public, one line each. Numbers of columns without gaps
// stand for the order of the columns.
const catalog = `
	SELECT format('relation %s %s %s %s %s', relname, relkind, relpersistence, reloptions, obj_description(c.oid, 'pg_class'))
		FROM pg_class c WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
	UNION ALL SELECT format('column %s.%s %s %s %s %s %s', c.relname, a.attname, format_type(atttypid, atttypmod), attnotnull,
			row_number() OVER (PARTITION BY c.oid ORDER BY attnum), pg_get_expr(d.adbin, d.adrelid), col_description(c.oid, attnum))
		FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped
			LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND adnum = attnum
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
	UNION ALL SELECT format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
		WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
	UNION ALL SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname = 'public'
	UNION ALL SELECT format('view %s %s', viewname, definition) FROM pg_views WHERE schemaname = 'public'
	UNION ALL SELECT format('function %s %s', pg_get_functiondef(oid), obj_description(oid, 'pg_proc')) FROM pg_proc
		WHERE pronamespace = 'public'::regnamespace
	UNION ALL SELECT format('privileges %s %s', proname, EXISTS (SELECT FROM aclexplode(COALESCE(proacl, acldefault('f', proowner))) a
		WHERE a.grantee = 0)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
	UNION ALL SELECT format('trigger %s %s', pg_get_triggerdef(oid), tgenabled) FROM pg_trigger WHERE NOT tgisinternal
	ORDER BY 1`

func lines(t *testing.T, db projections.Querier, sql string) []string {
	t.Helper()
	rows, err := db.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// later matches the objects that migrations after the first release make.
var later = regexp.MustCompile(`\b(bases|signed_trees|cosigned_trees|archive_heads|liabilities|proposals|onboarding_proposals|sweeping|grant_readers|history_\w+|(order|balance|position|owner|document|trigger)_history)(_|\b)`)

// TestTablesBeforeTheFirstRelease: the migrations of the first release make the tables that those of the builds before it
// made. A database of such a build is adopted as it is, and its rows count as outdated until they are rebuilt.
func TestTablesBeforeTheFirstRelease(t *testing.T) {
	ctx := t.Context()
	old := projectiontest.Open(t, projectiontest.UnreleasedURL(t))
	want, had := lines(t, projectiontest.Database(t), catalog), lines(t, old, catalog)
	if len(had) < 600 {
		t.Fatalf("only %d objects", len(had))
	}
	for _, l := range had {
		if !slices.Contains(want, l) && !strings.Contains(l, "grant_readers") { // which later migrations replace
			t.Errorf("the migrations do not make:\n%s", l)
		}
	}
	for _, l := range want {
		if !slices.Contains(had, l) && !later.MatchString(l) {
			t.Errorf("earlier builds did not make:\n%s", l)
		}
	}
	outdated := func() bool {
		t.Helper()
		is, err := projections.Outdated(ctx, old)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	for range 2 {
		if _, err := projections.Migrate(ctx, old); err != nil || !outdated() {
			t.Fatalf("migrating: %v; outdated: %v", err, outdated())
		}
	}
	if have, newest, err := projections.SchemaVersion(ctx, old); err != nil || have != newest {
		t.Errorf("the database is at %d of %d, %v", have, newest, err)
	}
	if twice := lines(t, old, "SELECT version_id::text FROM schema_versions GROUP BY version_id HAVING count(*) > 1"); len(twice) > 0 {
		t.Errorf("versions that are there twice: %v", twice)
	}
	if now := lines(t, old, catalog); !slices.Equal(now, want) {
		t.Error("migrating an earlier database does not make the tables of a new one")
	}
}

// TestTablesBeforeTheLastUnreleased: tables of an even earlier build are refused and not changed.
func TestTablesBeforeTheLastUnreleased(t *testing.T) {
	ctx := t.Context()
	old := projectiontest.Open(t, projectiontest.UnreleasedURL(t))
	if _, err := old.Exec(ctx, "DELETE FROM schema_versions WHERE version_id > 17"); err != nil {
		t.Fatal(err)
	}
	if _, err := projections.Migrate(ctx, old); err == nil || !strings.Contains(err.Error(), "at migration 17 of a build before version 0.1.0") {
		t.Errorf("migrating: %v", err)
	}
	if now := lines(t, old, "SELECT max(version_id)::text FROM schema_versions"); now[0] != "17" {
		t.Errorf("the database is at %s", now[0])
	}
}

// TestOutdatedOfOthers: neither an empty database nor one of this build has outdated rows.
func TestOutdatedOfOthers(t *testing.T) {
	for name, url := range map[string]string{"an empty database": projectiontest.URL(t), "a new one": projectiontest.MigratedURL(t)} {
		if is, err := projections.Outdated(t.Context(), projectiontest.Open(t, url)); is || err != nil {
			t.Errorf("%s: %v, %v", name, is, err)
		}
	}
}
