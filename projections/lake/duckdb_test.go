package lake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	domainledger "github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
)

// attached returns the statements by which a reader attaches the catalog and the tables.
func (v *venue) attached(t testing.TB) string {
	t.Helper()
	must(t, projections.GrantReaders(t.Context(), v.pool))
	admin, err := pgx.Connect(t.Context(), projectiontest.Admin(t, v.url))
	must(t, err)
	defer admin.Close(t.Context())
	name := fmt.Sprintf("analyst_%d", time.Now().UnixNano())
	must(t, projections.AddReader(t.Context(), admin, name, "secret", time.Minute))
	url := projectiontest.As(t, v.url, name, "secret")
	return fmt.Sprintf(`SET TimeZone = 'UTC'; ATTACH 'ducklake:postgres:%[1]s' AS lake (READ_ONLY, META_SCHEMA 'lake'); ATTACH '%[1]s' AS venue (TYPE postgres, READ_ONLY); `, url)
}

// lines returns rows as sorted lines.
func lines(rows [][]string) (all []string) {
	for _, row := range rows {
		all = append(all, strings.Join(row, " "))
	}
	slices.Sort(all)
	return all
}

// query returns the rows of a query in Postgres as sorted lines.
func (v *venue) query(t testing.TB, sql string) []string {
	t.Helper()
	all := v.texts(t, "SELECT concat_ws(' ', VARIADIC array_replace(string_to_array(trim(r::text, '()'), ','), '', NULL)) FROM ("+sql+") r")
	slices.Sort(all)
	return all
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("%s: the venue has none", what)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s in DuckDB:\n%s\nin Postgres:\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// compared are the sums that DuckDB computes over a table, and Postgres over its own. The second has the condition of the rows that are in
// the files as its first argument.
var compared = map[string]struct{ table, duck, sql string }{
	"postings": {"postings", `SELECT COALESCE(customer_code, account), type, currency, count(*), sum(amount) FROM %s GROUP BY ALL`,
		`SELECT COALESCE(customer_code, account), type, currency, count(*), sum(amount)::numeric(38,18) FROM (
			SELECT customer_code, NULL AS account, type, currency, amount, sequence FROM analytics.statement_lines
			UNION ALL SELECT NULL, account, type, currency, amount, sequence FROM venue_postings) x WHERE %s GROUP BY 1, 2, 3`},
	"trades": {"trades", `SELECT customer_code, symbol, role, count(*), sum(amount), sum(fee), sum(notional), max(sequence) FROM %s GROUP BY ALL`,
		`SELECT customer_code, symbol, role, count(*), sum(amount)::numeric(38,18), sum(fee)::numeric(38,18), sum(notional)::numeric(38,18), max(sequence)
			FROM trades WHERE %s GROUP BY 1, 2, 3`},
	"liquidations": {"liquidations", `SELECT customer_code, symbol, count(*), sum(realized_pnl) FROM %s GROUP BY ALL`,
		`SELECT customer_code, symbol, count(*), sum(realized_pnl)::numeric(38,18) FROM analytics.liquidations WHERE %s GROUP BY 1, 2`},
	"funding": {"funding", `SELECT customer_code, symbol, count(*), sum(amount), sum(position_amount) FROM %s GROUP BY ALL`,
		`SELECT customer_code, symbol, count(*), sum(amount)::numeric(38,18), sum(position_amount)::numeric(38,18)
			FROM transactions WHERE type = 'funding' AND %s GROUP BY 1, 2`},
	"funding rates": {"funding_rates", `SELECT sequence, ordinal, symbol, epoch_us(instant), funding_rate, missed::int FROM %s`,
		`SELECT sequence, ordinal, symbol, (extract(epoch FROM time) * 1000000)::bigint, funding_rate::numeric(38,18), missed::int FROM funding_rates WHERE %s`},
	"applications": {"triggers", `SELECT sequence, ordinal, trigger_id, status, COALESCE(tenant, '-') FROM %s`,
		`SELECT v.sequence, v.ordinal, v.trigger_id, v.status, COALESCE((SELECT t.tenant FROM triggers t
			WHERE t.created_sequence = v.sequence AND t.created_ordinal = v.ordinal), '-') FROM trigger_events v WHERE v.status IS NOT NULL AND %s`},
	"responses": {"responses", `SELECT sequence, ordinal, id, tenant, epoch_us(time) FROM %s`,
		`SELECT sequence, ordinal, id, tenant, (extract(epoch FROM created_at) * 1000000)::bigint FROM responses WHERE %s`},
}

// latest are the last states of orders and positions, with newer rows.
var latest = map[string]struct{ duck, sql string }{
	"orders": {`SELECT code, arg_max(status, sequence * 1000 + COALESCE(ordinal, 0)), arg_max(filled_amount, sequence * 1000 + COALESCE(ordinal, 0)),
			epoch_us(max(time)), max(sequence) FROM lake.live.orders GROUP BY 1`,
		`SELECT code, status, filled_amount::numeric(38,18), (extract(epoch FROM updated) * 1000000)::bigint, sequence FROM orders`},
	"positions": {`SELECT customer_code, symbol, arg_max(amount, sequence * 1000 + COALESCE(ordinal, 0)), arg_max(cost, sequence * 1000 + COALESCE(ordinal, 0)),
			epoch_us(max(time)), max(sequence) FROM lake.live.positions GROUP BY ALL`,
		`SELECT customer_code, symbol, amount::numeric(38,18), cost::numeric(38,18), (extract(epoch FROM updated) * 1000000)::bigint, sequence FROM positions`},
}

// TestDuckLake has DuckDB's own extension read the catalog, with half of the log in the files, as a user of `admin reader`.
func TestDuckLake(t *testing.T) {
	env := projectiontest.NewAnalysts(t)
	v := newVenue(t)
	v.project(t, "trading", v.Entries, readmodels.Trading())
	v.project(t, "onboarding", v.onboarding, readmodels.Onboarding())
	v.seal(t, "trading", half(v.Entries))
	v.seal(t, "onboarding", half(v.onboarding))
	must(t, v.filler("trading", nil).Fill(t.Context()))
	must(t, v.filler("onboarding", nil).Fill(t.Context()))
	attach := v.attached(t)
	for what, c := range compared {
		in := fmt.Sprintf("sequence < %d", half(v.Entries))
		if c.table == "triggers" || c.table == "responses" {
			in = fmt.Sprintf("sequence < %d", half(v.onboarding))
		}
		got := lines(env.Duck(t, attach+fmt.Sprintf(c.duck, "lake."+c.table)))
		if want := v.query(t, fmt.Sprintf(c.sql, in)); len(want)+len(got) > 0 {
			same(t, what+" in the files", got, want)
		}
		same(t, what+" with newer rows", lines(env.Duck(t, attach+fmt.Sprintf(c.duck, "lake.live."+c.table))), v.query(t, fmt.Sprintf(c.sql, "true")))
	}
	for what, c := range latest {
		same(t, "the latest "+what, lines(env.Duck(t, attach+c.duck)), v.query(t, c.sql))
	}
	t.Run("fold", func(t *testing.T) { v.compareFold(t, env, attach) })
	t.Run("filters", func(t *testing.T) { v.filters(t, env, attach) })
	t.Run("snapshots", func(t *testing.T) { v.snapshots(t, env, attach) })
}

// TestDuckLakeWithoutFiles has DuckDB attach the catalog before the first range is full. All rows come from Postgres.
func TestDuckLakeWithoutFiles(t *testing.T) {
	env := projectiontest.NewAnalysts(t)
	v := newVenue(t)
	v.project(t, "trading", v.Entries, readmodels.Trading())
	for _, name := range []string{"trading", "onboarding"} {
		must(t, v.filler(name, nil).Fill(t.Context()))
	}
	attach := v.attached(t)
	same(t, "trades", lines(env.Duck(t, attach+"SELECT count(*), sum(fee) FROM lake.live.trades")), v.query(t, "SELECT count(*), sum(fee)::numeric(38,18) FROM trades"))
	same(t, "rows of files", lines(env.Duck(t, attach+"SELECT (SELECT count(*) FROM lake.trades), (SELECT count(*) FROM lake.live.responses)")), []string{"0 0"})
}

// compareFold compares the sums of postings with the balances of the fold.
func (v *venue) compareFold(t *testing.T, env projectiontest.Analysts, attach string) {
	found := make(map[string]string)
	for _, row := range env.Duck(t, attach+`SELECT COALESCE(customer_code, account), rtrim(rtrim(sum(amount)::varchar, '0'), '.') FROM lake.live.postings GROUP BY 1`) {
		found[row[0]] = row[1]
	}
	want := make(map[string]string)
	for _, c := range v.State.CustomersOf("") {
		if b, ok := v.State.Balance(c.Code); ok {
			want[c.Code] = b.Decimal().String()
		}
	}
	for _, a := range domainledger.Accounts() {
		want[string(a)] = v.State.VenueBalance(a).Decimal().String()
	}
	for name, balance := range want {
		if got := found[name]; got != balance && (got != "" || balance != "0") {
			t.Errorf("%s has %q in DuckDB and %s in the fold", name, got, balance)
		}
	}
}

// filters compares the counts of conditions, by which DuckDB skips files and row groups, with those over a copy of the rows. The bounds of
// the files are the values that are most likely to be skipped wrongly.
func (v *venue) filters(t *testing.T, env projectiontest.Analysts, attach string) {
	for _, name := range []string{"postings.amount", "postings.sequence", "postings.account", "trades.customer_code", "trades.code", "orders.time", "positions.amount"} {
		table, column, _ := strings.Cut(name, ".")
		var counts []string
		for _, value := range v.texts(t, fmt.Sprintf(`SELECT unnest(ARRAY[min_value, max_value]) FROM (SELECT s.* FROM lake.ducklake_file_column_stats s
			JOIN lake.ducklake_table t USING (table_id) JOIN lake.ducklake_column c USING (table_id, column_id)
			WHERE table_name = '%s' AND column_name = '%s' AND min_value IS NOT NULL ORDER BY data_file_id LIMIT 2) s`, table, column)) {
			for _, op := range []string{"<", "=", ">", "IS NULL OR " + column + " <"} {
				for _, from := range []string{"lake." + table, "copy"} {
					counts = append(counts, fmt.Sprintf(`(SELECT count(*) FROM %s WHERE %s %s '%s')`, from, column, op, value))
				}
			}
		}
		rows := env.Duck(t, attach+fmt.Sprintf(`CREATE TEMP TABLE copy AS SELECT * FROM lake.%s; SELECT %s`, table, strings.Join(counts, ", ")))
		for i := 0; i < len(counts); i += 2 {
			if rows[0][i] != rows[0][i+1] {
				t.Errorf("%s = %s, and there are %s", counts[i], rows[0][i], rows[0][i+1])
			}
		}
	}
}

// snapshots reads the catalog as of each snapshot. Each has the ranges that were added up to it.
func (v *venue) snapshots(t *testing.T, env projectiontest.Analysts, attach string) {
	ranges := v.texts(t, `SELECT snapshot_id || ' ' || sequence FROM lake.ranges WHERE journal = 'trading' ORDER BY range`)
	if len(ranges) < 2 {
		t.Fatalf("the ranges are %v", ranges)
	}
	for _, r := range ranges {
		var id, next int64
		_, err := fmt.Sscan(r, &id, &next)
		must(t, err)
		got := lines(env.Duck(t, attach+fmt.Sprintf(`SELECT count(*), COALESCE(max(sequence), -1) FROM lake.postings AT (VERSION => %d)`, id)))
		same(t, "postings of snapshot "+r, got, lines(env.Duck(t, attach+fmt.Sprintf(`SELECT count(*), COALESCE(max(sequence), -1) FROM lake.postings WHERE sequence < %d`, next))))
	}
}
