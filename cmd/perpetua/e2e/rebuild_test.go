package e2e

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

// dropDatabase drops the stopped venue's database, with all the rows and everything that was known of the log.
func (v *venue) dropDatabase() {
	v.t.Helper()
	url := v.postgres
	if url == "" {
		if err := os.RemoveAll(filepath.Join(v.dir, "postgres")); err != nil {
			v.t.Fatal(err)
		}
		return
	}
	projectiontest.Recreate(v.t, url)
}

// tables returns the digests of the tables, of a running venue.
func (d *desk) tables() map[string]projections.Digest {
	d.t.Helper()
	pool, err := projections.Open(context.Background(), d.DatabaseURL)
	if err != nil {
		d.t.Fatal(err)
	}
	defer pool.Close()
	return projectiontest.Digests(d.t, pool)
}

// restless are the tables that a start changes, because the new term is a record.
func restless() []string { return []string{"records", "checkpoints"} }

const everyRecord = `SELECT to_jsonb(t)::text FROM records t ORDER BY journal, sequence`

// testRebuild drops the database and starts again: the same rows come back, and so do the same answers.
func testRebuild(t *testing.T, d *desk) {
	paths := []string{"/v1/customers/ANNA/orders/history", "/v1/customers/BEN/orders/history?page_size=3", "/v1/customers/ANNA/trades", "/v1/customers/BEN/transactions",
		"/v1/customers/ANNA/positions", "/v1/customers/BEN/margin-profile", "/v1/customers/BEN/fee-profile", "/v1/customers", "/v1/orders", "/v1/market-trades", "/v1/instruments"}
	read := func() (bodies []string) {
		for _, path := range paths {
			bodies = append(bodies, string(d.must(200, "broker-a", http.MethodGet, path, nil).Body))
		}
		return bodies
	}
	// One order rests over the restart.
	const entry = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.004","limit_price":"62000.5","reference_id":"stays"}`
	resting := d.must(201, "broker-a", http.MethodPost, bensOrders, entry, "Idempotency-Key", "stays")
	answers := read()
	digests, records := d.tables(), d.rows(everyRecord)
	if len(digests) < 15 || len(records) < 60 {
		t.Fatalf("%d tables, %d records", len(digests), len(records))
	}
	// No hour ends in the story, and nobody is onboarded.
	without := append(onboarding.Projection.Tables(), "anchors", "margin_profiles", "funding_rates", "liabilities", "proposals", "onboarding_proposals")
	for name, digest := range digests {
		if digest.Rows == 0 && !slices.Contains(without, name) {
			t.Errorf("nothing is in the table %s, so nothing is shown", name)
		}
	}

	d.stop()
	d.dropDatabase()
	d.start()

	rebuilt := d.tables()
	for _, name := range restless() {
		delete(digests, name)
		delete(rebuilt, name)
	}
	if !maps.Equal(rebuilt, digests) {
		t.Errorf("the tables hold %v, before %v", rebuilt, digests)
	}
	kept := slices.DeleteFunc(d.rows(everyRecord), func(r fields) bool {
		return r["command_type"] == "journal.taken" && !slices.ContainsFunc(records, func(old fields) bool { return old["hash"] == r["hash"] })
	})
	same(t, "the rows of records", kept, records)
	if wrong := d.rows(`SELECT to_jsonb(c)::text FROM checkpoints c LEFT JOIN records r USING (journal, sequence, log_offset, hash, time)
		WHERE r.journal IS NULL OR EXISTS (SELECT FROM records l WHERE l.journal = c.journal AND l.sequence > c.sequence)`); len(wrong) > 0 {
		t.Errorf("checkpoints that are not at the last record: %v", wrong)
	}
	for i, body := range read() {
		if body != answers[i] {
			t.Errorf("%s answers\n%s, before\n%s", paths[i], body, answers[i])
		}
	}
	again := d.must(201, "broker-a", http.MethodPost, bensOrders, entry, "Idempotency-Key", "stays")
	if string(again.Body) != string(resting.Body) {
		t.Errorf("the repeated key got %s, before the restart %s", again.Body, resting.Body)
	}
	d.answered(t, 200, "broker-a", http.MethodPost, bensOrders, strings.Replace(entry, "0.004", "0.0040", 1), "code", resting.get("code"))
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders+"/"+resting.get("code"), nil, "status", "canceled")
	if out, err := d.command("audit").CombinedOutput(); err != nil {
		t.Errorf("perpetua audit: %v\n%s", err, out)
	}
}
