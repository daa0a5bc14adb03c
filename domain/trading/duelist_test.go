package trading

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestEachIsDue holds what a due list passes against a look at all of its entries.
func TestEachIsDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l dueList
		times := rapid.SliceOfN(rapid.Int64Range(1, 20), 0, 60).Draw(t, "times")
		want := 0
		now := scalar.Time(rapid.Int64Range(0, 21).Draw(t, "now"))
		for _, at := range times {
			l.push(&dueEntry{time: scalar.Time(at)})
			if scalar.Time(at) <= now {
				want++
			}
		}
		most := rapid.IntRange(0, 70).Draw(t, "most")
		var got []*dueEntry
		all := l.each(now, most, func(e *dueEntry) { got = append(got, e) })
		if all != (want <= most) || len(got) != min(want, most) {
			t.Fatalf("%d entries, all: %t; %d of %v are due at %d", len(got), all, want, times, now)
		}
		for n, e := range got {
			if e.time > now || slices.Contains(got[:n], e) {
				t.Fatalf("an entry of %d is passed at %d, or twice", e.time, now)
			}
		}
	})
}
