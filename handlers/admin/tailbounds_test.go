package admin

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// TestTailIsBounded fills a tail beyond its bounds, in number and in bytes. It must say what it does not hold any more,
// and never leave something out of the middle.
func TestTailIsBounded(t *testing.T) {
	for _, tt := range []struct{ size, held int }{{10, tailRecords}, {1 << 20, 4}, {5 << 20, 1}} {
		tail := NewTail("trading", 0)
		value := []byte(strings.Repeat("x", tt.size))
		const all = 1200
		for i := range int64(all) {
			tail.Observe(record.Entry{Record: &record.Record{}, Journal: scalar.ID{1}, Value: value,
				Position: record.Position{Sequence: i, Offset: i}}, nil)
		}
		first := int64(all - tt.held)
		for _, after := range []int64{beforeAll, first - 1, first} {
			out, at, gone := tail.records(after, tailRecords)
			want := max(first, after+1)
			for _, r := range out.Records {
				if r.Sequence != want {
					t.Fatalf("size %d, after %d: %d where %d belongs", tt.size, after, r.Sequence, want)
				}
				want++
			}
			if gone || want != all || at != all-1 {
				t.Errorf("size %d, after %d: ends before %d, at %d, gone %v", tt.size, after, want, at, gone)
			}
		}
		if _, _, gone := tail.records(first-2, tailRecords); !gone {
			t.Errorf("size %d: what is not held is not missed", tt.size)
		}
	}
}
