package dataset

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// schemas is the folder of the dbt project and of its documentation.
const schemas = "../../schemas"

// duckSums is query for DuckDB.
func duckSums(t *testing.T, env projectiontest.Analysts, sql string) sums {
	t.Helper()
	found := make(sums)
	for _, row := range env.Duck(t, sql) {
		last := len(row) - 1
		found[strings.Join(row[:last], " ")+"\n"] = text(t, row[last])
	}
	return found
}

// TestAnalysts has DuckDB read the files, and dbt build its project on the rows of the same venue, with the rights of a reader who owns one schema.
func TestAnalysts(t *testing.T) {
	env := projectiontest.NewAnalysts(t)
	v := newVenue(t, 500)
	t.Run("DuckDB", func(t *testing.T) { v.duck(t, env) })
	t.Run("the example", func(t *testing.T) { v.example(t, env) })
	t.Run("dbt", func(t *testing.T) { v.dbt(t, env) })
}

// duck compares DuckDB's sums with those of SQL, and the types of columns with those that are documented.
func (v *venue) duck(t *testing.T, env projectiontest.Analysts) {
	pool := projectiontest.Open(t, v.url)
	for what, c := range map[string]struct{ table, duck, sql string }{
		"profits and fees": {"postings", `SELECT (time AT TIME ZONE 'UTC')::date, customer_code, sum(amount) FROM %s
			WHERE customer_code IS NOT NULL AND type NOT IN ('deposit', 'withdrawal') GROUP BY 1, 2`, `SELECT day::text, customer_code, net_pnl::text FROM analytics.pnl_daily`},
		"postings of the venue": {"postings", `SELECT (time AT TIME ZONE 'UTC')::date, account, type, sum(amount) FROM %s WHERE account IS NOT NULL GROUP BY 1, 2, 3`,
			`SELECT day::text, account, type, amount::text FROM analytics.venue_daily`},
		"funding": {"funding", `SELECT (time AT TIME ZONE 'UTC')::date, customer_code, symbol, sum(amount) FROM %s GROUP BY 1, 2, 3`,
			`SELECT day::text, customer_code, symbol, funding::text FROM analytics.funding_daily`},
		"volume": {"trades", `SELECT (time AT TIME ZONE 'UTC')::date, symbol, sum(amount) FROM %s WHERE role = 'taker' GROUP BY 1, 2`,
			`SELECT (hour AT TIME ZONE 'UTC')::date::text, symbol, sum(volume)::text FROM analytics.trades_hourly GROUP BY 1, 2`},
		"fees": {"trades", `SELECT (time AT TIME ZONE 'UTC')::date, customer_code, symbol, sum(fee) FROM %s GROUP BY 1, 2, 3`,
			`SELECT day::text, customer_code, symbol, fees::text FROM analytics.fees_daily`},
		"losses by liquidation": {"liquidations", `SELECT customer_code, symbol, sum(realized_pnl) FROM %s GROUP BY 1, 2`,
			`SELECT customer_code, symbol, sum(realized_pnl)::text FROM analytics.liquidations GROUP BY 1, 2`},
		"positions": {"positions", `SELECT customer_code, symbol, arg_max(amount, [sequence, ordinal]) FROM %s GROUP BY 1, 2`,
			`SELECT customer_code, symbol, amount::text FROM positions`},
		"filled amounts": {"orders", `SELECT code, arg_max(status, [sequence, ordinal]), arg_max(filled_amount, [sequence, ordinal]) FROM %s GROUP BY 1`,
			`SELECT code::text, status, filled_amount::text FROM orders`},
		"applications": {"triggers", `SELECT (time AT TIME ZONE 'UTC')::date, owner_type, status, count(*) FROM %s GROUP BY 1, 2, 3`,
			`SELECT day::text, owner_type, state, sum(events)::text FROM analytics.onboarding_daily WHERE event = 'trigger' GROUP BY 1, 2, 3`},
		"responses": {"responses", `SELECT (time AT TIME ZONE 'UTC')::date, tenant, owner_type, count(*) FROM %s GROUP BY 1, 2, 3`,
			`SELECT day::text, tenant, owner_type, events::text FROM analytics.onboarding_daily WHERE event = 'response'`},
	} {
		files := "read_parquet('" + filepath.Join(v.dir, c.table, "*.parquet") + "')"
		duckSums(t, env, fmt.Sprintf(c.duck, files)).same(t, what+" in DuckDB", query(t, pool, c.sql))
	}
	for _, table := range tables() {
		for _, row := range env.Duck(t, "DESCRIBE SELECT * FROM read_parquet('"+filepath.Join(v.dir, table.name, "*.parquet")+"')") {
			switch row[1] {
			case "BIGINT", "VARCHAR", "BOOLEAN", "UUID", "DECIMAL(38,18)", "TIMESTAMP WITH TIME ZONE":
			default:
				t.Errorf("the column %s of %s has the type %s", row[0], table.name, row[1])
			}
		}
	}
}

// exampleBlock matches the example of a query in the documentation.
var exampleBlock = regexp.MustCompile("(?s)## Parquet\n.*?```sql\n(.*?)```")

// example runs the query of the documentation.
func (v *venue) example(t *testing.T, env projectiontest.Analysts) {
	doc, err := os.ReadFile(filepath.Join(schemas, "README.md"))
	must(t, err)
	found := exampleBlock.FindSubmatch(doc)
	if found == nil {
		t.Fatal("the documentation has no example")
	}
	sql := strings.ReplaceAll(string(found[1]), "'parquet/", "'"+v.dir+"/")
	got := make(sums)
	for _, row := range env.Duck(t, sql) {
		got[fmt.Sprintln(row[0], row[1])] = text(t, row[2])
	}
	got.equal(t, "profits of the example", query(t, projectiontest.Open(t, v.url), `SELECT day::text, customer_code, realized_pnl::text FROM analytics.pnl_daily`))
}

// dbt builds the project, and compares models with views. Then it changes a row, which a test of the project must find.
func (v *venue) dbt(t *testing.T, env projectiontest.Analysts) {
	admin, err := pgx.Connect(t.Context(), projectiontest.Admin(t, v.url))
	must(t, err)
	defer admin.Close(t.Context())
	must(t, projections.GrantReaders(t.Context(), projectiontest.Open(t, v.url)))
	_, err = admin.Exec(t.Context(), "CREATE ROLE dbt_of_a_test LOGIN PASSWORD 'secret' IN ROLE perpetua_reader; CREATE SCHEMA dbt AUTHORIZATION dbt_of_a_test")
	must(t, err)
	defer func() {
		_, err := admin.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY dbt_of_a_test CASCADE; DROP ROLE dbt_of_a_test")
		must(t, err)
	}()
	at, err := url.Parse(v.url)
	must(t, err)
	work := t.TempDir()
	dbt := func(args ...string) (string, error) {
		project := filepath.Join(schemas, "dbt")
		c := exec.CommandContext(t.Context(), env.Tool("dbt"), append(args, "--no-use-colors", "--project-dir", project, "--profiles-dir", project)...)
		c.Env = append(os.Environ(), "PERPETUA_DBT_HOST="+at.Hostname(), "PERPETUA_DBT_PORT="+at.Port(), "PERPETUA_DBT_USER=dbt_of_a_test",
			"PERPETUA_DBT_PASSWORD=secret", "PERPETUA_DBT_DATABASE="+strings.TrimPrefix(at.Path, "/"), "DBT_TARGET_PATH="+filepath.Join(work, "target"),
			"DBT_LOG_PATH="+filepath.Join(work, "logs"))
		out, err := c.CombinedOutput()
		return string(out), err
	}
	out, err := dbt("build", "--warn-error")
	if err != nil || !strings.Contains(out, "Completed successfully") {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Log(out[strings.LastIndex(out, "Done."):])
	pool := projectiontest.Open(t, projectiontest.Admin(t, v.url))
	for model, view := range map[string]string{
		`SELECT day::text, customer_code, net_pnl::text FROM dbt.account_pnl_daily`:                            `SELECT day::text, customer_code, net_pnl::text FROM analytics.pnl_daily`,
		`SELECT symbol, sum(volume)::text FROM dbt.market_volume_daily GROUP BY 1`:                             `SELECT symbol, sum(volume)::text FROM analytics.trades_hourly GROUP BY 1`,
		`SELECT day::text, symbol, funding::text FROM dbt.funding_paid_daily`:                                  `SELECT day::text, symbol, sum(funding)::text FROM analytics.funding_daily GROUP BY 1, 2`,
		`SELECT tenant, entitlement_id::text, sum(created)::text FROM dbt.onboarding_conversion GROUP BY 1, 2`: `SELECT tenant, entitlement_id::text, sum(created)::text FROM analytics.onboarding_funnel GROUP BY 1, 2`,
	} {
		query(t, pool, model).equal(t, model, query(t, pool, view))
	}
	_, err = admin.Exec(t.Context(), "UPDATE balances SET balance = balance + 1 WHERE customer_code = 'C1'")
	must(t, err)
	if out, err := dbt("test", "--select", "balances_are_sums"); err == nil {
		t.Errorf("no test has found a balance that was changed:\n%s", out)
	}
}
