package trading

import (
	"cmp"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/pack"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// orderNumbers numbers the live orders in the order in which they are visited, from 1.
type orderNumbers struct {
	written []uint32 // by book.Order.Number
	count   uint32
	read    []*resting // index 1 is the first order
}

// liveOrders visits the orders in the books and then the live orders that do not rest: those that wait for a price, and
// those that sweep.
func (v *visit) liveOrders() {
	n := v.Len(v.State.orders.Len())
	if v.Reading() {
		v.orders.read = make([]*resting, 1, v.Room(n)+1)
	} else {
		v.orders.written = make([]uint32, v.State.orders.Numbers()+1)
	}
	for _, i := range v.listing {
		v.bookSide(i, book.Bid)
		v.bookSide(i, book.Ask)
	}
	v.otherOrders()
	slices.SortFunc(v.stops, func(a, b *stop) int { return cmp.Compare(a.arrival, b.arrival) })
	for _, s := range v.stops {
		s.list()
	}
}

// bookSide visits the orders on a side of a book, level by level. Reading adds them to the book.
func (v *visit) bookSide(i *instrument, side book.Side) {
	var level *book.Level[live]
	if !v.Reading() {
		level = i.book.Best(side)
	}
	price := int64(0)
	for {
		n, at := 0, price
		var o *resting
		if level != nil {
			n, at, o = level.Orders, level.Price, level.Front()
			level = level.Worse()
		}
		if n = v.Len(n); n == 0 {
			return
		}
		pack.Delta(v.Coder, &at, price)
		price = at
		for range n {
			one := v.order(o, side, price)
			if !v.Reading() {
				o = o.Next()
			} else if one == nil {
				return
			} else {
				v.addToBook(i, one)
			}
		}
	}
}

// addToBook adds an order that was read to its book.
func (v *visit) addToBook(i *instrument, o *resting) {
	if o.Value.position.instrument != i || o.Value.untriggered() {
		v.Fail(errContradiction)
		return
	}
	i.book.Add(o)
}

// otherOrders visits the live orders that are in no book.
func (v *visit) otherOrders() {
	if v.Reading() {
		for more := false; ; {
			if v.Bool(&more); !more {
				return
			}
			v.otherOrder(nil)
		}
	}
	more, end := true, false
	for _, a := range v.holders() {
		for o := range a.orders(nil) {
			if v.orders.written[o.Number()] == 0 {
				v.Bool(&more)
				v.otherOrder(o)
			}
		}
	}
	v.Bool(&end)
}

func (v *visit) otherOrder(o *resting) {
	var side book.Side
	var price int64
	if o != nil {
		side, price = o.Side, o.Price
	}
	pack.Byte(v.Coder, &side)
	pack.Int(v.Coder, &price)
	v.check(side <= book.Ask)
	v.order(o, side, price)
}

// Flags for the optional parts of a live order. The instruction has the others.
const (
	savedQuote      = 1 << 1
	savedUpdated    = 1 << 2
	savedDue        = 1 << 3
	savedRemembered = 1 << 5 // the account remembers the reference, with this order's last record
	savedStop       = 1 << 8

	savedKnown = savedQuote | savedUpdated | savedDue | savedRemembered | savedStop | savedInstruction
)

// savedParts returns the flags of a live order.
func (l *live) savedParts() uint64 {
	return l.instruction.saved() | flag(savedQuote, l.filledQuote != 0) | flag(savedUpdated, l.updated != l.created) | flag(savedDue, l.due != nil) |
		flag(savedRemembered, l.remembered() != nil) | flag(savedStop, l.stop != nil)
}

// flag returns the flag of a part if the order has it.
func flag(part uint64, is bool) uint64 {
	if is {
		return part
	}
	return 0
}

// order visits a live order. While reading, o is nil. It returns the order, or nil if reading fails.
func (v *visit) order(o *resting, side book.Side, price int64) *resting {
	c := v.Coder
	var code scalar.ID
	var flags uint64
	var h *position
	if o != nil {
		code, flags, h = o.Code, o.Value.savedParts(), o.Value.position
		v.orders.count++
		v.orders.written[o.Number()] = v.orders.count
	}
	c.Raw(code[:])
	c.Uint(&flags)
	v.check(flags&^savedKnown == 0)
	pack.Ref(c, &h, &v.positions)
	if c.Reading() {
		if c.Err() != nil {
			return nil
		}
		o = v.State.orders.New(code)
		o.Side, o.Price = side, price
		o.Value.position = h
	}
	l := &o.Value
	pack.Int(c, &o.Remaining)
	pack.Delta(c, &l.amount, o.Remaining)
	pack.Word(c, &l.kind)
	pack.Word(c, &l.tif)
	pack.Delta(c, &l.created, v.last.created)
	pack.Delta(c, &l.sequence, v.last.sequence)
	v.last.created, v.last.sequence = l.created, l.sequence
	v.orderParts(o, flags)
	if c.Reading() {
		v.orders.read = append(v.orders.read, o)
	}
	return o
}

// orderParts visits the optional parts of an order that the flags announce.
func (v *visit) orderParts(o *resting, flags uint64) {
	c, l := v.Coder, &o.Value
	if flags&savedCash != 0 {
		pack.Int(c, &l.cash)
	}
	if flags&savedQuote != 0 {
		pack.Int(c, &l.filledQuote)
	}
	if c.Reading() {
		l.updated = l.created
	}
	if flags&savedUpdated != 0 {
		pack.Delta(c, &l.updated, l.created)
	}
	if flags&savedDue != 0 {
		if c.Reading() {
			l.due = &dueEntry{Slot: schedule.Slot{Kind: dueExpiry}, order: o}
			v.due.expiries.Append(l.due)
		}
		pack.Delta(c, &l.due.Time, l.created)
		pack.Int(c, &l.due.arrival)
	}
	l.instruction.code(c, flags)
	if flags&savedRemembered != 0 {
		ref := l.remembered()
		if c.Reading() {
			ref = &reference{name: l.reference, order: o.Code}
			l.position.account.references.hold(ref)
		}
		v.reference(ref)
	}
	if c.Reading() {
		v.check(l.kind.Conditional() == (flags&savedStop != 0))
	}
	if flags&savedStop != 0 && c.Err() == nil {
		v.stop(o)
	}
}

// remembered returns the remembered reference of a live order's name, or nil.
func (l *live) remembered() *reference {
	if l.reference == "" {
		return nil
	}
	if r := l.position.account.references.names[l.reference]; r != nil && !r.final {
		return r
	}
	return nil
}

// stop visits the stop of an order, fired or not.
func (v *visit) stop(o *resting) {
	c, now := v.Coder, stop{}
	var prices [len(legs)]int64
	if s := o.Value.stop; s != nil {
		now.fired, now.held, now.arrival, prices = s.fired, s.held, s.arrival, s.prices()
	}
	pack.Int(c, &now.fired)
	pack.Word(c, &now.held)
	pack.Int(c, &now.arrival)
	for n := range prices {
		pack.Int(c, &prices[n])
	}
	if !c.Reading() {
		return
	}
	s := newStop(o, prices)
	s.fired, s.held, s.arrival = now.fired, now.held, now.arrival
	if o.Value.stop = s; s.untold() {
		v.Fail(errContradiction)
	} else if s.fired.IsZero() && s.held == "" {
		v.stops = append(v.stops, s)
	}
}

// untold reports whether the stop has a combination of values that cannot exist.
func (s *stop) untold() bool {
	for n, of := range legs {
		if of.Of(s.order.Value.kind) != (s.legs[n].Price > 0) || s.legs[n].Price < 0 {
			return true
		}
	}
	return s.arrival < 1 || s.held != "" && (!s.fired.IsZero() || !s.held.Of(s.order.Value.kind))
}

// number visits the number of an order, as the difference from last. It returns the order, or nil if reading fails.
func (v *visit) number(o *resting, last *int64) *resting {
	n := *last
	if !v.Reading() {
		n = int64(v.orders.written[o.Number()])
	}
	pack.Delta(v.Coder, &n, *last)
	*last = n
	if !v.Reading() {
		return o
	}
	if n < 1 || n >= int64(len(v.orders.read)) {
		v.Fail(errContradiction)
		return nil
	}
	return v.orders.read[n]
}

// numbers visits a list of orders by their numbers. Reading passes them to add, which returns false for an order that
// cannot be in the list.
func (v *visit) numbers(written []*resting, add func(*resting) bool) {
	last := int64(0)
	for n := range v.Len(len(written)) {
		if !v.Reading() {
			v.number(written[n], &last)
		} else if o := v.number(nil, &last); o == nil || !add(o) {
			v.Fail(errContradiction)
			return
		}
	}
}

// lists visits the stops of each instrument that were returned to the due list, each account's orders in order of
// arrival, and each position's reduce-only orders.
func (v *visit) lists() {
	for _, i := range v.listing {
		v.returned(i)
	}
	listed := 0
	for _, a := range v.holders() {
		named := v.arrivals(a)
		listed += a.liveOrders
		for _, h := range a.positions {
			v.numbers(h.reduceOnly, func(o *resting) bool {
				h.reduceOnly = append(h.reduceOnly, o)
				return o.Value.position == h
			})
		}
		v.otherNames(a, named)
	}
	v.check(listed == v.State.orders.Len())
}

// arrivals visits an account's orders in order of arrival. While writing, it returns how many of them have a remembered
// name.
func (v *visit) arrivals(a *account) (named int) {
	last := int64(0)
	n := v.Len(a.liveOrders)
	if !v.Reading() {
		for o := range a.orders(nil) {
			if v.number(o, &last); o.Value.remembered() != nil {
				named++
			}
		}
		return named
	}
	for range n {
		o := v.number(nil, &last)
		if o == nil || o.Value.position.account != a || o.Value.inPosition.before != nil || o == o.Value.position.orders.first {
			v.Fail(errContradiction)
			return 0
		}
		o.Value.position.enlist(o)
	}
	return 0
}

// returned visits the stops of an instrument that were returned to the due list and have not fired.
func (v *visit) returned(i *instrument) {
	var written []*resting
	for _, s := range i.putBack {
		written = append(written, s.order)
	}
	v.numbers(written, func(o *resting) bool {
		s := o.Value.stop
		i.putBack = append(i.putBack, s)
		return o.Value.position.instrument == i && s != nil && s.held != ""
	})
	if v.Reading() && v.Err() == nil && i.isDue() {
		v.noteFiring(i)
	}
}

// otherNames visits the names that belong neither to a final order nor to any of the named live orders. There should be
// none.
func (v *visit) otherNames(a *account, named int) {
	var names []*reference
	if !v.Reading() && a.references.finals.length+named != len(a.references.names) {
		names = a.otherNames()
	}
	pack.List(v.Coder, &names, func(r *reference) {
		pack.String(v.Coder, &r.name)
		v.reference(r)
		if v.Reading() {
			a.references.hold(r)
		}
	})
}

func (a *account) otherNames() (other []*reference) {
	known := make(map[string]bool)
	for o := range a.orders(nil) {
		known[o.Value.reference] = true
	}
	for name, r := range a.references.names {
		if !r.final && !known[name] {
			other = append(other, r)
		}
	}
	slices.SortFunc(other, func(a, b *reference) int { return strings.Compare(a.name, b.name) })
	return other
}
