package main

import (
	"math"
	"testing"
	"time"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/archive"
	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// archivedRecords is the length of the log that is archived. It fills a chunk.
const archivedRecords = 20_000

// archived returns an archive of random orders in memory.
func archived(b *testing.B) *archive.Archive {
	b.Helper()
	bucket := memblob.OpenBucket(nil)
	b.Cleanup(func() { bucket.Close() })
	box, err := seal.New(make([]byte, seal.KeySize))
	if err != nil {
		b.Fatal(err)
	}
	cfg := archive.Config{Store: blob.NewStore(bucket), Box: box, Journal: "trading"}
	w, err := archive.NewWriter(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	n := int64(0)
	add := func(e record.Entry) error {
		r := journal.KafkaRecord("trading", "trading", 0, e.Journal, e.Record, e.Value)
		r.Offset = n
		n++
		return w.Add(b.Context(), r)
	}
	end := time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC)
	m := newMarketplace(1, scalar.TimeOf(end.Add(-archivedRecords*240*time.Millisecond)), scalar.TimeOf(end), func() int64 { return archivedRecords - n }, add)
	if err := m.trade(func() bool { return n < archivedRecords }); err != nil {
		b.Fatal(err)
	}
	if err := w.Tail(b.Context()); err != nil {
		b.Fatal(err)
	}
	a, err := archive.Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	return a
}

// BenchmarkArchive decodes an archive of random orders: to verify it, as a reader of the log does, and as the topic had it. It
// reports records a second of processor time.
func BenchmarkArchive(b *testing.B) {
	a := archived(b)
	for name, read := range map[string]func() (n int, err error){
		"verify": func() (int, error) {
			sum, err := a.Verify(b.Context(), nil)
			return int(sum.Records), err
		},
		"stored": func() (n int, err error) {
			for _, err := range a.Stored(b.Context(), 0, math.MaxInt64) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
		"records": func() (n int, err error) {
			for _, err := range a.Records(b.Context(), "trading", 0, math.MaxInt64) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before, all := processorTime(), 0
			for b.Loop() {
				n, err := read()
				if err != nil || n < archivedRecords {
					b.Fatal(n, err)
				}
				all += n
			}
			b.ReportMetric(float64(all)/(processorTime()-before).Seconds(), "records/s/core")
		})
	}
}
