package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// dailyFile is an entry of the list of daily files.
type dailyFile struct {
	Table, Date, Path, SHA256 string
	Final                     bool
	Rows                      int64
}

// dailyFiles returns the files of the days that are over, and their contents by path.
func (v *venue) dailyFiles() (files []dailyFile, contents map[string]string) {
	v.t.Helper()
	var list struct{ Files []dailyFile }
	if err := json.Unmarshal(v.must(200, "", http.MethodGet, "/data/", nil).Body, &list); err != nil {
		v.t.Fatal(err)
	}
	contents = make(map[string]string)
	for _, f := range list.Files {
		if !f.Final {
			if a := v.must(404, "", http.MethodGet, f.Path, nil); a.code() != "DATA_DAY_NOT_OVER" {
				v.t.Errorf("%s answers %s", f.Path, a.Body)
			}
			continue
		}
		files = append(files, f)
		if a := v.do("", http.MethodGet, f.Path, nil); a.Status == 200 { // 503 while it is made again
			contents[f.Path] = string(a.Body)
		}
	}
	return files, contents
}

// awaitDays waits until a number of days has all of its files, and returns them.
func (v *venue) awaitDays(days int) (files []dailyFile, contents map[string]string) {
	v.t.Helper()
	waitFor(v.t, fmt.Sprintf("the files of %d days", days), func() bool {
		files, contents = v.dailyFiles()
		return len(files) == 4*days && len(contents) == 4*days
	})
	return files, contents
}

// sameFiles compares files with those from before.
func (v *venue) sameFiles(when string, got, want map[string]string) {
	v.t.Helper()
	for path, content := range want {
		if got[path] != content {
			v.t.Errorf("%s, %s has other bytes", when, path)
		}
	}
}

// TestDailyFiles has a venue pass two midnights, and kills it right after each. Lost files come back with the same bytes, also when the log is
// trimmed.
func TestDailyFiles(t *testing.T) {
	if os.Getenv("KAFKA_BROKERS") != "" {
		t.Skip("the log is not in files of ours")
	}
	t.Parallel()
	v := newVenue(t, "--accept-clock", "--snapshot-records", "10", "--trim", "off")
	at := len(v.env)
	now := time.Now().UTC()
	noon := now.Truncate(24 * time.Hour).Add(12 * time.Hour).Sub(now) // far from midnight, however long the test lasts
	clock := func(days int) string {
		return fmt.Sprint(altered.ClockAhead, "=", noon-time.Duration(days)*24*time.Hour)
	}
	v.env = append(v.env, clock(3), altered.ArchiveRange+"=16", altered.SegmentBytes+"=8192")
	trade := func(price string) {
		t.Helper()
		v.must(201, "broker-a", http.MethodPost, annasOrders, fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"%s"}`, price))
		v.must(201, "broker-a", http.MethodPost, bensOrders, fmt.Sprintf(`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.010","limit_price":"%s"}`, price))
	}
	v.start()
	t.Cleanup(v.stop)
	v.fund("10000", "ANNA", "BEN")
	for range 20 {
		trade("65000.0")
	}
	v.must(201, "broker-a", http.MethodPost, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"66000.0"}`) // rests over the days
	if files, _ := v.dailyFiles(); len(files) > 0 {
		t.Errorf("before midnight, the files are %v", files)
	}
	v.kill()
	v.env[at] = clock(2)
	v.start()
	trade("65010.0")
	v.kill() // while the first day is made, or before
	v.start()
	first, one := v.awaitDays(1)
	for _, f := range first {
		if f.Table == "trades" && f.Rows != 20 || f.Rows == 0 && f.Table == "books" {
			t.Errorf("%s has %d rows", f.Path, f.Rows)
		}
		a := v.must(206, "", http.MethodGet, f.Path, nil, "Range", "bytes=0-3")
		if string(a.Body) != "PAR1" {
			t.Errorf("the first bytes of %s are %q", f.Path, a.Body)
		}
		v.must(304, "", http.MethodGet, f.Path, nil, "If-None-Match", `"`+f.SHA256+`"`)
	}
	v.must(400, "", http.MethodGet, "/data/trades/yesterday.parquet", nil)
	v.must(404, "", http.MethodGet, "/data/orders/2026-11-26.parquet", nil)
	v.kill()
	v.env[at] = clock(1)
	v.start()
	trade("65020.0")
	files, two := v.awaitDays(2)
	for _, f := range files {
		if f.Table == "books" && f.Rows == 0 {
			t.Errorf("%s lacks the order from the day before", f.Path)
		}
	}
	v.sameFiles("after another midnight", two, one)
	if day := v.scrape().value("perpetua_data_last_day_timestamp_seconds"); day <= 0 {
		t.Errorf("the last day is at %v", day)
	}

	each := func(what string, do func(path string) error) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(v.dir, blob.Folder, "data", "*", what))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", what, found, err)
		}
		for _, path := range found {
			if err := do(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	lose := func(what string) { t.Helper(); each(what, os.Remove) }
	v.stop()
	if _, said := v.outcome(nil, "doctor"); !doctorSays(said, "ok  ", "daily files", "all 8 files") {
		t.Errorf("doctor says of whole files\n%s", said)
	}
	each("trades/*", func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		content[len(content)/2] ^= 1
		return os.WriteFile(path, content, 0o600)
	})
	if _, said := v.outcome(nil, "doctor"); !doctorSays(said, "FAIL", "daily files", "2 of the 8 files") {
		t.Errorf("doctor says of changed files\n%s", said)
	}
	lose("trades/*")
	v.start()
	_, again := v.awaitDays(2)
	v.sameFiles("after the loss of a table", again, two)

	v.stop()
	v.tool("log", "archive", "--to", blob.URLOf(filepath.Join(v.dir, blob.Folder)))
	if out := v.tool("log", "trim", "--journal", "trading", "--trim-after", "0s"); !strings.Contains(out, "trading: trimmed to record ") {
		t.Fatalf("the trim said\n%s", out)
	}
	lose("*/*")
	v.start()
	_, again = v.awaitDays(2)
	v.sameFiles("after a trim and the loss of everything", again, two)
}
