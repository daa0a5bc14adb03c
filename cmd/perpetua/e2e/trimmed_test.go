package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// tool runs a command of the venue, which must succeed, and returns what it printed.
func (v *venue) tool(args ...string) string {
	v.t.Helper()
	out, err := v.command(args...).CombinedOutput()
	if err != nil {
		v.t.Fatalf("perpetua %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// refused runs a command of the venue, which must fail and print a text.
func (v *venue) refused(text string, args ...string) {
	v.t.Helper()
	if out, err := v.command(args...).CombinedOutput(); err == nil || !strings.Contains(string(out), text) {
		v.t.Errorf("perpetua %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// sees compares what clients see, and the log, with what they were before.
func (v *venue) sees(when string, views map[string]string, log []string) {
	v.t.Helper()
	for path, is := range v.views() {
		if was := views[path]; was != is {
			v.t.Errorf("%s, %s shows\n%s\nand not\n%s", when, path, is, was)
		}
	}
	if got := v.records("trading"); len(got) < len(log) || !slices.Equal(got[:len(log)], log) {
		v.t.Errorf("%s, the log has %d records that begin with\n%s\nand not the %d from before", when, len(got), got[0], len(log))
	}
}

// TestTrimmedVenue archives and trims the log of a venue. Everything answers as before: a start with a snapshot and without, the
// rows made again, the audit, a copy, and a venue that was restored on another machine.
func TestTrimmedVenue(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	t.Parallel()
	v := newVenue(t, "--snapshot-records", "10", "--trim", "off")
	v.env = append(v.env, altered.ArchiveRange+"=32", altered.SegmentBytes+"=8192")
	v.start()
	t.Cleanup(v.stop)
	v.fundDaily()
	v.fund("10000", "ANNA", "BEN")
	for i := range 60 {
		v.must(201, "broker-a", http.MethodPost, annasOrders, fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65%d00.0"}`, i%3))
		v.must(201, "broker-a", http.MethodPost, bensOrders, fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.010","limit_price":"6%d000.0"}`, 4+i%2))
	}
	answers, first := v.pasts(v.person(), 8), v.firstTrade()
	views, log := v.views(), v.records("trading")
	v.refused("only by itself", "log", "trim", "--trim-after", "0s")
	v.refused("stop it to restore its log", "log", "restore", "--journal", "trading")
	db := v.database()
	waitFor(t, "a signed checkpoint over the records", func() (signed bool) {
		if err := db.QueryRow(t.Context(), "SELECT COALESCE(max(size), 0) >= $1 FROM signed_trees WHERE journal = 'trading'", len(log)).Scan(&signed); err != nil {
			t.Fatal(err)
		}
		return signed
	})
	if err := db.Close(t.Context()); err != nil {
		t.Error(err)
	}
	v.stop()
	bucket := filepath.Join(v.dir, "blob")
	v.refused("archive", "log", "trim", "--archive-url", blob.URLOf(filepath.Join(v.dir, "nowhere")))
	v.tool("log", "archive", "--to", blob.URLOf(bucket))
	if out := v.tool("log", "trim", "--journal", "trading"); !strings.Contains(out, "nothing is trimmed") || !strings.Contains(out, "not older than") {
		t.Errorf("a trim of a young log said\n%s", out)
	}
	out := v.tool("log", "trim", "--journal", "trading", "--trim-after", "0s")
	if !strings.Contains(out, "trading: trimmed to record ") || strings.Contains(out, "begins at offset 0") {
		t.Fatalf("the trim said\n%s", out)
	}
	v.start()
	v.sees("trimmed", views, log)
	v.asksAgain("trimmed", answers)
	waitFor(t, "a receipt of a record that was trimmed", func() bool {
		a := v.do("broker-a", http.MethodGet, first.receipt(), nil)
		if a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return a.Status == http.StatusOK
	})
	compareWithFold(t, v)
	v.tool("audit")
	if out := v.tool("audit", "verify", "--rules"); !strings.Contains(out, fmt.Sprintf("trading: %d records from 0 on", len(v.records("trading")))) ||
		!strings.Contains(out, "follow the independent model") || strings.Contains(out, "only their chain") {
		t.Errorf("audit verify said\n%s", out)
	}
	v.tool("rebuild")

	v.kill()
	if err := os.RemoveAll(filepath.Join(bucket, "snapshots")); err != nil {
		t.Fatal(err)
	}
	if out := v.tool("log", "compat", "--journal", "trading"); !strings.Contains(out, "reads and applies all of them") {
		t.Errorf("log compat said\n%s", out)
	}
	v.start()
	if at := v.measure("loaded_sequence"); at >= 0 {
		t.Errorf("without a snapshot the venue started from one at %d", at)
	}
	v.sees("without a snapshot", views, log)
	v.asksAgain("without a snapshot", answers)
	compareWithFold(t, v)

	v.stop()
	v.dropDatabase()
	v.start()
	v.sees("with new rows", views, log)
	v.asksAgain("with new rows", answers)
	v.tool("audit")
	v.stop()
	if err := os.RemoveAll(filepath.Join(bucket, "snapshots")); err != nil {
		t.Fatal(err)
	}
	if out := v.tool("log", "compat", "--prepare"); strings.Count(out, "is stored") != 3 {
		t.Errorf("log compat --prepare said\n%s", out)
	}

	file := filepath.Join(t.TempDir(), "log.jsonl")
	v.tool("log", "copy", "--journal", "trading", "--from", v.dir, "--to", file)
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") < len(log) {
		t.Errorf("the copy has %d lines of %d, %v", strings.Count(string(text), "\n"), len(log), err)
	}

	v.tool("log", "archive", "--to", blob.URLOf(bucket))
	v.writesParquet(t, []string{"--file", file}, []string{"--archive", blob.URLOf(bucket)})
	there := newVenue(t, v.args...)
	there.env = append(slices.Clone(v.env), "PERPETUA_ARCHIVE_URL="+blob.URLOf(bucket))
	for _, name := range []string{"keys", "users.json"} { // an operator keeps them apart from the log
		if err := copyTo(filepath.Join(there.dir, name), filepath.Join(v.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out := there.tool("log", "restore"); !strings.Contains(out, "trading: 0 records were there") {
		t.Errorf("the restore said\n%s", out)
	}
	there.start()
	t.Cleanup(there.stop)
	there.sees("restored", views, log)
	there.asksAgain("restored", answers)
	there.tool("audit")

	if err := os.Rename(filepath.Join(bucket, "archive"), filepath.Join(bucket, "lost")); err != nil {
		t.Fatal(err)
	}
	v.start() // from its snapshot
	v.refused("the archive of", "audit")
	if a := v.do("broker-a", http.MethodGet, first.receipt(), nil); a.Status != http.StatusConflict || !strings.Contains(string(a.Body), "RECORD_ARCHIVED") {
		t.Errorf("a receipt of a record that is nowhere: %d %s", a.Status, a.Body)
	}
	if out := v.tool("audit", "verify", "--journal", "trading", "--rows=false"); !strings.Contains(out, "not decided again, before the first snapshot of a trimmed log") {
		t.Errorf("without its archive, audit verify said\n%s", out)
	}
	waitFor(t, "the node to warn", func() bool {
		return strings.Contains(v.output.String(), "the archive does not have the records that were trimmed from the log")
	})
}

// copyTo copies a file or a folder. Only the owner may read the copies, as the key store demands.
func copyTo(to, from string) error {
	return filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o600)
	})
}
