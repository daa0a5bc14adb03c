package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// TestRebuildBeside spoils a row of the read models of a running venue and has them rebuilt: the damage is told and gone,
// and the venue goes on with the new rows.
func TestRebuildBeside(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("10000", "ANNA")
	if out, err := v.command("rebuild", "--compare-only").CombinedOutput(); err != nil || !strings.Contains(string(out), "every table equals the live one") {
		t.Fatalf("comparing sound rows: %v\n%s", err, out)
	}
	db := v.database()
	_, err := db.Exec(context.Background(), `UPDATE balances SET balance = 1 WHERE customer_code = 'ANNA'; UPDATE brokers SET name = 'x' WHERE broker = 'alpha'`)
	db.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := v.command("audit").CombinedOutput(); err == nil || !strings.Contains(string(out), "ANNA, currency USDC): balance is 1, ") ||
		!strings.Contains(string(out), "brokers (broker alpha): name is x, ") {
		t.Errorf("the audit does not see a spoilt balance and a spoilt name: %v\n%s", err, out)
	}
	out, err := v.command("rebuild").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "balances differs: 0 rows are missing, 0 are extra, 1 have other values") {
		t.Fatalf("rebuilding spoilt rows: %v\n%s", err, out)
	}
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("after the rebuild: %v\n%s", err, out)
	}
	v.must(201, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": "BEN"})
	waitFor(t, "the new customer in the new rows", func() bool {
		a := v.do("broker-a", http.MethodGet, "/v1/customers", nil)
		return strings.Contains(string(a.Body), "BEN")
	})
}

// builtByOthers lists what people have made of the tables of a venue: privileges, also by default and of the role itself, views,
// comments, and the identities of the tables.
const builtByOthers = `SELECT format('%s %s %s %s', c.oid, c.relname, c.relacl, obj_description(c.oid, 'pg_class')) FROM pg_class c
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')
	UNION ALL SELECT format('%s.%s %s', attrelid::regclass, attname, attacl) FROM pg_attribute WHERE attacl IS NOT NULL
	UNION ALL SELECT format('default %s', defaclacl) FROM pg_default_acl ORDER BY 1`

// TestRebuildKeepsWhatOthersBuilt has perpetua rebuild correct spoiled rows of a venue that takes orders, while a desk reads them
// through a view. The privileges of the desk, also on tables to come, the view, and a comment survive.
func TestRebuildKeepsWhatOthersBuilt(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t)
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000000", "ANNA")
	address, err := postgres.AdminURL(filepath.Join(v.dir, "postgres"), v.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	admin := projectiontest.Open(t, address)
	run := func(db *pgxpool.Pool, sql string) {
		t.Helper()
		if _, err := db.Exec(context.Background(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{
		"CREATE ROLE desk LOGIN PASSWORD 'secret'", "GRANT SELECT ON orders, brokers TO desk", "GRANT UPDATE (name) ON brokers TO desk",
		"ALTER DEFAULT PRIVILEGES FOR ROLE perpetua_venue IN SCHEMA public GRANT SELECT ON TABLES TO desk",
		"CREATE VIEW orders_by_symbol AS SELECT symbol, count(*) AS n FROM orders GROUP BY symbol", "GRANT SELECT ON orders_by_symbol TO desk",
		"COMMENT ON TABLE trades IS 'what the desk looks at first'",
	} {
		run(admin, sql)
	}
	built := func() (lines []string) {
		t.Helper()
		rows, err := admin.Query(context.Background(), builtByOthers)
		if err == nil {
			lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	before := built()
	desk := projectiontest.Open(t, projectiontest.As(t, v.DatabaseURL, "desk", "secret"))

	load := newSideLoad(t, v, desk)
	waitFor(t, "some orders in the rows", func() bool { return load.accepted.Load() > 20 && load.seen.Load() > 10 })
	run(admin, "UPDATE brokers SET name = 'x' WHERE broker = 'alpha'; UPDATE orders SET limit_price = 1 WHERE code = (SELECT min(code::text)::uuid FROM orders)")
	began := load.accepted.Load()
	out, err := v.command("rebuild").CombinedOutput()
	during := load.accepted.Load() - began
	load.end()
	for _, want := range []string{"brokers differs: 0 rows are missing, 0 are extra, 1 have other values", "orders differs: 0 rows are missing, 0 are extra, 1 have other values", "the live tables equal the new ones; "} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("the rebuild does not print %q: %v\n%s", want, err, out)
		}
	}
	if during == 0 {
		t.Error("no order was accepted during the rebuild")
	}
	if after := built(); !slices.Equal(after, before) {
		t.Errorf("there was\n%s\nand is\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	run(desk, "SELECT * FROM orders_by_symbol")
	run(desk, "SELECT limit_price FROM orders; UPDATE brokers SET name = name WHERE false")
	venue := projectiontest.Open(t, v.DatabaseURL)
	run(venue, "CREATE TABLE later (n integer)")
	run(desk, "SELECT n FROM later")
	run(venue, "DROP TABLE later")
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("after the rebuild: %v\n%s", err, out)
	}
	t.Logf("%d orders were accepted during the rebuild, and the view was read %d times", during, load.seen.Load())
}

// sideLoad places orders one after the other, and reads them as the desk, until it is ended.
type sideLoad struct {
	accepted, seen atomic.Int64 // orders, and reads
	stop           context.CancelFunc
	working        sync.WaitGroup
}

func newSideLoad(t *testing.T, v *venue, desk *pgxpool.Pool) *sideLoad {
	l := new(sideLoad)
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	t.Cleanup(l.end)
	l.working.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			time.Sleep(2 * time.Millisecond)
			a, err := v.try("broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
				fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.001","limit_price":"%d.0"}`, 63000+n%1000))
			switch {
			case err != nil:
				t.Error(err)
				return
			case a.Status == http.StatusCreated:
				l.accepted.Add(1)
			case a.Status != http.StatusServiceUnavailable: // on a busy machine
				t.Errorf("an order: %d %s", a.Status, a.Body)
				return
			}
		}
	})
	l.working.Go(func() {
		for ctx.Err() == nil {
			var n int
			if err := desk.QueryRow(ctx, "SELECT COALESCE(sum(n), 0) FROM orders_by_symbol").Scan(&n); err != nil && ctx.Err() == nil {
				t.Errorf("the desk reads its view: %v", err)
				return
			}
			l.seen.Add(1)
		}
	})
	return l
}

func (l *sideLoad) end() {
	l.stop()
	l.working.Wait()
}

// TestRebuildKilled kills a rebuild of a running venue in the transaction that writes the live rows. The venue projects what
// comes after, nothing is recorded for the dead rebuild, and the next rebuild corrects the rows.
func TestRebuildKilled(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	v := startVenue(t)
	v.fund("10000", "ANNA")
	db, obstacle := v.database(), v.database()
	defer db.Close(ctx)
	defer obstacle.Close(ctx)
	count := func(sql string, args ...any) (n int) {
		t.Helper()
		if err := db.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := db.Exec(ctx, "UPDATE brokers SET name = 'x' WHERE broker = 'alpha'"); err != nil {
		t.Fatal(err)
	}
	if _, err := obstacle.Exec(ctx, "BEGIN; SELECT FROM brokers FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	rebuild := v.command("rebuild")
	if err := rebuild.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the rebuild to write brokers", func() bool {
		return count("SELECT count(*) FROM pg_stat_activity WHERE $1::integer = ANY (pg_blocking_pids(pid))",
			int32(obstacle.PgConn().PID())) > 0
	})
	_ = rebuild.Process.Kill()
	_ = rebuild.Wait()
	if _, err := obstacle.Exec(ctx, "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the end of the session of the rebuild", func() bool {
		return count(`SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'
			AND (classid::bigint << 32 | objid::bigint) = hashtextextended('perpetua merge', 0)`) == 0
	})
	left := count("SELECT count(*) FROM changed_rows")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": "BEN"})
	waitFor(t, "the new customer", func() bool {
		return strings.Contains(string(v.do("broker-a", http.MethodGet, "/v1/customers", nil).Body), "BEN")
	})
	if n := count("SELECT count(*) FROM changed_rows"); n != left {
		t.Errorf("%d keys were recorded after the death of the rebuild", n-left)
	}
	if out, err := v.command("rebuild").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), "brokers differs: 0 rows are missing, 0 are extra, 1 have other values") {
		t.Fatalf("the next rebuild: %v\n%s", err, out)
	}
	if out, err := v.command("audit").CombinedOutput(); err != nil {
		t.Errorf("after the next rebuild: %v\n%s", err, out)
	}
	if n := count("SELECT count(*) FROM pg_namespace WHERE nspname = 'rebuilt'"); n != 0 {
		t.Error("the schema of the rebuild is left")
	}
}
