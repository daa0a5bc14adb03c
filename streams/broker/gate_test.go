package broker

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzReader cuts a stream of requests anywhere: the same heads are found as in one piece, and never a panic.
func FuzzReader(f *testing.F) {
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID("client"))
	stream := formatter.AppendRequest(nil, kmsg.NewPtrMetadataRequest(), 1)
	stream = append(stream, formatter.AppendRequest(nil, kmsg.NewPtrFetchRequest(), 2)...)
	f.Add(stream, uint16(3))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint16(1))
	f.Add([]byte{0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 1, 0, 0, 0, 0, 0, 2}, uint16(5))
	f.Fuzz(func(t *testing.T, stream []byte, cut uint16) {
		heads := func(size int) (all []head, failed bool) {
			var r reader
			for part := range slices.Chunk(stream, size) {
				if r.pass(part, func(h head) { all = append(all, h) }) != nil {
					return all, true
				}
			}
			return all, false
		}
		if len(stream) == 0 {
			return
		}
		whole, failed := heads(len(stream))
		parts, failedToo := heads(1 + int(cut)%len(stream))
		if !slices.Equal(whole, parts) || failed != failedToo {
			t.Errorf("in one piece %v (failed %t), in parts %v (failed %t)", whole, failed, parts, failedToo)
		}
	})
}

// TestHeadsAreFound has more requests without an answer than kfake leaves open, as a producer with acks=0 sends them.
func TestHeadsAreFound(t *testing.T) {
	g := new(gate)
	for i := range int32(10) {
		g.remember(head{correlation: i})
	}
	for _, gone := range []int32{0, 6, 11} {
		if _, ok := g.find(gone); ok {
			t.Errorf("%d is found", gone)
		}
	}
	if h, ok := g.find(8); !ok || h.correlation != 8 {
		t.Errorf("found %v, %t", h, ok)
	}
	if _, ok := g.find(7); ok {
		t.Error("an earlier one is found after a later one was answered")
	}
	if _, ok := g.find(9); !ok {
		t.Error("the last is not found")
	}
}
