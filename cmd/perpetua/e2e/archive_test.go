package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// archived is the part of the output of log archive and log verify that the test looks at.
type archived struct {
	Journal  string  `json:"journal"`
	Records  int64   `json:"records"`
	Tail     int64   `json:"tail"`
	Sequence int64   `json:"sequence"`
	Percent  float64 `json:"percent"`
}

// archives returns what a command says of the archives, by journal.
func (v *venue) archives(args ...string) map[string]archived {
	v.t.Helper()
	cmd := v.command(append(args, "--json")...)
	said := new(output)
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		v.t.Fatalf("perpetua %v: %v\n%s\nthe venue:\n%s", args, err, said, v.output)
	}
	var all []archived
	if err := json.Unmarshal(out, &all); err != nil {
		v.t.Fatalf("%v: %s", err, out)
	}
	by := make(map[string]archived)
	for _, a := range all {
		by[a.Journal] = a
	}
	return by
}

// TestANodeArchives the logs, before and after it is killed. A command verifies the archive, and archives on beside the node.
func TestANodeArchives(t *testing.T) {
	t.Parallel()
	v := newVenue(t, "--archive-tail", "1s")
	v.start()
	t.Cleanup(v.stop)
	whole := func() {
		t.Helper()
		records := int64(len(v.records("trading")))
		waitFor(t, "the archive to hold every record", func() bool { return v.archives("log", "archive", "--list")["trading"].Records >= records })
	}
	v.trades()
	whole()
	v.kill()
	v.start()
	v.must(201, "broker-a", http.MethodPost, annasOrders,
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65000.0"}`)
	whole()
	bucket := blob.URLOf(filepath.Join(v.dir, blob.Folder))
	records := int64(len(v.records("trading")))
	for _, args := range [][]string{{"log", "archive", "--to", bucket}, {"log", "verify", "--archive", bucket}} {
		for name, a := range v.archives(args...) {
			if a.Records == 0 || a.Records != a.Tail || a.Sequence != a.Records-1 || name == "trading" && a.Records < records {
				t.Errorf("%v: %+v", args, a)
			}
		}
	}
	waitFor(t, "the metrics to say the same", func() bool {
		s := v.scrape()
		return s.value("perpetua_archive_tail_sequence", "journal", "trading") >= float64(records-1) &&
			s.value("perpetua_archive_sealed_sequence", "journal", "trading") == -1 && s.value("perpetua_archive_halted", "journal", "trading") == 0
	})
	if found, err := filepath.Glob(filepath.Join(v.dir, blob.Folder, "archive", "*", "0", "tail*")); err != nil || len(found) < 3 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(v.dir, "archive-heads")); err == nil {
		t.Error("there is a head without a full range")
	}
}
