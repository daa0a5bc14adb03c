package book

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

type payload struct{ id int }

// model is the plainest book that could be: a slice for each side, sorted when it is looked at.
type model [2][]*Order[payload]

func (m *model) sorted(s Side) []*Order[payload] {
	out := slices.Clone(m[s])
	slices.SortStableFunc(out, func(a, b *Order[payload]) int {
		switch {
		case s.Better(a.Price, b.Price):
			return -1
		case s.Better(b.Price, a.Price):
			return 1
		}
		return 0
	})
	return out
}

// TestBookAgreesWithModel drives the book and the model with the same random orders and compares all there is to see.
func TestBookAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b Book[payload]
		var m model
		// Some prices are multiples of a large number: far apart, and at one place where places are prices modulo something.
		apart := rapid.SampledFrom([]int64{1, 1, 1 << 12, 1 << 17, 1 << 60}).Draw(t, "apart")
		prices := rapid.SampledFrom([][2]int64{{1, 5}, {600, 700}, {1, 5000}, {1, 1 << 40}, {1 << 24, 1<<24 + 200}, {1, 1<<63 - 1}}).Draw(t, "prices")
		for id := range rapid.IntRange(1, 300).Draw(t, "operations") {
			side := Side(rapid.IntRange(0, 1).Draw(t, "side"))
			resting := m[side]
			operation := rapid.IntRange(0, 5).Draw(t, "operation")
			if len(resting) == 0 || operation < 3 {
				o := &Order[payload]{Side: side, Price: max(1, rapid.Int64Range(prices[0], prices[1]).Draw(t, "price")&^(apart-1)),
					Remaining: rapid.Int64Range(1, 1000).Draw(t, "amount"), Value: payload{id}}
				b.Add(o)
				m[side] = append(m[side], o)
			} else if at := rapid.IntRange(0, len(resting)-1).Draw(t, "which"); operation < 5 {
				b.Remove(resting[at])
				m[side] = slices.Delete(slices.Clone(resting), at, at+1)
			} else {
				b.Resize(resting[at], rapid.Int64Range(1, 1000).Draw(t, "amount"))
			}
			compare(t, &b, &m)
		}
	})
}

func compare(t *rapid.T, b *Book[payload], m *model) {
	if b.Len() != len(m[Bid])+len(m[Ask]) {
		t.Fatalf("%d orders rest, not %d", b.Len(), len(m[Bid])+len(m[Ask]))
	}
	for _, side := range [2]Side{Bid, Ask} {
		want := m.sorted(side)
		for l := b.Best(side); l != nil; l = l.Worse() {
			if b.Level(side, l.Price) != l {
				t.Fatalf("level %d is not found", l.Price)
			}
			if other := b.Level(side.Opposite(), l.Price); other == l {
				t.Fatalf("level %d is on both sides", l.Price)
			}
			amount, orders := int64(0), 0
			for o := l.Front(); o != nil; o = o.Next() {
				if len(want) == 0 || want[0] != o || o.Price != l.Price || !o.Resting() {
					t.Fatalf("order %d stands where %v should", o.Value.id, want)
				}
				want = want[1:]
				amount += o.Remaining
				orders++
			}
			if amount != l.Amount || orders != l.Orders {
				t.Fatalf("level %d: %d in %d, not %d in %d", l.Price, l.Amount, l.Orders, amount, orders)
			}
		}
		if len(want) != 0 {
			t.Fatalf("%d orders are missing", len(want))
		}
	}
	if b.Level(Bid, 1<<62) != nil {
		t.Fatalf("a level where there is none")
	}
}

func TestMisusePanics(t *testing.T) {
	rests := func(b *Book[payload]) *Order[payload] {
		o := &Order[payload]{Price: 1, Remaining: 1}
		b.Add(o)
		return o
	}
	for name, f := range map[string]func(b *Book[payload]){
		"added twice":     func(b *Book[payload]) { b.Add(rests(b)) },
		"no price":        func(b *Book[payload]) { b.Add(&Order[payload]{Remaining: 1}) },
		"no amount":       func(b *Book[payload]) { b.Add(&Order[payload]{Price: 1}) },
		"removed twice":   func(b *Book[payload]) { o := rests(b); b.Remove(o); b.Remove(o) },
		"resized to none": func(b *Book[payload]) { b.Resize(rests(b), 0) },
		"resized away":    func(b *Book[payload]) { b.Resize(&Order[payload]{Price: 1, Remaining: 1}, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it went unnoticed")
				}
			}()
			f(&Book[payload]{})
		})
	}
}

// TestNothingIsAllocated checks that resting, resizing and removing allocate nothing once the levels have existed.
func TestNothingIsAllocated(t *testing.T) {
	var b Book[payload]
	orders := make([]Order[payload], 1000)
	work := func() {
		for i := range orders {
			o := &orders[i]
			o.Side, o.Price, o.Remaining = Side(i%2), int64(1000+i%100), 5
			b.Add(o)
		}
		for i := range orders {
			b.Resize(&orders[i], 3)
			b.Remove(&orders[i])
		}
	}
	work()
	if n := testing.AllocsPerRun(10, work); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLines checks that what an operation looks at is in as few lines of the processor's cache as can be.
func TestLines(t *testing.T) {
	if size := unsafe.Sizeof(Order[[0]byte]{}); size != 64 {
		t.Errorf("the book's own part of an order has %d bytes", size)
	}
	if size := unsafe.Sizeof(bucket{}); size != 64 {
		t.Errorf("a bucket has %d bytes", size)
	}
	var b Book[payload]
	b.Add(&Order[payload]{Price: 1, Remaining: 1})
	level := b.Best(Bid)
	if size, at := unsafe.Sizeof(*level), uintptr(unsafe.Pointer(level)); size != 64 || at%64 != 0 {
		t.Errorf("a level has %d bytes and begins at byte %d of a line", size, at%64)
	}
	var orders Orders[[0]byte]
	if at := uintptr(unsafe.Pointer(orders.New(code(1, 1)))); at%64 != 0 {
		t.Errorf("an order begins at byte %d of a line", at%64)
	}
}
