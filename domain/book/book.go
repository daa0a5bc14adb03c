// Package book is a limit order book: resting orders in price-time priority.
//
// Prices are in ticks, amounts in steps; both are positive. The book keeps order and sums and decides nothing: the
// rules read it, and apply what they decided with Add, Remove and Resize. Orders (see orders.go) finds them by code.
//
// It is built so that an operation costs the same whatever rests in it. Orders carry the links of their queue
// themselves, and so do levels, which hang in a list from the best to the worst; a level is found by its price through
// an index (see index.go). Canceling, filling and resting at a known price touch only neighbours. Orders, levels and
// the nodes of the index are used again: nothing is allocated as long as no more rests than ever before, and what a
// book takes is bounded by the most that rested in it, at whatever prices.
package book

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// Side is the side of the book that an order rests on.
type Side uint8

// The two sides.
const (
	Bid Side = iota // buyers; the best price is the highest
	Ask             // sellers; the best price is the lowest
)

// Opposite returns the other side.
func (s Side) Opposite() Side { return s ^ 1 }

// Better reports whether price a has priority over price b on the side.
func (s Side) Better(a, b int64) bool {
	if s == Bid {
		return a > b
	}
	return a < b
}

// Order is an order that may rest in a book, with what else its owner wants to know of it in Value. Price, Remaining
// and Side are set before Add, and while it rests changed only through the book; Code is set by Orders. All that the
// book itself looks at is in one line of the processor's cache.
type Order[T any] struct {
	Code      scalar.ID
	Price     int64
	Remaining int64
	prev      **Order[T] // what leads to this order: the link of the one before it, or its level's front
	next      *Order[T]
	level     *Level[T]
	handle    uint32 // in Orders
	place     uint8  // in the bucket where its code belongs, if that is where it is
	Side      Side
	Value     T
}

// Resting reports whether the order is in a book.
func (o *Order[T]) Resting() bool { return o.level != nil }

// Next returns the order behind this one at the same price, or nil.
func (o *Order[T]) Next() *Order[T] { return o.next }

// Level is all that rests at one price on one side, in order of arrival.
type Level[T any] struct {
	Price  int64
	Amount int64 // the sum of what remains of its orders
	Orders int   // how many they are

	front         *Order[T]
	back          **Order[T] // the link behind the last order
	better, worse *Level[T]
	handle        uint32
}

// Front returns the order that trades first.
func (l *Level[T]) Front() *Order[T] { return l.front }

// Worse returns the next level away from the best, or nil.
func (l *Level[T]) Worse() *Level[T] { return l.worse }

// Book holds the resting orders of one instrument. The zero Book is empty and ready for use.
type Book[T any] struct {
	sides  [2]side[T]
	orders int
}

type side[T any] struct {
	best   *Level[T]
	index  index
	levels levels[T]
	// A level is at its price modulo the length, unless another one took the place since. Where levels stand close
	// together, as around the best price, that finds all of them without a look into the index.
	near []*Level[T]
}

const (
	leastNear = 64
	mostNear  = 1 << 16
)

// at returns the level at a price, or nil.
func (s *side[T]) at(price int64) *Level[T] {
	if s.best == nil {
		return nil
	}
	if l := s.near[price&int64(len(s.near)-1)]; l != nil && l.Price == price {
		return l
	}
	return s.levels.get(s.index.at(price))
}

// keep remembers where a level is.
func (s *side[T]) keep(l *Level[T]) { s.near[l.Price&int64(len(s.near)-1)] = l }

// widen makes room to remember where more levels are.
func (s *side[T]) widen() {
	if s.levels.taken <= len(s.near)/2 || len(s.near) == mostNear {
		return
	}
	s.near = make([]*Level[T], max(leastNear, 2*len(s.near)))
	for l := s.best; l != nil; l = l.worse {
		s.keep(l)
	}
}

// Len returns how many orders rest.
func (b *Book[T]) Len() int { return b.orders }

// Best returns the best level of a side, or nil if it is empty.
func (b *Book[T]) Best(s Side) *Level[T] { return b.sides[s].best }

// Level returns the level at a price, or nil if nothing rests there.
func (b *Book[T]) Level(s Side, price int64) *Level[T] {
	return b.sides[s].at(price)
}

// Add puts an order behind all others at its price.
func (b *Book[T]) Add(o *Order[T]) {
	if o.level != nil || o.Price <= 0 || o.Remaining <= 0 {
		panic("book: an order that rests already, or has no price or amount, was added")
	}
	s := &b.sides[o.Side]
	l := s.best
	if l == nil || l.Price != o.Price {
		if l = s.at(o.Price); l == nil {
			l = s.levels.make(o.Price)
			s.index.put(o.Price, l.handle)
			s.widen()
			s.keep(l)
			b.link(s, o.Side, l)
		}
	}
	o.level, o.prev, o.next = l, l.back, nil
	*l.back = o
	l.back = &o.next
	l.Amount += o.Remaining
	l.Orders++
	b.orders++
}

// link puts a new level, which is in the index already, into the list of its side.
func (b *Book[T]) link(s *side[T], which Side, l *Level[T]) {
	if s.best == nil || which.Better(l.Price, s.best.Price) {
		if l.worse = s.best; l.worse != nil {
			l.worse.better = l
		}
		s.best = l
		return
	}
	if which == Bid {
		l.better = s.levels.get(s.index.above(l.Price))
	} else {
		l.better = s.levels.get(s.index.below(l.Price))
	}
	l.worse = l.better.worse
	l.better.worse = l
	if l.worse != nil {
		l.worse.better = l
	}
}

// Remove takes an order out of the book.
func (b *Book[T]) Remove(o *Order[T]) {
	l := o.level
	if l == nil {
		panic("book: an order that does not rest was removed")
	}
	*o.prev = o.next
	behind := &l.back
	if o.next != nil {
		behind = &o.next.prev
	}
	*behind = o.prev
	o.level, o.prev, o.next = nil, nil, nil
	l.Amount -= o.Remaining
	l.Orders--
	b.orders--
	if l.Orders == 0 {
		b.drop(&b.sides[o.Side], l)
	}
}

func (b *Book[T]) drop(s *side[T], l *Level[T]) {
	if l.better == nil {
		s.best = l.worse
	} else {
		l.better.worse = l.worse
	}
	if l.worse != nil {
		l.worse.better = l.better
	}
	s.index.remove(l.Price)
	s.levels.release(l)
}

// Resize sets what remains of a resting order, which keeps its place in the queue.
func (b *Book[T]) Resize(o *Order[T], remaining int64) {
	if o.level == nil || remaining <= 0 {
		panic("book: an order that does not rest was resized, or one to nothing")
	}
	o.level.Amount += remaining - o.Remaining
	o.Remaining = remaining
}

// levels gives out price levels by handle, from blocks that never move.
type levels[T any] struct {
	blocks []*[levelBlock]Level[T]
	used   uint32
	taken  int
	free   *Level[T] // linked by worse
}

// So large that the allocator puts no word of its own before the block, and every level is in one line of the cache.
const levelBlock = 512

func (p *levels[T]) get(handle uint32) *Level[T] {
	if handle == 0 {
		return nil
	}
	handle--
	return &p.blocks[handle/levelBlock][handle%levelBlock]
}

func (p *levels[T]) make(price int64) *Level[T] {
	p.taken++
	l := p.free
	if l != nil {
		p.free = l.worse
		l.worse = nil
	} else {
		if p.used%levelBlock == 0 {
			p.blocks = append(p.blocks, new([levelBlock]Level[T]))
		}
		p.used++
		l = p.get(p.used)
		l.handle = p.used
	}
	l.Price, l.back = price, &l.front
	return l
}

func (p *levels[T]) release(l *Level[T]) {
	p.taken--
	*l = Level[T]{handle: l.handle, worse: p.free}
	p.free = l
}
