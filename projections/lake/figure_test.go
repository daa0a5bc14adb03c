package lake

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// TestSealedToQueryable measures the time from the manifest of a whole range to the rows in DuckDB, with a filler that runs as in a node.
// It takes a minute, so only PERPETUA_TEST_LAKE_FIGURE=1 runs it.
func TestSealedToQueryable(t *testing.T) {
	if os.Getenv("PERPETUA_TEST_LAKE_FIGURE") == "" {
		t.Skip("PERPETUA_TEST_LAKE_FIGURE is not set")
	}
	env := projectiontest.NewAnalysts(t)
	v := &venue{Owner: projectiontest.NewOwner(t, 1), url: projectiontest.MigratedURL(t), dir: t.TempDir()}
	for len(v.Entries) < archive.RangeRecords {
		v.Play(1000)
	}
	rechain(t, v.Entries)
	v.pool = projectiontest.Open(t, v.url)
	bucket, err := blob.Open(t.Context(), blob.URLOf(v.dir))
	must(t, err)
	defer bucket.Close()
	v.store = blob.NewStore(bucket)
	v.box, err = seal.New(make([]byte, seal.KeySize))
	must(t, err)
	whole := v.archiveConfig("trading").WithRangeRecords(0)
	sealed := make(chan int64, 1)
	f := v.filler("trading", func(c *FillerConfig) {
		c.Archive, c.Every = whole, lookEvery
		c.Sealed = func() int64 {
			if len(sealed) > 0 {
				return archive.RangeRecords - 1
			}
			return -1
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	v.sealWith(t, whole, archive.RangeRecords)
	began := time.Now()
	sealed <- 1
	until(t, func() bool { return f.Status().Sequence == archive.RangeRecords-1 })
	added := time.Since(began)
	rows := env.Duck(t, v.attached(t)+`SELECT count(*), max(sequence) FROM lake.postings`)
	t.Logf("%d records: in the catalog after %v, queried after %v (%v of work); postings %v; files %v", archive.RangeRecords, added, time.Since(began),
		f.Status().Working, rows, v.texts(t, `SELECT t.table_name || ' ' || record_count || ' rows ' || file_size_bytes || ' bytes' FROM lake.ducklake_data_file f JOIN lake.ducklake_table t USING (table_id)`))
	cancel()
	<-done
}
