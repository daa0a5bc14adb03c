package trading

import "github.com/perpetua-exchange/perpetua/domain/decide"

// recentOrders is how many final orders the state knows by their codes.
const recentOrders = 100_000

// recent remembers the venue's latest final orders, so that a command for one can be told from a command for an order
// that never was. About older ones the read models know.
type recent struct {
	owners map[decide.ID]*account
	ring   []decide.ID
	next   int
}

// has reports whether the order became final lately and was the account's.
func (r *recent) has(code decide.ID, a *account) bool { return r.owners[code] == a }

// add remembers a final order in place of the oldest.
func (r *recent) add(code decide.ID, a *account) {
	if r.owners == nil {
		r.owners = make(map[decide.ID]*account)
	}
	if len(r.ring) < recentOrders {
		r.ring = append(r.ring, code)
	} else {
		delete(r.owners, r.ring[r.next])
		r.ring[r.next] = code
		r.next = (r.next + 1) % recentOrders
	}
	r.owners[code] = a
}
