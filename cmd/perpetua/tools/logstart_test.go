package tools

import (
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/snapshot"
)

// TestLogBeginsAtTheNearestSnapshot: the log is read from the nearest of the working snapshots and those of the past.
func TestLogBeginsAtTheNearestSnapshot(t *testing.T) {
	bucket := memblob.OpenBucket(nil)
	t.Cleanup(func() { bucket.Close() })
	store := func(folder string, sequences ...int64) *snapshot.Store {
		s := snapshot.NewStore(snapshot.Config{Bucket: bucket, Key: []byte("key"), Folder: folder})
		for _, n := range sequences {
			at := record.Position{Offset: n, Sequence: n, Hash: record.Hash{byte(n)}}
			if _, err := s.Put(t.Context(), snapshot.Header{Journal: "trading", Position: at, Codec: 1}, nil, []byte("state")); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	h := &atHand{saved: &saved{snapshots: store("", 40, 41), history: store(snapshot.HistoryFolder, 10, 20)}}
	for sequence, want := range map[int64]int64{9: record.Before.Sequence, 10: 10, 39: 20, 40: 40, 99: 41} {
		if got, err := h.lastSnapshot(t.Context(), "trading", sequence); err != nil || got.Sequence != want {
			t.Errorf("up to %d: %v, %v", sequence, got, err)
		}
	}
}
