package book

import (
	"encoding/binary"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// code makes a code whose hash has few values, so that many codes want the same place. Unless they are very few, their
// tags differ.
func code(number uint64, hashes uint32) (c scalar.ID) {
	binary.LittleEndian.PutUint32(c[:], uint32(number)%hashes<<1)
	if hashes > 2 {
		c[5] = byte(number)
	}
	binary.BigEndian.PutUint64(c[8:], number)
	return c
}

// TestOrdersAgreeWithMap enters, finds and deletes orders, and does the same in a map.
func TestOrdersAgreeWithMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Orders[payload]
		want := make(map[scalar.ID]*Order[payload])
		hashes := rapid.SampledFrom([]uint32{1, 2, 5, 1 << 30}).Draw(t, "hashes")
		most := rapid.SampledFrom([]uint64{10, 60, 400}).Draw(t, "most")
		for id := range rapid.IntRange(1, 400).Draw(t, "operations") {
			c := code(rapid.Uint64Range(0, most).Draw(t, "code"), hashes)
			if o := s.Get(c); o != want[c] {
				t.Fatalf("%s is %v, not %v", c, o, want[c])
			} else if o == nil {
				o = s.New(c)
				if o.Code != c || o.Price != 0 || o.Value.id != 0 || o.Resting() || o.Next() != nil {
					t.Fatalf("a new order is %+v", o)
				}
				o.Value.id, o.Price = id, 1
				want[c] = o
			} else if rapid.IntRange(0, 2).Draw(t, "operation") > 0 {
				s.Delete(o)
				delete(want, c)
			}
			if s.Len() != len(want) {
				t.Fatalf("%d orders, not %d", s.Len(), len(want))
			}
		}
		for number := range most + 1 {
			c := code(number, hashes)
			if s.Get(c) != want[c] {
				t.Fatalf("%s is %v, not %v", c, s.Get(c), want[c])
			}
		}
		for c, o := range want {
			if o.Code != c {
				t.Fatalf("the order %s became %s", c, o.Code)
			}
			s.Delete(o)
		}
		for at := range s.codes.shards {
			for _, b := range s.codes.shards[at].buckets {
				if b != (bucket{}) {
					t.Fatalf("nothing is there, but %+v", b)
				}
			}
		}
	})
}

// TestOrdersKnowTheirPlaces checks that an order is forgotten without a search, also after its table has grown.
func TestOrdersKnowTheirPlaces(t *testing.T) {
	var s Orders[payload]
	for number := range uint64(20_000) {
		c := decide.Stamp{Journal: scalar.ID{1}, Sequence: int64(number)}.Derive(0)
		s.New(c)
	}
	elsewhere := 0
	for at := range s.codes.shards {
		table := &s.codes.shards[at]
		for home := range table.buckets {
			for place, handle := range table.buckets[home].number {
				if handle == 0 {
					continue
				}
				switch o := s.at(handle); {
				case table.home(hashOf(&o.Code)) != home:
					elsewhere++
				case int(o.slot) != place:
					t.Fatalf("order %d is at place %d, not %d", handle, place, o.slot)
				}
			}
		}
	}
	if elsewhere > 20 {
		t.Errorf("%d of 20,000 orders are not where they belong", elsewhere)
	}
}

func TestMisuseOfOrdersPanics(t *testing.T) {
	for name, f := range map[string]func(s *Orders[payload], b *Book[payload]){
		"one code twice": func(s *Orders[payload], _ *Book[payload]) { s.New(code(7, 1)); s.New(code(7, 1)) },
		"deleted twice":  func(s *Orders[payload], _ *Book[payload]) { o := s.New(code(7, 1)); s.Delete(o); s.Delete(o) },
		"never there":    func(s *Orders[payload], _ *Book[payload]) { s.New(code(7, 1)); s.Delete(&Order[payload]{}) },
		"another one's":  func(s *Orders[payload], _ *Book[payload]) { new(Orders[payload]).Delete(s.New(code(7, 1))) },
		"deleted while there": func(s *Orders[payload], b *Book[payload]) {
			o := s.New(code(7, 1))
			o.Price, o.Remaining = 1, 1
			b.Add(o)
			s.Delete(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it went unnoticed")
				}
			}()
			f(new(Orders[payload]), new(Book[payload]))
		})
	}
}

// hostile prices have no two orders close to each other, or close but far from all others.
var hostile = map[string]func(n int64) int64{
	"far apart":    func(n int64) int64 { return n*0x9e3779b97f4a7c1>>1&(1<<62-1) | 1 },
	"powers":       func(n int64) int64 { return 1<<(n%63) + n/63 },
	"pairs":        func(n int64) int64 { return n/2<<40 + n%2 + 1 },
	"same place":   func(n int64) int64 { return (n + 1) << 20 },
	"to the right": func(n int64) int64 { return 1 + n*17 },
	"to the left":  func(n int64) int64 { return 1<<62 - n*17 },
}

// TestHostilePrices rests orders at prices made to make the book large or slow: what it holds and what it walks through
// stay bounded by the number of orders, and all of it is used again.
func TestHostilePrices(t *testing.T) {
	const orders = 20_000
	for name, price := range hostile {
		t.Run(name, func(t *testing.T) {
			heap := func() uint64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return m.HeapAlloc
			}
			var b Book[struct{}]
			all := make([]Order[struct{}], orders)
			before := heap()
			work := func() {
				for n := range all {
					o := &all[n]
					o.Price, o.Remaining, o.Side = price(int64(n)), 1, Side(n&1)
					b.Add(o)
				}
				for side := range b.sides {
					s := &b.sides[side]
					if nodes := s.index.count(t); nodes >= 2*s.levels.taken {
						t.Fatalf("%d nodes for %d levels", nodes, s.levels.taken)
					}
				}
				for n := range all {
					b.Remove(&all[n])
				}
			}
			work()
			if each := (heap() - before) / orders; each > 280 {
				t.Errorf("%d bytes for each order", each)
			}
			if n := testing.AllocsPerRun(1, work); n > 0 {
				t.Errorf("%v allocations the second time", n)
			}
			runtime.KeepAlive(all)
		})
	}
}

// count walks through the index, checks that no way is longer than a price has groups of bits and no node has but one
// child, and returns how many nodes there are.
func (x *index) count(t *testing.T) (nodes int) {
	var walk func(number uint32, deep int)
	walk = func(number uint32, deep int) {
		n := x.node(number)
		nodes++
		if deep > 16 || n.shift > 0 && n.set&(n.set-1) == 0 || n.set == 0 {
			t.Fatalf("a node at depth %d with the children %b", deep, n.set)
		}
		for i, child := range n.child {
			if (child != 0) != (n.set>>i&1 != 0) {
				t.Fatalf("child %d is %d, and the set %b", i, child, n.set)
			}
			if child != 0 && n.shift > 0 {
				walk(child, deep+1)
			}
		}
	}
	if x.root != 0 {
		walk(x.root, 1)
	}
	return nodes
}

// TestLookingChangesNothing: readers look into a book at the same time.
func TestLookingChangesNothing(t *testing.T) {
	var b Book[struct{}]
	for n := range int64(5000) {
		b.Add(&Order[struct{}]{Price: 1 + n*(1<<18+3), Remaining: 1})
	}
	done := make(chan int)
	for range 2 {
		go func() {
			found := 0
			for n := range int64(5000) {
				if b.Level(Bid, 1+n*(1<<18+3)) != nil && b.Level(Ask, 1+n) == nil && b.Level(Bid, 2+n*(1<<18+3)) == nil {
					found++
				}
			}
			done <- found
		}()
	}
	for range 2 {
		if found := <-done; found != 5000 {
			t.Errorf("%d of 5000 levels are found", found)
		}
	}
}
