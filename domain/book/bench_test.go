package book

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// BenchmarkFlow is the flow of `bench --only book`: 45 % new, 45 % canceled by code, 10 % that take up to five.
func BenchmarkFlow(b *testing.B) {
	for _, size := range []int{10_000, 1_000_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) { runFlow(b, size) })
	}
}

type step struct {
	code          scalar.ID
	price, amount int64
	kind          uint8
	side          Side
}

type flow struct {
	book   Book[struct{}]
	orders Orders[struct{}]
	live   []scalar.ID
	random *rand.Rand
	spread int64
	steps  []step
}

func runFlow(b *testing.B, size int) {
	f := &flow{random: rand.New(rand.NewPCG(7, 8)), spread: int64(max(1000, size/20))}
	b.ReportAllocs()
	done := 0
	b.StopTimer()
	for done < b.N {
		for f.book.Len() < size {
			s := f.rest()
			f.apply(&s)
		}
		f.steps = f.steps[:0]
		for range min(5000, b.N-done) {
			f.draw()
		}
		b.StartTimer()
		for i := range f.steps {
			f.apply(&f.steps[i])
		}
		b.StopTimer()
		done += len(f.steps)
	}
}

func (f *flow) rest() step {
	s := step{side: Side(f.random.IntN(2)), price: 650_000 - 1 - f.random.Int64N(f.spread), amount: 1 + f.random.Int64N(9)}
	if s.side == Ask {
		s.price = 1_300_000 - s.price
	}
	binary.LittleEndian.PutUint64(s.code[:], f.random.Uint64())
	f.live = append(f.live, s.code)
	return s
}

func (f *flow) draw() {
	switch k := f.random.IntN(100); {
	case k < 45:
		f.steps = append(f.steps, f.rest())
	case k < 90 && len(f.live) > 0:
		at := f.random.IntN(len(f.live))
		f.steps = append(f.steps, step{kind: 1, code: f.live[at]})
		f.live[at] = f.live[len(f.live)-1]
		f.live = f.live[:len(f.live)-1]
	default:
		f.steps = append(f.steps, step{kind: 2, side: Side(f.random.IntN(2)), amount: 1 + f.random.Int64N(5)})
	}
}

func (f *flow) remove(o *Order[struct{}]) {
	f.book.Remove(o)
	f.orders.Delete(o)
}

func (f *flow) apply(s *step) {
	switch s.kind {
	case 0:
		o := f.orders.New(s.code)
		o.Price, o.Remaining, o.Side = s.price, s.amount, s.side
		f.book.Add(o)
	case 1:
		if o := f.orders.Get(s.code); o != nil {
			f.remove(o)
		}
	case 2:
		for left := s.amount; left > 0; {
			l := f.book.Best(s.side.Opposite())
			if l == nil {
				return
			}
			o := l.Front()
			if o.Remaining > left {
				f.book.Resize(o, o.Remaining-left)
				return
			}
			left -= o.Remaining
			f.remove(o)
		}
	}
}

// BenchmarkHostilePrices adds and removes orders each of which has its own price, 100,000 of them at a time.
func BenchmarkHostilePrices(b *testing.B) {
	for name, price := range hostile {
		b.Run(name, func(b *testing.B) {
			var book Book[struct{}]
			orders := make([]Order[struct{}], 100_000)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				o := &orders[n%len(orders)]
				if o.Resting() {
					book.Remove(o)
				}
				o.Price, o.Remaining, o.Side = price(int64(n)), 1, Side(n&1)
				book.Add(o)
			}
		})
	}
}
