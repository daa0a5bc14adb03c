package trading

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestRecentOrders remembers the latest final orders, each as its owner's, and no more of them.
func TestRecentOrders(t *testing.T) {
	var r recent
	code := func(n int) scalar.ID { return decide.Stamp{Sequence: int64(n)}.Derive(0) }
	owners := [2]*account{{code: "a"}, {code: "b"}}
	const more = 5000
	for n := range recentOrders + more {
		r.add(code(n), owners[n%2])
	}
	if len(r.ring) != recentOrders || r.codes.Len() != recentOrders {
		t.Errorf("%d orders remembered, %d of them to be found", len(r.ring), r.codes.Len())
	}
	for n := range recentOrders + more {
		if is, want := r.has(code(n), owners[n%2]), n >= more; is != want || r.has(code(n), owners[1-n%2]) {
			t.Fatalf("order %d: remembered %t, not %t, or as another's", n, is, want)
		}
	}
}
