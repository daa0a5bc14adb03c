package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/book"
)

// A bookFlow is what both books are put through: orders by number, at prices around the middle.
type bookFlow struct {
	random *rand.Rand
	spread int64
	next   uint64
	live   []uint64 // resting, as far as the flow knows
}

// The operations of a flow.
const (
	rest = iota
	cancel
	cross
)

type bookOp struct {
	kind   uint8
	side   book.Side
	id     uint64
	price  int64
	amount int64
}

func newBookFlow(spread int64) *bookFlow {
	return &bookFlow{random: rand.New(rand.NewPCG(7, 8)), spread: spread}
}

func (f *bookFlow) resting() bookOp {
	f.next++
	op := bookOp{kind: rest, side: book.Side(f.random.IntN(2)), id: f.next, amount: 1 + f.random.Int64N(9)}
	op.price = middle*10 - 1 - f.random.Int64N(f.spread)
	if op.side == book.Ask {
		op.price = middle*10 + 1 + f.random.Int64N(f.spread)
	}
	f.live = append(f.live, f.next)
	return op
}

// ops returns n operations: 45 % new, 45 % cancel, 10 % that take up to five from the other side.
func (f *bookFlow) ops(n int) []bookOp {
	out := make([]bookOp, n)
	for i := range out {
		switch k := f.random.IntN(100); {
		case k < 45:
			out[i] = f.resting()
		case k < 90 && len(f.live) > 0:
			at := f.random.IntN(len(f.live))
			out[i] = bookOp{kind: cancel, id: f.live[at]}
			f.live[at] = f.live[len(f.live)-1]
			f.live = f.live[:len(f.live)-1]
		default:
			out[i] = bookOp{kind: cross, side: book.Side(f.random.IntN(2)), amount: 1 + f.random.Int64N(5)}
		}
	}
	return out
}

// venueBook is a book of ours. Its orders are found again by the reference that Add left with the caller, or by number
// in a map, as the rules keep them by code.
type venueBook struct {
	book   book.Book[uint64]
	orders []*book.Order[uint64]          // by number, or
	byCode map[uint64]*book.Order[uint64] // if not nil
}

func (v *venueBook) keep(o *book.Order[uint64]) {
	if v.byCode != nil {
		v.byCode[o.Value] = o
		return
	}
	for uint64(len(v.orders)) <= o.Value {
		v.orders = append(v.orders, nil)
	}
	v.orders[o.Value] = o
}

func (v *venueBook) find(number uint64) *book.Order[uint64] {
	if v.byCode != nil {
		return v.byCode[number]
	}
	return v.orders[number]
}

func (v *venueBook) remove(o *book.Order[uint64]) {
	v.book.Remove(o)
	if v.byCode != nil {
		delete(v.byCode, o.Value)
		return
	}
	v.orders[o.Value] = nil
}

func (v *venueBook) apply(op bookOp) {
	switch op.kind {
	case rest:
		o := &book.Order[uint64]{Price: op.price, Remaining: op.amount, Side: op.side, Value: op.id}
		v.keep(o)
		v.book.Add(o)
	case cancel:
		if o := v.find(op.id); o != nil {
			v.remove(o)
		}
	case cross:
		for left := op.amount; left > 0; {
			l := v.book.Best(op.side.Opposite())
			if l == nil {
				return
			}
			o := l.Front()
			if o.Remaining > left {
				v.book.Resize(o, o.Remaining-left)
				return
			}
			left -= o.Remaining
			v.remove(o)
		}
	}
}

func (v *venueBook) size() int { return v.book.Len() }

// bookUnderTest is what a flow is applied to.
type bookUnderTest interface {
	apply(bookOp)
	size() int
}

// measureBook measures the books by themselves, without rules, records or accounts.
func measureBook(_ context.Context, b *bench) error {
	for _, size := range []int{10_000, b.scale} {
		if err := b.books(size); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) books(size int) error {
	spread := int64(max(1000, size/20))
	n := min(size/10, 50_000)
	theirs := newTimedBook(newPlainBook(), size, spread)
	for _, by := range []string{"reference", "number"} {
		under := &venueBook{}
		if by == "number" {
			under.byCode = make(map[uint64]*book.Order[uint64])
		}
		ours := newTimedBook(under, size, spread)
		row := Row{Measure: fmt.Sprintf("book operation, %d resting, orders by %s", size, by), Unit: "ns", Against: "a conventional book, by number"}
		if by == "reference" {
			row.Aim = atMost(1.0 / 6) // six times faster
		}
		if err := b.pair(row, func() (float64, error) { return ours.run(n, b.round/4), nil },
			func() (float64, error) { return theirs.run(n, b.round/4), nil }); err != nil {
			return err
		}
		b.rows[len(b.rows)-1].Note = fmt.Sprintf("%.2f allocations per operation, 0.45 of them the new orders; theirs %.2f",
			ours.allocations(), theirs.allocations())
	}
	return nil
}

// timedBook applies a flow to a book and counts.
type timedBook struct {
	book    bookUnderTest
	flow    *bookFlow
	size    int
	ops     int
	mallocs uint64
}

func newTimedBook(under bookUnderTest, size int, spread int64) *timedBook {
	t := &timedBook{book: under, flow: newBookFlow(spread), size: size}
	t.refill()
	return t
}

// refill rests orders until the book has its size again: what crosses takes some away.
func (t *timedBook) refill() {
	for t.book.size() < t.size {
		t.book.apply(t.flow.resting())
	}
}

// run applies batches of operations for a time and returns the nanoseconds of one. What makes the operations, and what
// fills the book again, is not counted.
func (t *timedBook) run(batch int, length time.Duration) float64 {
	var spent time.Duration
	var before, after runtime.MemStats
	done := 0
	for spent < length {
		ops := t.flow.ops(batch)
		runtime.ReadMemStats(&before)
		start := processorTime()
		for i := range ops {
			t.book.apply(ops[i])
		}
		spent += processorTime() - start
		runtime.ReadMemStats(&after)
		t.mallocs += after.Mallocs - before.Mallocs
		done += batch
		t.refill()
	}
	t.ops += done
	return float64(spent) / float64(done)
}

func (t *timedBook) allocations() float64 { return float64(t.mallocs) / float64(t.ops) }
