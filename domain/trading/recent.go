package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// recentOrders is the number of final orders that the state remembers by code.
const recentOrders = 100_000

// recent remembers the venue's latest final orders. With it, a command for a final order can be distinguished from one
// for an order that never existed. The read models have older orders.
type recent struct {
	ring  []finalOrder
	next  int
	codes book.Codes // finds indexes in the ring, plus 1
}

type finalOrder struct {
	code  scalar.ID
	owner *account
}

// has reports whether the account's order became final recently.
func (r *recent) has(code scalar.ID, a *account) bool {
	slot := r.codes.Find(code, func(slot uint32) bool { return r.code(slot) == code })
	return slot != 0 && r.ring[slot-1].owner == a
}

// add remembers a final order instead of the oldest one.
func (r *recent) add(code scalar.ID, a *account) {
	if len(r.ring) < recentOrders {
		r.ring = append(r.ring, finalOrder{code, a})
		r.codes.Put(code, uint32(len(r.ring)), r.code)
		return
	}
	oldest, slot := &r.ring[r.next], uint32(r.next+1)
	r.next = (r.next + 1) % recentOrders
	r.codes.Remove(oldest.code, slot)
	*oldest = finalOrder{code, a}
	r.codes.Put(code, slot, r.code)
}

// code returns the code at a slot, which is an index in the ring plus 1.
func (r *recent) code(slot uint32) scalar.ID { return r.ring[slot-1].code }
