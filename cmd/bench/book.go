package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// bookFlow generates operations for both books: orders that rest around the middle, cancels, and orders that take. An
// order has a number for one book and a code for the other.
type bookFlow struct {
	random *rand.Rand
	spread int64
	next   uint64
	live   []uint64 // resting orders, as far as the flow can predict
	made   []bookOp
}

// The operations of a flow.
const (
	place = iota
	cancel
	cross
)

type bookOp struct {
	kind   uint8
	side   book.Side
	number uint64    // key of an order in a conventional book …
	code   scalar.ID // … and in ours
	price  int64
	amount int64
}

func newBookFlow(spread int64) *bookFlow {
	return &bookFlow{random: rand.New(rand.NewPCG(7, 8)), spread: spread}
}

// codeOf returns the code of an order as the venue derives it.
func codeOf(number uint64) scalar.ID {
	return decide.Stamp{Journal: scalar.ID{1}, Sequence: int64(number)}.Derive(0)
}

func (f *bookFlow) resting() bookOp {
	f.next++
	op := bookOp{kind: place, side: book.Side(f.random.IntN(2)), number: f.next, code: codeOf(f.next), amount: 1 + f.random.Int64N(9)}
	op.price = middle*10 - 1 - f.random.Int64N(f.spread)
	if op.side == book.Ask {
		op.price = middle*10 + 1 + f.random.Int64N(f.spread)
	}
	f.live = append(f.live, f.next)
	return op
}

// ops returns n operations: 45 % new orders, 45 % cancels, and 10 % that take up to five orders of the other side. The
// slice is valid until the next call.
func (f *bookFlow) ops(n int) []bookOp {
	f.made = f.made[:0]
	for range n {
		switch k := f.random.IntN(100); {
		case k < 45:
			f.made = append(f.made, f.resting())
		case k < 90 && len(f.live) > 0:
			at := f.random.IntN(len(f.live))
			f.made = append(f.made, bookOp{kind: cancel, number: f.live[at], code: codeOf(f.live[at])})
			f.live[at] = f.live[len(f.live)-1]
			f.live = f.live[:len(f.live)-1]
		default:
			f.made = append(f.made, bookOp{kind: cross, side: book.Side(f.random.IntN(2)), amount: 1 + f.random.Int64N(5)})
		}
	}
	return f.made
}

// venueBook is our book with an index of the resting orders by code, as the rules use it.
type venueBook struct {
	book   book.Book[struct{}]
	orders book.Orders[struct{}]
}

func (v *venueBook) remove(o *book.Order[struct{}]) {
	v.book.Remove(o)
	v.orders.Delete(o)
}

func (v *venueBook) apply(op *bookOp) {
	switch op.kind {
	case place:
		o := v.orders.New(op.code)
		o.Price, o.Remaining, o.Side = op.price, op.amount, op.side
		v.book.Add(o)
	case cancel:
		if o := v.orders.Get(op.code); o != nil {
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

// bookUnderTest is a book that a flow is applied to.
type bookUnderTest interface {
	apply(*bookOp)
	size() int
}

// measureBook measures the books without rules, records or accounts: an operation places an order, cancels an order by
// its key, or takes.
func measureBook(_ context.Context, b *bench) error {
	for _, size := range []int{10_000, b.scale} {
		spread := int64(max(1000, size/20))
		ours, theirs := newTimedBook(&venueBook{}, size, spread), newTimedBook(newPlainBook(), size, spread)
		row := Row{Measure: fmt.Sprintf("book operation, %d resting", size), Unit: "ns", Against: "a conventional book", Aim: atMost(1.0 / 6)} // six times faster
		if err := b.pair(row, func() (float64, error) { return ours.run(b.round / 2), nil },
			func() (float64, error) { return theirs.run(b.round / 2), nil }); err != nil {
			return err
		}
		b.rows[len(b.rows)-1].Note = fmt.Sprintf("%.2f allocations per operation, the new orders included; theirs %.2f", ours.allocations(), theirs.allocations())
	}
	return nil
}

// timedBook applies a flow to a book.
type timedBook struct {
	book bookUnderTest
	flow *bookFlow
	size int
}

const bookBatch = 5000 // operations

func newTimedBook(under bookUnderTest, size int, spread int64) *timedBook {
	t := &timedBook{book: under, flow: newBookFlow(spread), size: size}
	t.refill()
	return t
}

// refill adds resting orders until the book has its full size again, after orders that take have removed some.
func (t *timedBook) refill() {
	for t.book.size() < t.size {
		op := t.flow.resting()
		t.book.apply(&op)
	}
}

// run applies batches of operations for a time and returns the nanoseconds per operation, including collecting its
// garbage. Generating operations, refilling the book, and garbage of earlier work are not counted.
func (t *timedBook) run(length time.Duration) float64 {
	runtime.GC()
	var spent time.Duration
	done := 0
	for spent < length {
		ops := t.flow.ops(bookBatch)
		start := processorTime()
		for i := range ops {
			t.book.apply(&ops[i])
		}
		spent += processorTime() - start
		done += len(ops)
		t.refill()
	}
	return float64(spent) / float64(done)
}

// allocations returns the number of allocations per operation.
func (t *timedBook) allocations() float64 {
	var before, after runtime.MemStats
	ops := t.flow.ops(bookBatch)
	runtime.ReadMemStats(&before)
	for i := range ops {
		t.book.apply(&ops[i])
	}
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(len(ops))
}
