package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/book"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// recentOrders is how many final orders the state knows by their codes.
const recentOrders = 100_000

// recent remembers the venue's latest final orders, so that a command for one can be told from a command for an order
// that never was. About older ones the read models know.
type recent struct {
	ring  []finalOrder
	next  int
	codes book.Codes // places in the ring, from 1
}

type finalOrder struct {
	code  scalar.ID
	owner *account
}

// has reports whether the order became final lately and was the account's.
func (r *recent) has(code scalar.ID, a *account) bool {
	place := r.codes.Find(code, func(place uint32) bool { return r.code(place) == code })
	return place != 0 && r.ring[place-1].owner == a
}

// add remembers a final order in place of the oldest.
func (r *recent) add(code scalar.ID, a *account) {
	if len(r.ring) < recentOrders {
		r.ring = append(r.ring, finalOrder{code, a})
		r.codes.Put(code, uint32(len(r.ring)), r.code)
		return
	}
	oldest, place := &r.ring[r.next], uint32(r.next+1)
	r.next = (r.next + 1) % recentOrders
	r.codes.Remove(oldest.code, place)
	*oldest = finalOrder{code, a}
	r.codes.Put(code, place, r.code)
}

// code returns the code at a place.
func (r *recent) code(place uint32) scalar.ID { return r.ring[place-1].code }
