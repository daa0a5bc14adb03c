package tools

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	parquetgo "github.com/parquet-go/parquet-go"

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
	file := filepath.Join(t.TempDir(), "statement.parquet")
	if err := run(append(of, "--format", "parquet", "--out", file)...); err != nil || !strings.Contains(out.String(), file) {
		t.Fatalf("as Parquet: %v, with the output %q", err, &out)
	}
	compareParquet(t, file, rows)
	again := filepath.Join(t.TempDir(), "again.parquet")
	if err := run(append(of, "--format", "parquet", "--out", again)...); err != nil || string(read(t, again)) != string(read(t, file)) {
		t.Errorf("the same statement again: %v, or other bytes", err)
	}
	if err := run(append(of, "--format", "csv", "--out", again)...); err != nil || !strings.HasPrefix(string(read(t, again)), strings.Join(statementColumns, ",")) {
		t.Errorf("CSV instead of an earlier file: %v", err)
	}
	socket := filepath.Join(filepath.Dir(file), "s") // stands for a device, which a test must not risk to replace
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var wrong *settings.UsageError
	for _, args := range [][]string{
		{"--from", "2026-03-31", "--to", "2026-04-01"}, {"--customer", customer, "--to", "2026-04-01"},
		append(of, "--format", "parquet"), append(of, "--format", "xml"), append(of, "--format", "csv", "--json"),
		append(of, "--out", filepath.Dir(file)), append(of, "--out", socket),
		{"--customer", customer, "--from", "2026-04-01", "--to", "2026-04-01"}, {"--customer", customer, "--from", "yesterday", "--to", "2026-04-01"},
	} {
		if err := run(args...); !errors.As(err, &wrong) {
			t.Errorf("%q: %v", args, err)
		}
	}
	if err := run("--customer", "nobody", "--from", "2026-03-30", "--to", "2026-03-31"); !errors.Is(err, statements.ErrNoCustomer) {
		t.Errorf("for nobody: %v", err)
	}
	var early *statements.NotOverError
	if err := run("--customer", customer, "--from", "2026-03-30", "--to", "2027-01-01", "--format", "parquet", "--out", file+"2"); !errors.As(err, &early) {
		t.Errorf("as Parquet, of a period that is not over: %v", err)
	}
	if _, err := os.Stat(file + "2"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused statement leaves a file: %v", err)
	}
	if err := run("--customer", customer, "--from", "2026-03-30", "--to", "2027-01-01"); !errors.As(err, &early) || early.Reached != end || out.Len() > 0 ||
		!strings.Contains(err.Error(), "ends at 2027-01-01T00:00:00.000000Z, and the tables have reached "+end.String()+": name an earlier --to, or") {
		t.Errorf("of a period that is not over: %v, %q", err, &out)
	}
}

// TestStatementWithoutBalances prints the columns for a customer who never had a balance.
func TestStatementWithoutBalances(t *testing.T) {
	url, _, _ := booked(t)
	pool, err := projections.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), "DELETE FROM balances WHERE customer_code = 'C0'"); err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct{ format, want string }{{"csv", strings.Join(statementColumns, ",") + "\n"}, {"parquet", "PAR1"}} {
		file := filepath.Join(t.TempDir(), "statement")
		std := settings.IO{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Env: func(string) (string, bool) { return "", false }}
		if err := Statement(t.Context(), []string{"--customer", "C0", "--from", "2026-03-29", "--to", "2026-03-30", "--format", of.format,
			"--out", file, "--database-url", url}, std); err != nil {
			t.Fatal(err)
		}
		if got := string(read(t, file)); !strings.HasPrefix(got, of.want) || of.format == "csv" && got != of.want {
			t.Errorf("as %s: %q", of.format, got)
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compareParquet compares every value of a statement as Parquet with the same statement as CSV, and the types and field ids of the columns.
func compareParquet(t *testing.T, path string, lines [][]string) {
	t.Helper()
	content := read(t, path)
	f, err := parquetgo.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for i, c := range f.Schema().Fields() {
		columns = append(columns, c.Name())
		if c.ID() != i+1 {
			t.Errorf("the column %s has the field id %d", c.Name(), c.ID())
		}
	}
	about, _ := f.Lookup("perpetua")
	if !slices.Equal(columns, lines[0]) || !strings.Contains(about, `"customer_code":"C0"`) {
		t.Errorf("the columns are %v, of %s", columns, about)
	}
	r := parquetgo.NewReader(f)
	defer r.Close()
	row := make([]parquetgo.Row, 1)
	for _, line := range lines[1:] {
		if n, _ := r.ReadRows(row); n != 1 {
			t.Fatalf("there is no row for %q", line)
		}
		for i, v := range row[0] {
			if got, want := cell(f.Schema().Fields()[i].Type().String(), v), decimals(columns[i], line[i]); got != want {
				t.Errorf("%s is %q, and %q in the line %q", columns[i], got, want, line)
			}
		}
	}
	if n, _ := r.ReadRows(row); n != 0 {
		t.Error("there are more rows than lines")
	}
}

// cell returns the text that the CSV has for a value, with all decimals of a number.
func cell(kind string, v parquetgo.Value) string {
	switch {
	case v.IsNull():
		return ""
	case kind == "DECIMAL(38,18)":
		n := new(big.Int).SetBytes(v.ByteArray())
		if v.ByteArray()[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		return new(big.Rat).SetFrac(n, big.NewInt(1e18)).FloatString(18)
	case kind == "UUID":
		return scalar.ID(v.ByteArray()).String()
	case strings.HasPrefix(kind, "TIMESTAMP(isAdjustedToUTC=true,unit=MICROS"):
		return scalar.Time(v.Int64()).String()
	case kind == "STRING":
		return string(v.ByteArray())
	}
	return fmt.Sprint(kind, " ", v)
}

func decimals(column, text string) string {
	switch {
	case column == "sequence":
		return "INT(64,true) " + text
	case text != "" && (column == "amount" || column == "balance"):
		r, _ := new(big.Rat).SetString(text)
		return r.FloatString(18)
	}
	return text
}
