// Package book is a limit order book: resting orders in price-time priority.
//
// Prices are in ticks and amounts in steps; both are positive. The book maintains priority and sums, and decides
// nothing: the rules read it, and apply their decisions with Add, Remove and Resize. Orders (see orders.go) finds
// orders by code.
//
// The cost of an operation does not depend on the size of the book. An order has the links of the queue, and a level
// has links to the next better and the next worse level. An index (see index.go) finds a level by its price. Canceling,
// filling or adding an order at an existing price touches only neighbors. Orders, levels and index nodes are reused:
// nothing is allocated unless more rests than ever before, so the memory of a book is bounded by the most that has
// rested in it, at any prices.
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

// Order is an order that may rest in a book. Value holds the caller's data. The caller sets Price, Remaining and Side
// before Add and, while the order rests, changes them only through the book; Orders sets Code. All fields that the book
// itself reads are in one cache line.
type Order[T any] struct {
	Code      scalar.ID
	Price     int64
	Remaining int64
	prev      **Order[T] // the pointer to this order: next of the previous order, or front of the level
	next      *Order[T]
	level     *Level[T]
	handle    uint32 // number in Orders
	slot      uint8  // index in its home bucket in Codes, if it is there
	Side      Side
	Value     T
}

// Resting reports whether the order is in a book.
func (o *Order[T]) Resting() bool { return o.level != nil }

// Next returns the next order at the same price, or nil.
func (o *Order[T]) Next() *Order[T] { return o.next }

// Level holds all orders at one price on one side, in order of arrival.
type Level[T any] struct {
	Price  int64
	Amount int64 // sum of the remaining amounts
	Orders int   // number of orders

	front         *Order[T]
	back          **Order[T] // next of the last order, or front
	better, worse *Level[T]
	handle        uint32
}

// Front returns the order that trades first.
func (l *Level[T]) Front() *Order[T] { return l.front }

// Worse returns the level with the next worse price, or nil.
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
	// near caches levels by price modulo its length. A later level may have replaced one in the cache. If levels are
	// close together, as around the best price, the cache finds them without the index.
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

// keep adds a level to the cache.
func (s *side[T]) keep(l *Level[T]) { s.near[l.Price&int64(len(s.near)-1)] = l }

// widen enlarges the cache if there are many levels.
func (s *side[T]) widen() {
	if s.levels.taken <= len(s.near)/2 || len(s.near) == mostNear {
		return
	}
	s.near = make([]*Level[T], max(leastNear, 2*len(s.near)))
	for l := s.best; l != nil; l = l.worse {
		s.keep(l)
	}
}

// Len returns the number of resting orders.
func (b *Book[T]) Len() int { return b.orders }

// Best returns the best level of a side, or nil if it is empty.
func (b *Book[T]) Best(s Side) *Level[T] { return b.sides[s].best }

// Level returns the level at a price, or nil if nothing rests there.
func (b *Book[T]) Level(s Side, price int64) *Level[T] {
	return b.sides[s].at(price)
}

// Add adds an order after all others at its price. It panics if the order rests already or has no price or amount.
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

// link inserts a new level, which is already in the index, into the side's list.
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

// Remove removes an order from the book. It panics if the order does not rest.
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

// Resize sets the remaining amount of a resting order, which keeps its place in the queue.
func (b *Book[T]) Resize(o *Order[T], remaining int64) {
	if o.level == nil || remaining <= 0 {
		panic("book: an order that does not rest was resized, or one to nothing")
	}
	o.level.Amount += remaining - o.Remaining
	o.Remaining = remaining
}

// levels allocates price levels and finds them by handle, in blocks that never move.
type levels[T any] struct {
	blocks []*[levelBlock]Level[T]
	used   uint32
	taken  int
	free   *Level[T] // free levels, linked by worse
}

// The block is so large that the allocator adds no header to it, so that every level is in one cache line.
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
