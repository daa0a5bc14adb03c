package main

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
