package book

// Number returns the order's number, from 1 to Orders.Numbers. No other order of the same Orders has it now.
func (o *Order[T]) Number() uint32 { return o.handle }

// Numbers returns the highest number that any order has or had.
func (s *Orders[T]) Numbers() uint32 { return s.used }
