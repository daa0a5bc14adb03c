package book

// Number returns a number that no other order of the same Orders has now: from 1 to Orders.Numbers.
func (o *Order[T]) Number() uint32 { return o.handle }

// Numbers returns the highest number that an order has, or had.
func (s *Orders[T]) Numbers() uint32 { return s.used }
