package trading

// The live orders of an account hang in a list for each instrument, in order of arrival, so that what is asked of one
// instrument's orders takes no longer for those on others.

// enlist puts a live order behind those that came before it.
func (h *position) enlist(o *resting) {
	v := &o.Value
	v.prev = h.last
	if h.last == nil {
		h.first = o
	} else {
		h.last.Value.next = o
	}
	h.last = o
	h.liveOrders++
	h.account.liveOrders++
}

// delist takes an order out that became final.
func (h *position) delist(o *resting) {
	v := &o.Value
	if v.prev == nil {
		h.first = v.next
	} else {
		v.prev.Value.next = v.next
	}
	if v.next == nil {
		h.last = v.prev
	} else {
		v.next.Value.prev = v.prev
	}
	h.liveOrders--
	h.account.liveOrders--
}

// orders yields the live orders of an instrument, or of all for nil, in order of arrival; those that arrived at one time,
// on different instruments, in the order of listing.
func (a *account) orders(on *instrument) func(yield func(*resting) bool) {
	return func(yield func(*resting) bool) {
		var room [8]*resting
		heads := room[:0] // of the lists that have not ended
		for _, h := range a.positions {
			if h.first != nil && (on == nil || h.instrument == on) {
				heads = append(heads, h.first)
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
			if next := o.Value.next; next != nil {
				heads[earliest] = next
			} else {
				heads = append(heads[:earliest], heads[earliest+1:]...)
			}
		}
	}
}
