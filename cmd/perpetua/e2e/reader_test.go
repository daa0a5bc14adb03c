package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/program"
)

// TestAdminReader makes a reader of a running venue with the documented line, which also opens psql where there is one.
func TestAdminReader(t *testing.T) {
	t.Parallel()
	v := newWholeVenue(t)
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA")
	for _, name := range []string{"", "Ann", "perpetua", "perpetua_venue", "perpetua_reader"} {
		if out, err := v.command("admin", "reader", "--name", name).CombinedOutput(); err == nil {
			t.Errorf("a reader named %q: %s", name, out)
		}
	}
	out, err := v.command("admin", "reader", "--name", "ann").Output()
	if err != nil {
		t.Fatalf("admin reader: %v", err)
	}
	url := strings.TrimSpace(string(out))
	db, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.Background())
	var timeout, owner string
	var super bool
	if err := db.QueryRow(context.Background(), `SELECT current_setting('statement_timeout'), tableowner, rolsuper FROM pg_tables JOIN pg_roles ON rolname = tableowner
		WHERE tablename = 'orders' AND EXISTS (SELECT customer_code FROM customers)`).Scan(&timeout, &owner, &super); err != nil || timeout != "1min" || super {
		t.Errorf("a query ends after %s, the tables are those of %s, who is a superuser: %v, %v", timeout, owner, super, err)
	}
	if _, err := db.Exec(context.Background(), "SELECT fields FROM owners"); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("sealed fields: %v", err)
	}
	if psql, ok := program.Find(t, "psql"); ok {
		if out, err := exec.Command(psql, url, "-Atc", "SELECT count(*) > 0 FROM customers").CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "t" {
			t.Errorf("psql: %v\n%s", err, out)
		}
	}
}
