package trading

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/schedule"
)

// order sets an order to its state after the record.
func (f *fold) order(after *order.Order) {
	o := f.orders.Get(after.Code)
	h := f.position(after.CustomerCode, after.Symbol)
	if after.Status == order.Canceled {
		f.canceled++
	}
	switch {
	case h.account.isFund():
		f.moved = append(f.moved, h.instrument)
	case h.account.failing != nil: // whether a step can do anything for it also depends on its orders
		f.affect(h.account)
	}
	named := after.Named()
	if named {
		h.account.references.note(f.at.Sequence, f.core.Counted(f.at.Time), after.Code, after.ReferenceID, f.command.Metadata.Fingerprint, !after.Status.Live())
	}
	if o != nil {
		if o.Value.position != h || o.Side != sideOf(after.Action) {
			panic("trading: an event makes another order of " + after.Code.String())
		}
		f.release(o) // uses the present figures, which change below
	}
	if !after.Status.Live() {
		f.recent.add(after.Code, h.account)
		if o != nil {
			f.drop(o)
		}
		return
	}
	c := h.instrument.contract
	amount, _ := c.Steps(after.Amount)
	done, _ := c.Steps(after.FilledAmount)
	if after.CashAmount != 0 {
		amount = c.MaxSteps
	}
	price := int64(0)
	if after.Type.Limited() {
		price, _ = c.Ticks(after.LimitPrice)
	}
	if o == nil {
		o = f.enter(h, after)
		f.placedOver(f.sessions[f.command.Metadata.Session], o)
		if named {
			o.Value.reference = after.ReferenceID
		}
	}
	remaining := amount - done
	v := &o.Value
	// An order keeps its place in the queue after a fill or a reduction. A new price or a larger amount loses it.
	moves := !o.Resting() || price != o.Price || remaining > o.Remaining && amount > v.amount
	v.amount, v.filledQuote, v.updated, v.sequence = amount, after.FilledQuote, after.Updated, f.at.Sequence
	f.expire(o, after.ExpireTime)
	if v.untriggered() {
		f.waitFor(o, after, price, remaining)
		return
	}
	f.touch(h.instrument, o.Side, price)
	if after.Code == f.active {
		f.unrest(o)
		h.unlimit(o) // the sweep itself reduces it to the position that its fills leave
		o.Price, o.Remaining = price, remaining
		return
	}
	if moves {
		f.unrest(o)
		o.Price, o.Remaining = price, remaining
		h.instrument.book.Add(o)
		h.limitTo(o)
	} else {
		h.instrument.book.Resize(o, remaining)
	}
	f.reserve(o)
}

// enter adds a new live order.
func (f *fold) enter(h *position, after *order.Order) *resting {
	o := f.orders.New(after.Code)
	o.Side = sideOf(after.Action)
	o.Value = live{instruction: instructionOf(after), position: h, created: after.Created}
	o.Value.stop = newStop(o, [len(legs)]int64{}) // gets its prices when it starts to wait
	h.enlist(o)
	return o
}

// drop removes a live order that became final.
func (f *fold) drop(o *resting) {
	f.unrest(o)
	v := &o.Value
	if v.stop != nil {
		f.discharge(v.stop)
	}
	if v.session != nil {
		v.session.live--
	}
	v.position.delist(o)
	f.cancelEntry(v.due)
	v.position.unlimit(o)
	f.orders.Delete(o)
}

// unrest removes an order from the book if it rests there.
func (f *fold) unrest(o *resting) {
	if o.Resting() {
		i := o.Value.position.instrument
		f.touch(i, o.Side, o.Price)
		i.book.Remove(o)
	}
}

// release removes the order's reserve from the position.
func (f *fold) release(o *resting) {
	bids, asks := reserve(o)
	h := o.Value.position
	h.bids, h.asks = h.bids.Sub(bids), h.asks.Sub(asks)
}

// reserve adds the order's reserve to the position.
func (f *fold) reserve(o *resting) {
	bids, asks := reserve(o)
	h := o.Value.position
	h.bids, h.asks = h.bids.Add(bids), h.asks.Add(asks)
}

// expire sets or changes the order's expiry time on the due list.
func (f *fold) expire(o *resting, at scalar.Time) {
	v := &o.Value
	if v.due != nil && v.due.Time == at || v.due == nil && at == 0 {
		return
	}
	f.cancelEntry(v.due)
	v.due = nil
	if at != 0 {
		v.due = &dueEntry{Slot: schedule.At(at, dueExpiry), order: o}
		f.due.push(v.due)
	}
}

// limitTo adds a reduce-only order to those that are cut when the position shrinks.
func (h *position) limitTo(o *resting) {
	if o.Value.reduceOnly && !h.has(o) {
		h.reduceOnly = append(h.reduceOnly, o)
	}
}

// unlimit removes the order from those that are cut.
func (h *position) unlimit(o *resting) {
	if n := slices.Index(h.reduceOnly, o); n >= 0 {
		h.reduceOnly = slices.Delete(h.reduceOnly, n, n+1)
	}
}

func (h *position) has(o *resting) bool { return slices.Contains(h.reduceOnly, o) }

// intern returns the constant that equals a decoded word, so that orders do not keep their records' memory alive.
func intern[T order.Type | order.TimeInForce](word T) T {
	for _, known := range [...]string{"limit", "GTC", "market", "IOC", "GTD", "FOK", "stop_loss", "stop_loss_limit", "take_profit",
		"take_profit_limit", "take_profit_stop_loss"} {
		if string(word) == known {
			return T(known)
		}
	}
	return word
}
