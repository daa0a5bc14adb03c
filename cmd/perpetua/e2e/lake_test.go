package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/streams/blob"
)

// TestANodeFillsTheLake seals short ranges, and kills the node. Each sealed range is in the DuckLake catalog, and each file that it names
// is there.
func TestANodeFillsTheLake(t *testing.T) {
	t.Parallel()
	v := newVenue(t, "--lake")
	if v.prefix == "" {
		v.prefix = "lake-" // so that the catalog and the bucket must agree on it
	}
	v.env = append(v.env, altered.ArchiveRange+"=8")
	v.start()
	t.Cleanup(v.stop)
	whole := func() {
		t.Helper()
		records := len(v.records("trading"))
		waitFor(t, "the catalog to have every full range", func() bool {
			return v.scrape().value("perpetua_lake_sequence", "journal", "trading") >= float64(records/8*8-1)
		})
	}
	v.trades()
	whole()
	v.kill()
	v.start()
	for range 8 {
		v.must(201, "broker-a", http.MethodPost, annasOrders,
			`{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65000.0"}`)
	}
	whole()
	db := v.database()
	defer db.Close(t.Context())
	var paths, data string
	if err := db.QueryRow(t.Context(), `SELECT string_agg(t.path || f.path, ' '), (SELECT value FROM lake.ducklake_metadata WHERE key = 'data_path')
		FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id)`).Scan(&paths, &data); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(v.dir, blob.Folder, "lake", v.prefix) + "/"; data != want {
		t.Errorf("the data is in %s, not in %s", data, want)
	}
	for _, path := range strings.Fields(paths) {
		if _, err := os.Stat(filepath.Join(data, "main", path)); err != nil {
			t.Error(err)
		}
	}
}
