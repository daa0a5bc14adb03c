package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/projections/postgres"
)

// TestPostgresDies kills the embedded Postgres under a running venue. Writes go on, reads that need the rows are
// answered 503, and once Postgres is back they see what was written meanwhile.
func TestPostgresDies(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t)
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA")
	admin, err := postgres.AdminURL(filepath.Join(v.dir, "postgres"), v.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	db, err := pgx.Connect(context.Background(), admin)
	if err != nil {
		t.Fatal(err)
	}
	var postmaster string
	err = db.QueryRow(context.Background(), `SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)`).Scan(&postmaster)
	db.Close(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(postmaster))
	if err != nil || pid == os.Getpid() {
		t.Fatalf("postmaster %q: %v", postmaster, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	placed := v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.100","limit_price":"65000.0"}`)
	code := placed.get("code")
	var last answer
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(v.dir, "postgres", "postgres.log"))
			t.Logf("the last answer: %d %s\nPostgres:\n%s\nthe venue:\n%s", last.Status, last.Body, text, v.output)
		}
	})
	waitFor(t, "the order in the rows", func() bool {
		a := v.do("broker-a", http.MethodGet, "/v1/customers/ANNA/orders", nil)
		last = a
		if a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
			t.Fatalf("while Postgres is away: %d %s", a.Status, a.Body)
		}
		return strings.Contains(string(a.Body), code)
	})
}
