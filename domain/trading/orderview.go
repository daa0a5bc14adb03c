package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// terms are the values of an order that a record may change.
type terms struct {
	amount    int64 // steps
	remaining int64
	quote     fixed.Money
	status    order.Status
	reason    order.Reason
	expires   scalar.Time
	triggered scalar.Time // zero for an order that is not a stop or still waits
	updated   scalar.Time
}

// orderView returns a live order after its last record.
func orderView(o *resting) (out order.Order) {
	t := termsOf(o)
	t.updated = o.Value.updated
	show(&out, o, o.Price, t)
	return out
}

// termsOf returns the values of a live order.
func termsOf(o *resting) terms {
	t := terms{amount: o.Value.amount, remaining: o.Remaining, quote: o.Value.filledQuote, status: order.Open}
	if filled(o) > 0 {
		t.status = order.PartiallyFilled
	}
	if o.Value.due != nil {
		t.expires = o.Value.due.Time
	}
	if o.Value.stop != nil {
		t.triggered = o.Value.stop.fired
	}
	return t
}

// show fills an empty view of an order with a limit price and these values. It writes in place, since a view is large
// and every record has one.
func show(out *order.Order, o *resting, price int64, t terms) {
	v, h := &o.Value, o.Value.position
	c := h.instrument.contract
	done := t.amount - t.remaining
	out.Code = o.Code
	out.CustomerCode = h.account.code
	out.Broker = h.account.broker
	out.Symbol = c.Symbol
	out.Action = action(o.Side)
	v.instruction.show(out)
	out.Status = t.status
	out.FilledAmount = c.Amount(done)
	out.Amount = out.FilledAmount
	if v.cash == 0 {
		out.Amount = c.Amount(t.amount)
	}
	out.FilledQuote = t.quote
	if v.kind.Limited() {
		out.LimitPrice = c.Price(price)
	}
	if v.stop != nil {
		v.stop.show(out)
		out.Triggered = t.triggered
	}
	out.AverageFillPrice = c.AveragePrice(t.quote, done)
	out.ExpireTime = t.expires
	out.ReferenceID = referenceID(o)
	out.Reason = t.reason
	out.Created = v.created
	out.Updated = t.updated
}

// referenceID returns the client's name for the order, or its code.
func referenceID(o *resting) string {
	if o.Value.reference == "" {
		return o.Code.String()
	}
	return o.Value.reference
}

// orderEvent returns the order's event, with a view of the order. The status and amended decide the event type.
func orderEvent(o *resting, price int64, t terms, amended bool) decide.Event {
	e, out := blank(t.status, amended)
	show(out, o, price, t)
	return e
}

// blank returns the event for a status, and its view for the caller to fill.
func blank(status order.Status, amended bool) (decide.Event, *order.Order) {
	switch {
	case amended && status.Live():
		e := &OrderAmended{}
		return e, &e.Order
	case status == order.Open:
		e := &OrderOpened{}
		return e, &e.Order
	case status == order.PartiallyFilled:
		e := &OrderPartiallyFilled{}
		return e, &e.Order
	case status == order.Filled:
		e := &OrderFilled{}
		return e, &e.Order
	case status == order.Canceled:
		e := &OrderCanceled{}
		return e, &e.Order
	case status == order.Expired:
		e := &OrderExpired{}
		return e, &e.Order
	case status == order.Rejected:
		e := &OrderRejected{}
		return e, &e.Order
	}
	panic("trading: an order has the unknown status " + string(status))
}

// held returns a position in the form that events have.
func held(customer string, c *market.Contract, size int64, cost fixed.Money) PositionHeld {
	return PositionHeld{customer, c.Symbol, c.Amount(size), cost, c.AveragePrice(cost, size)}
}
