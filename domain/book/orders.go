package book

import "github.com/perpetua-exchange/perpetua/domain/decide"

// Orders are the live orders of a venue, found by their codes. It gives orders out and takes them back, so that a venue
// that has seen its busiest hour allocates nothing for an order any more: orders live in blocks that never move, and
// the one that was given back last is given out next, while it is still in the processor's cache.
//
// The zero Orders is empty and ready for use.
type Orders[T any] struct {
	blocks []*[orderBlock]Order[T]
	free   *Order[T] // linked by next
	used   uint32
	codes  Codes
}

const orderBlock = 1024

// Len returns how many orders there are.
func (s *Orders[T]) Len() int { return s.codes.Len() }

// Get returns the order with a code, or nil.
func (s *Orders[T]) Get(code decide.ID) *Order[T] {
	t, hash := s.codes.shard(&code)
	if t.used == 0 {
		return nil
	}
	b := &t.buckets[t.home(hash)]
	if i := b.find(hash); i < bucketSize {
		if o := s.at(b.number[i]); o.Code == code {
			return o
		}
	} else if b.passed == 0 {
		return nil
	}
	return s.search(code)
}

// search is Get for a code that is not in the first place where it could be.
func (s *Orders[T]) search(code decide.ID) *Order[T] {
	if handle := s.codes.Find(code, func(handle uint32) bool { return s.at(handle).Code == code }); handle != 0 {
		return s.at(handle)
	}
	return nil
}

// New returns a new order with a code that no other order has.
func (s *Orders[T]) New(code decide.ID) *Order[T] {
	t, hash := s.codes.shard(&code)
	if t.full() {
		t.grow()
	}
	b := &t.buckets[t.home(hash)]
	i := b.find(empty)
	if b.find(hash) < bucketSize || i == bucketSize || b.passed != 0 {
		if s.search(code) != nil {
			panic("book: a second order has the code " + code.String())
		}
		b, i = t.vacant(hash)
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
	o.Code = code
	s.codes.place(t, b, i, hash, o.handle)
	return o
}

// Delete forgets an order that does not rest. It is not to be looked at any more: it may become another order.
func (s *Orders[T]) Delete(o *Order[T]) {
	if o.level != nil || o.handle == 0 || !s.codes.Remove(o.Code, o.handle) {
		panic("book: an order was deleted that rests, or is not there")
	}
	*o = Order[T]{handle: o.handle, next: s.free}
	s.free = o
}

func (s *Orders[T]) at(handle uint32) *Order[T] {
	handle--
	return &s.blocks[handle/orderBlock][handle%orderBlock]
}
