package projections_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/transparency"
)

// TestCosignedTrees keeps the largest checkpoint of each log, and the last one of the same size.
func TestCosignedTrees(t *testing.T) {
	ctx, trees := t.Context(), projections.CosignedTrees{Pool: projectiontest.Database(t)}
	other := origin
	other.Journal = "onboarding"
	if c, err := trees.Cosigned(ctx, origin); err != nil || c.Size != 0 || c.Note != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, c := range []struct {
		of        transparency.Origin
		size      int64
		note, now string
	}{{origin, 5, "one", "one"}, {origin, 5, "two", "two"}, {origin, 4, "three", "two"}, {other, 1, "four", "four"}, {origin, 1 << 40, "five", "five"}} {
		if err := trees.PublishCosigned(ctx, c.of, transparency.Checkpoint{Size: c.size, Note: []byte(c.note), Verifier: "key"}); err != nil {
			t.Fatal(err)
		}
		if got, err := trees.Cosigned(ctx, c.of); err != nil || string(got.Note) != c.now || got.Verifier != "key" {
			t.Errorf("after %s of size %d: %+v, %v", c.note, c.size, got, err)
		}
	}
}
