package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// OrderEvent is implemented by the events of orders. A record holds at most one for each order; its data is the order
// in full after the record, and its type says what happened to the order last.
type OrderEvent interface {
	decide.Event
	// After returns the order after the record. It is not to be changed.
	After() *order.Order
}

// The events of orders.
type (
	// OrderOpened says that a new order rests in full.
	OrderOpened struct{ order.Order }
	// OrderPartiallyFilled says that an order traded and what remains rests, or goes on trading in the next step.
	OrderPartiallyFilled struct{ order.Order }
	// OrderFilled says that an order is done.
	OrderFilled struct{ order.Order }
	// OrderCanceled says that what remained of an order was canceled.
	OrderCanceled struct{ order.Order }
	// OrderExpired says that an order's time ran out.
	OrderExpired struct{ order.Order }
	// OrderRejected says that an order was refused by a rule of business.
	OrderRejected struct{ order.Order }
	// OrderAmended says that a live order's terms changed, by request or because a reduce-only order was cut.
	OrderAmended struct{ order.Order }
)

// EventType returns "order.opened".
func (*OrderOpened) EventType() string { return "order.opened" }

// EventVersion returns 1.
func (*OrderOpened) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderOpened) After() *order.Order { return &e.Order }

// EventType returns "order.partially_filled".
func (*OrderPartiallyFilled) EventType() string { return "order.partially_filled" }

// EventVersion returns 1.
func (*OrderPartiallyFilled) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderPartiallyFilled) After() *order.Order { return &e.Order }

// EventType returns "order.filled".
func (*OrderFilled) EventType() string { return "order.filled" }

// EventVersion returns 1.
func (*OrderFilled) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderFilled) After() *order.Order { return &e.Order }

// EventType returns "order.canceled".
func (*OrderCanceled) EventType() string { return "order.canceled" }

// EventVersion returns 1.
func (*OrderCanceled) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderCanceled) After() *order.Order { return &e.Order }

// EventType returns "order.expired".
func (*OrderExpired) EventType() string { return "order.expired" }

// EventVersion returns 1.
func (*OrderExpired) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderExpired) After() *order.Order { return &e.Order }

// EventType returns "order.rejected".
func (*OrderRejected) EventType() string { return "order.rejected" }

// EventVersion returns 1.
func (*OrderRejected) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderRejected) After() *order.Order { return &e.Order }

// EventType returns "order.amended".
func (*OrderAmended) EventType() string { return "order.amended" }

// EventVersion returns 1.
func (*OrderAmended) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderAmended) After() *order.Order { return &e.Order }
