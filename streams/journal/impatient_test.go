package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/streams/journal"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestAReaderOfImpatientCallersFindsItsPosition reads with contexts that end long before a position can be found: during the
// pause after a wrong hint, during a search, and during the scan for a record that a search misses.
func TestAReaderOfImpatientCallersFindsItsPosition(t *testing.T) {
	r := newFake(t)
	v := values(r.written(9))
	r.recreate(slices.Concat(v[:9], v[:1], v[9:])...) // a search that begins at the copy of the genesis takes record 3 for lost
	all := r.all()
	at := all[3].Position
	for what, hint := range map[string]int64{"a wrong hint": at.Offset + 1, "a hint that a search starts badly from": 9, "a hint beyond the end": 1 << 20} {
		t.Run(what, func(t *testing.T) {
			at.Offset = hint
			reader := journal.NewReader(r.client, r.rules, 0, at)
			defer reader.Close()
			var read []record.Hash
			for limit := r.context(); len(read) < len(all)-4; {
				short, cancel := context.WithTimeout(limit, 4*time.Millisecond)
				entries, err := reader.Poll(short)
				cancel()
				if limit.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%d records, and then: %v", len(read), err)
				}
				for _, e := range entries {
					read = append(read, e.Position.Hash)
				}
			}
			for i, h := range read {
				if h != all[4+i].Position.Hash {
					t.Errorf("record %d is another one", 4+i)
				}
			}
		})
	}
}
