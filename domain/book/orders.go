package book

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// Orders holds the live orders of a venue and finds them by code. It allocates and reuses orders: once a venue has seen
// its busiest hour, new orders need no memory. Orders are in blocks that never move, and the order that was deleted
// last is reused first, while it is still in the processor's cache.
//
// The zero Orders is empty and ready for use.
type Orders[T any] struct {
	blocks []*[orderBlock]Order[T]
	free   *Order[T] // free orders, linked by next
	used   uint32
	codes  Codes
}

const orderBlock = 1024

// Len returns the number of orders.
func (s *Orders[T]) Len() int { return s.codes.Len() }

// Get returns the order with a code, or nil.
func (s *Orders[T]) Get(code scalar.ID) *Order[T] {
	h := hashOf(&code)
	t := s.codes.shard(h)
	if t.used == 0 {
		return nil
	}
	b := &t.buckets[t.home(h)]
	if p := b.with(h.tag()); p != 0 {
		if o := s.at(b.number[p.first()]); o.Code == code {
			return o
		}
	} else if b.passed == 0 {
		return nil
	}
	return s.search(code)
}

// search is Get for a code that is not the first match in its home bucket.
func (s *Orders[T]) search(code scalar.ID) *Order[T] {
	if handle := s.codes.Find(code, func(handle uint32) bool { return s.at(handle).Code == code }); handle != 0 {
		return s.at(handle)
	}
	return nil
}

// New returns a new order with a code that no other order has. It panics if the code is taken.
func (s *Orders[T]) New(code scalar.ID) *Order[T] {
	h := hashOf(&code)
	t := s.codes.shard(h)
	if t.full() {
		s.grow(t)
	}
	b := &t.buckets[t.home(h)]
	i := 0
	if free := b.with(vacancy); free != 0 && uint64(b.with(h.tag()))|uint64(b.passed) == 0 {
		i = free.first()
	} else {
		b, i = s.crowded(code)
	}
	o := s.free
	if o != nil {
		s.free, o.next = o.next, nil
	} else {
		if s.used%orderBlock == 0 {
			s.blocks = append(s.blocks, new([orderBlock]Order[T]))
		}
		s.used++
		o = s.at(s.used)
		o.handle = s.used
	}
	o.Code, o.slot = code, uint8(i)
	s.codes.fill(t, b, i, h, o.handle)
	return o
}

// crowded finds a slot for a new code if its home bucket has codes with the same tag, is full or was full.
func (s *Orders[T]) crowded(code scalar.ID) (*bucket, int) {
	if s.search(code) != nil {
		panic("book: a second order has the code " + code.String())
	}
	h := hashOf(&code)
	return s.codes.shard(h).vacant(h)
}

// grow enlarges a table, and updates the slots of the orders in it.
func (s *Orders[T]) grow(t *shard) {
	t.grow(func(handle uint32) scalar.ID { return s.at(handle).Code })
	for at := range t.buckets {
		for i, handle := range t.buckets[at].number {
			if handle != 0 {
				s.at(handle).slot = uint8(i)
			}
		}
	}
}

// Delete removes an order that does not rest. The caller must not use it afterwards, since it may become another order.
func (s *Orders[T]) Delete(o *Order[T]) {
	if o.level != nil || o.handle == 0 || !s.forget(o) {
		panic("book: an order was deleted that rests, or is not there")
	}
	*o = Order[T]{handle: o.handle, next: s.free}
	s.free = o
}

// forget removes an order's code. It reports whether the code was present.
func (s *Orders[T]) forget(o *Order[T]) bool {
	h := hashOf(&o.Code)
	t := s.codes.shard(h)
	if t.used == 0 {
		return false
	}
	b, i := &t.buckets[t.home(h)], int(o.slot)
	if i >= bucketSize || b.number[i] != o.handle {
		return s.codes.Remove(o.Code, o.handle)
	}
	b.tags[i], b.number[i] = vacancy, 0
	t.used--
	s.codes.used--
	return true
}

func (s *Orders[T]) at(handle uint32) *Order[T] {
	handle--
	return &s.blocks[handle/orderBlock][handle%orderBlock]
}
