package heap

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type item struct{ value, index int }

type byValue struct{ down bool }

func (o byValue) Before(a, b *item) bool {
	return o.down && a.value > b.value || !o.down && a.value < b.value
}
func (byValue) Moved(e *item, index int) { e.index = index }

// TestHeap compares a heap with a sorted slice, over every change of it.
func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Heap[*item, byValue]{Order: byValue{down: rapid.Bool().Draw(t, "down")}}
		var want []*item
		draw := func() int { return rapid.IntRange(0, 20).Draw(t, "value") }
		any := func() int { return rapid.IntRange(0, len(want)-1).Draw(t, "which") }
		for range rapid.IntRange(0, 60).Draw(t, "appended") {
			e := &item{value: draw()}
			h.Append(e)
			want = append(want, e)
		}
		h.Restore()
		t.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) {
				e := &item{value: draw()}
				h.Push(e)
				want = append(want, e)
			},
			"remove": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip()
				}
				n := any()
				h.Remove(want[n].index)
				want = slices.Delete(want, n, n+1)
			},
			"fix": func(t *rapid.T) {
				if len(want) == 0 {
					t.Skip()
				}
				e := want[any()]
				e.value = draw()
				h.Fix(e.index)
			},
			"": func(t *rapid.T) { compare(t, &h, want) },
		})
	})
}

func compare(t *rapid.T, h *Heap[*item, byValue], want []*item) {
	if len(h.Entries()) != len(want) {
		t.Fatalf("%d entries, not %d", len(h.Entries()), len(want))
	}
	for n, e := range h.Entries() {
		if e.index != n || !slices.Contains(want, e) {
			t.Fatalf("the entry at %d has the index %d", n, e.index)
		}
	}
	values := func(of []*item) (out []int) {
		for _, e := range of {
			out = append(out, e.value)
		}
		return out
	}
	sorted := values(slices.SortedFunc(slices.Values(want), func(a, b *item) int {
		if h.Order.down {
			a, b = b, a
		}
		return cmp.Compare(a.value, b.value)
	}))
	if got := values(slices.Collect(h.InOrder())); !slices.Equal(got, sorted) {
		t.Fatalf("in order %v, not %v", got, sorted)
	}
	first, ok := h.First()
	if ok != (len(want) > 0) || ok && first.value != sorted[0] {
		t.Fatalf("first %v, not the first of %v", first, sorted)
	}
	var low []int
	within := func(e *item) bool { return !h.Order.Before(&item{value: 10}, e) }
	h.Descend(func(e *item) bool {
		if within(e) {
			low = append(low, e.value)
			return true
		}
		return false
	})
	count := 0
	for _, e := range want {
		if within(e) {
			count++
		}
	}
	if len(low) != count {
		t.Fatalf("descends to %v of %v", low, sorted)
	}
}
