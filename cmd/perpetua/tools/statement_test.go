package tools

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/settings"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/postgres"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/projections/readmodels"
	"github.com/perpetua-exchange/perpetua/projections/statements"
)

// booked starts a Postgres with the rows of a venue. The last record is an hour after the others.
func booked(t *testing.T) (url string, v *projectiontest.Venue, end scalar.Time) {
	t.Helper()
	dir, err := projectiontest.Folder("perpetua-statement-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := postgres.Start(t.Context(), postgres.Config{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	pool, err := projections.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := projections.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	v = projectiontest.NewVenue(5)
	entries := v.Entries(600)
	end = v.Pass(scalar.Hour)
	entries = append(entries, v.Entry("order.cancel", decide.Actor{Sub: "broker-a", Broker: "alpha"}, decide.Accepted))
	r := projections.Config{Pool: pool, Log: projectiontest.NewLog(entries...), Journal: "trading"}.Runner(readmodels.Trading()...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.Replay(ctx, entries[len(entries)-1].Position.Sequence); err != nil {
		t.Fatal(err)
	}
	return server.URL(), v, end
}

// TestStatement prints the statement of a customer as CSV and as JSON.
func TestStatement(t *testing.T) {
	url, v, end := booked(t)
	var out bytes.Buffer
	run := func(args ...string) error {
		out.Reset()
		std := settings.IO{Out: &out, Err: &bytes.Buffer{}, Env: func(string) (string, bool) { return "", false }}
		return Statement(t.Context(), append(args, "--database-url", url), std)
	}
	const customer = "C0"
	of := []string{"--customer", customer, "--from", "2026-03-31", "--to", end.String()}
	if err := run(of...); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	last := rows[len(rows)-1]
	if !slices.Equal(rows[0], statementColumns) || rows[1][2] != "opening_balance" || rows[1][5] != "0" || last[2] != "closing_balance" {
		t.Errorf("the statement has the lines %q, %q and %q", rows[0], rows[1], last)
	}
	if want := v.Balances[customer].String(); last[5] != want || len(rows) < 10 {
		t.Errorf("%d lines end with %s, not %s", len(rows), last[5], want)
	}
	if err := run(append(of, "--json")...); err != nil {
		t.Fatal(err)
	}
	var s statement
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Lines) != len(rows)-3 || s.Balances[0].Closing != last[5] || s.Lines[0].Amount != rows[2][4] || s.To != end {
		t.Errorf("as JSON: %d lines, %+v", len(s.Lines), s.Balances)
	}
	var wrong *settings.UsageError
	for _, args := range [][]string{
		{"--from", "2026-03-31", "--to", "2026-04-01"}, {"--customer", customer, "--to", "2026-04-01"},
		{"--customer", customer, "--from", "2026-04-01", "--to", "2026-04-01"}, {"--customer", customer, "--from", "yesterday", "--to", "2026-04-01"},
	} {
		if err := run(args...); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := run("--customer", "nobody", "--from", "2026-03-30", "--to", "2026-03-31"); !errors.Is(err, statements.ErrNoCustomer) {
		t.Errorf("for nobody: %v", err)
	}
	if err := run("--customer", customer, "--from", "2026-03-30", "--to", "2027-01-01"); !errors.Is(err, statements.ErrNotOver) || out.Len() > 0 {
		t.Errorf("of a period that is not over: %v, %q", err, &out)
	}
}
