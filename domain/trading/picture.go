package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// terms are the figures of an order that a record may change.
type terms struct {
	amount    int64 // steps
	remaining int64
	quote     fixed.Money
	status    order.Status
	reason    order.Reason
	expires   decide.Time
	updated   decide.Time
}

// picture returns a live order as its last record left it.
func picture(o *resting) order.Order {
	t := termsOf(o)
	t.updated = o.Value.updated
	return paint(o, o.Price, t)
}

// termsOf returns the figures of a live order.
func termsOf(o *resting) terms {
	t := terms{amount: o.Value.amount, remaining: o.Remaining, quote: o.Value.filledQuote, status: order.Open}
	if filled(o) > 0 {
		t.status = order.PartiallyFilled
	}
	if o.Value.due != nil {
		t.expires = o.Value.due.time
	}
	return t
}

// paint returns an order at a limit price with the given figures.
func paint(o *resting, price int64, t terms) order.Order {
	v, h := &o.Value, o.Value.holding
	c := h.instrument.contract
	done := t.amount - t.remaining
	out := order.Order{
		Code: v.code, CustomerCode: h.account.code, Broker: h.account.broker, Symbol: c.Symbol,
		Action: action(o.Side), Type: v.kind, Status: t.status,
		Amount: c.Amount(t.amount), FilledAmount: c.Amount(done), CashAmount: v.cash, FilledQuote: t.quote,
		AverageFillPrice: c.AveragePrice(t.quote, done), TimeInForce: v.tif,
		PostOnly: v.postOnly, ReduceOnly: v.reduceOnly, ReferenceID: v.referenceID(), Reason: t.reason,
		ExpireTime: t.expires, Created: v.created, Updated: t.updated,
	}
	if v.cash != 0 {
		out.Amount = out.FilledAmount
	}
	if v.kind.Limited() {
		out.LimitPrice = c.Price(price)
	}
	return out
}

// referenceID is the client's name for the order, or its code.
func (v *live) referenceID() string {
	if v.reference == "" {
		return v.code.String()
	}
	return v.reference
}

// orderEvent returns the event whose type says what happened to the order last.
func orderEvent(o order.Order, amended bool) decide.Event {
	switch o.Status {
	case order.Open:
		if amended {
			return &OrderAmended{o}
		}
		return &OrderOpened{o}
	case order.PartiallyFilled:
		if amended {
			return &OrderAmended{o}
		}
		return &OrderPartiallyFilled{o}
	case order.Filled:
		return &OrderFilled{o}
	case order.Canceled:
		return &OrderCanceled{o}
	case order.Expired:
		return &OrderExpired{o}
	case order.Rejected:
		return &OrderRejected{o}
	}
	panic("trading: an order has the unknown status " + string(o.Status))
}

// held returns a position as events show it.
func held(customer string, c *market.Contract, size int64, cost fixed.Money) PositionHeld {
	return PositionHeld{customer, c.Symbol, c.Amount(size), cost, c.AveragePrice(cost, size)}
}
