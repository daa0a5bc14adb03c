package schedule

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

type work struct {
	Slot
	arrival int
}

func (w *work) Tie(o *work) int { return cmp.Compare(w.arrival, o.arrival) }

// draw returns a queue and its entries, sorted. Some were appended and the others pushed; others again were removed.
func draw(t *rapid.T) (q *Queue[*work], queued []*work) {
	q = new(Queue[*work])
	made := 0
	fresh := func() *work {
		made++
		w := &work{Slot: At(scalar.Time(rapid.Int64Range(1, 20).Draw(t, "time")), Kind(rapid.IntRange(0, 2).Draw(t, "kind"))), arrival: made}
		queued = append(queued, w)
		return w
	}
	remove := func() {
		for len(queued) > 0 && rapid.Bool().Draw(t, "remove") {
			n := rapid.IntRange(0, len(queued)-1).Draw(t, "which")
			q.Remove(queued[n])
			if queued[n].Queued() {
				t.Fatal("an entry is in the queue after its removal")
			}
			q.Remove(queued[n]) // which does nothing
			queued = slices.Delete(queued, n, n+1)
		}
	}
	for range rapid.IntRange(0, 30).Draw(t, "appended") {
		q.Append(fresh())
	}
	remove()
	q.Restore()
	for range rapid.IntRange(0, 30).Draw(t, "pushed") {
		q.Push(fresh())
	}
	remove()
	slices.SortFunc(queued, func(a, b *work) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.arrival, b.arrival))
	})
	return q, queued
}

// TestQueue compares a queue with its sorted entries.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, want := draw(t)
		if got := q.Sorted(); !slices.Equal(got, want) {
			t.Fatalf("sorted %v, not %v", got, want)
		}
		next, some := q.Next()
		first, _ := q.First()
		if some != (len(want) > 0) || some && (next != want[0].Time || first != want[0]) {
			t.Fatalf("the next is due at %d (%t), of %v", next, some, want)
		}
		now := scalar.Time(rapid.Int64Range(0, 21).Draw(t, "now"))
		n := rapid.IntRange(0, 10).Draw(t, "n")
		var batch []*work
		for _, w := range want {
			if len(batch) == n || w.Time > now || w.Kind != want[0].Kind {
				break
			}
			batch = append(batch, w)
		}
		if got := q.Batch(n, now); !slices.Equal(got, batch) {
			t.Fatalf("batch %v, not %v", got, batch)
		}
	})
}

// TestEachDue compares what EachDue passes with a look at all entries.
func TestEachDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, queued := draw(t)
		now := scalar.Time(rapid.Int64Range(0, 21).Draw(t, "now"))
		most := rapid.IntRange(0, 70).Draw(t, "most")
		due := 0
		for _, w := range queued {
			if w.Time <= now {
				due++
			}
		}
		var got []*work
		all := q.EachDue(now, most, func(w *work) { got = append(got, w) })
		if all != (due <= most) || len(got) != min(due, most) {
			t.Fatalf("%d entries, all: %t; %d of %v are due at %d", len(got), all, due, queued, now)
		}
		for n, w := range got {
			if w.Time > now || slices.Contains(got[:n], w) {
				t.Fatalf("an entry of %d is passed at %d, or twice", w.Time, now)
			}
		}
	})
}
