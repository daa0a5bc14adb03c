package transparency

import (
	"crypto/sha256"
	"syscall"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/blob"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
)

// processorTime returns the time that the process has spent on processors.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// reportRates reports the leaves in a second, and in a second of one processor, which does not depend on the machine's load.
func reportRates(b *testing.B, spent time.Duration) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "leaves/s")
	b.ReportMetric(float64(b.N)/spent.Seconds(), "leaves/s/core")
}

// BenchmarkTree appends the leaves of record roots, and makes the tiles. The SHA-256 of the same values alone is a measure of the
// machine.
func BenchmarkTree(b *testing.B) {
	roots := make([]commitment.Hash, 4096)
	for i := range roots {
		roots[i] = rootAt(1, int64(i))
	}
	b.Run("tree", func(b *testing.B) {
		var tree Tree
		before := processorTime(b)
		for i := range b.N {
			tree.Append(roots[i%len(roots)], func(Tile) {})
		}
		reportRates(b, processorTime(b)-before)
	})
	b.Run("sha256", func(b *testing.B) {
		before := processorTime(b)
		for i := range b.N {
			sha256.Sum256(roots[i%len(roots)][:])
		}
		reportRates(b, processorTime(b)-before)
	})
}

// BenchmarkFollower follows a log, without computing record roots, into a folder whose files are synced, and publishes once a
// second as a node does.
func BenchmarkFollower(b *testing.B) {
	bucket, err := blob.Open(b.Context(), blob.URLOf(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer bucket.Close()
	v := newVenue(b, newLog(1, int64(b.N)), new(memoryHeads))
	f := v.follower(nil)
	f.cfg.Store, f.cfg.Every = NewStore(blob.NewStore(bucket), testOrigin), Every
	before := processorTime(b)
	b.ResetTimer()
	if err := v.runUntil(f, int64(b.N)); err != nil {
		b.Fatal(err)
	}
	reportRates(b, processorTime(b)-before)
}
