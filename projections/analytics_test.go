package projections_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// texts returns the rows of a query with one column.
func texts(t *testing.T, pool *pgxpool.Pool, sql string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const viewsOfAnalysts = "SELECT relname::text FROM pg_class WHERE relnamespace = 'analytics'::regnamespace AND relkind = 'v' ORDER BY 1"

// TestViewsOfAnalysts reads each view with no more than the rights of a reader on the tables, and checks what it says of itself.
func TestViewsOfAnalysts(t *testing.T) {
	url := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, url)
	if err := projections.GrantReaders(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	views := texts(t, live, viewsOfAnalysts)
	if len(views) < 20 {
		t.Errorf("the views are %v", views)
	}
	if listed := texts(t, live, "SELECT name FROM analytics.contents WHERE version = 1 AND length(description) > 20 ORDER BY name"); !slices.Equal(listed, views) {
		t.Errorf("listed are %v, not %v", listed, views)
	}
	for _, function := range texts(t, live, `SELECT proname::text FROM pg_proc WHERE pronamespace = 'analytics'::regnamespace
			AND COALESCE(obj_description(oid, 'pg_proc'), '') !~ '^Version 1\. '`) {
		t.Errorf("the function %s has no comment with a version", function)
	}
	// The sequences of book_orders have other names, and contents is not about records.
	for _, view := range texts(t, live, `SELECT relname::text FROM pg_class c WHERE relnamespace = 'analytics'::regnamespace AND relkind = 'v'
			AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = c.oid AND attname IN ('sequence', 'last_sequence'))`) {
		if view != "book_orders" && view != "contents" {
			t.Errorf("%s has no position", view)
		}
	}
	admin := projectiontest.Open(t, projectiontest.Admin(t, url))
	if texts(t, admin, "SELECT (current_setting('server_version_num')::integer >= 150000)::text")[0] == "true" {
		for _, view := range views {
			if _, err := live.Exec(t.Context(), "ALTER VIEW analytics."+view+" SET (security_invoker = on)"); err != nil {
				t.Fatal(err)
			}
		}
	}
	cfg := admin.Config()
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET ROLE perpetua_reader")
		return err
	}
	reader, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	for _, view := range views {
		if _, err := reader.Exec(t.Context(), "SELECT * FROM analytics."+view); err != nil {
			t.Errorf("as a reader, %s: %v", view, err)
		}
	}
}

// TestScratchHasNoViews makes tables beside the live ones. The views for analysts stay those of the live tables.
func TestScratchHasNoViews(t *testing.T) {
	url := projectiontest.MigratedURL(t)
	live := projectiontest.Open(t, url)
	before := texts(t, live, "SELECT definition FROM pg_views WHERE schemaname = 'analytics' ORDER BY viewname")
	_, remove, err := projections.OpenScratch(t.Context(), url, "rebuilt")
	if err != nil {
		t.Fatal(err)
	}
	const schemas = "SELECT nspname::text FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
	if got := texts(t, live, schemas); !slices.Equal(got, []string{"analytics", "lake", "public", "rebuilt"}) {
		t.Errorf("the schemas are %v", got)
	}
	remove()
	if after := texts(t, live, "SELECT definition FROM pg_views WHERE schemaname = 'analytics' ORDER BY viewname"); !slices.Equal(after, before) {
		t.Error("the views have changed")
	}
}

// TestForeignAnalytics migrates a database in which somebody else has the schema, and again after it was renamed.
func TestForeignAnalytics(t *testing.T) {
	url := projectiontest.URL(t)
	admin, venue := projectiontest.Open(t, projectiontest.Admin(t, url)), projectiontest.Open(t, url)
	if texts(t, venue, "SELECT rolsuper::text FROM pg_roles WHERE rolname = current_user")[0] == "true" {
		t.Skip("the venue's user is a superuser, to whom every schema belongs")
	}
	if _, err := admin.Exec(t.Context(), "CREATE SCHEMA analytics"); err != nil {
		t.Fatal(err)
	}
	if _, err := projections.Migrate(t.Context(), venue); err == nil || !strings.Contains(err.Error(), "the schema analytics belongs to another user") {
		t.Errorf("beside the schema of another user: %v", err)
	}
	if _, err := admin.Exec(t.Context(), "ALTER SCHEMA analytics RENAME TO reports"); err != nil {
		t.Fatal(err)
	}
	if _, err := projections.Migrate(t.Context(), venue); err != nil {
		t.Fatal(err)
	}
	if views := texts(t, venue, viewsOfAnalysts); len(views) < 20 {
		t.Errorf("the views are %v", views)
	}
}
