package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestRebuildBeside spoils a row of the read models of a running venue and has them rebuilt: the damage is told and gone,
// and the venue goes on with the new rows.
func TestRebuildBeside(t *testing.T) {
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

// TestRebuildKilled kills a rebuild of a running venue in the transaction that writes the live rows. The venue projects what
// comes after, nothing is recorded for the dead rebuild, and the next rebuild corrects the rows.
func TestRebuildKilled(t *testing.T) {
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
