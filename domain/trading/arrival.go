package trading

// A position has its live orders in a linked list, in order of arrival. A query about one instrument's orders therefore
// takes no longer if the account has many on others.

type orderLinks struct{}

func (orderLinks) links(o *resting) *links[resting] { return &o.Value.inPosition }

// enlist appends a live order to the position's list.
func (h *position) enlist(o *resting) {
	h.orders.push(o)
	h.account.liveOrders++
}

// delist removes an order that became final from the position's list.
func (h *position) delist(o *resting) {
	h.orders.remove(o)
	h.account.liveOrders--
}

// orders yields the live orders of an instrument, or of all for nil, in order of arrival. Orders on different
// instruments that arrived at the same time are in the order of listing.
func (a *account) orders(on *instrument) func(yield func(*resting) bool) {
	return func(yield func(*resting) bool) {
		var room [8]*resting
		heads := room[:0] // first orders of the lists that have not ended
		for _, h := range a.positions {
			if h.orders.first != nil && (on == nil || h.instrument == on) {
				heads = append(heads, h.orders.first)
			}
		}
		for len(heads) > 0 {
			earliest := 0
			for i, o := range heads {
				if o.Value.created < heads[earliest].Value.created {
					earliest = i
				}
			}
			o := heads[earliest]
			if !yield(o) {
				return
			}
			if next := o.Value.inPosition.after; next != nil {
				heads[earliest] = next
			} else {
				heads = append(heads[:earliest], heads[earliest+1:]...)
			}
		}
	}
}
