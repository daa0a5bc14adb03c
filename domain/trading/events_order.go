package trading

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// OrderEvent is implemented by the events of orders. A record holds at most one for each order. Its data is the full
// order after the record, and its type says what last happened to the order.
type OrderEvent interface {
	decide.Event
	// After returns the order after the record. The caller MUST NOT change it.
	After() *order.Order
}

// The events of orders.
type (
	// OrderOpened says that a new order rests in full or waits for its price, or that a fired stop rests in full.
	OrderOpened struct{ order.Order }
	// OrderPartiallyFilled says that an order traded and that the rest rests in the book, or continues to trade in the
	// next step.
	OrderPartiallyFilled struct{ order.Order }
	// OrderFilled says that an order is filled.
	OrderFilled struct{ order.Order }
	// OrderCanceled says that the rest of an order was canceled.
	OrderCanceled struct{ order.Order }
	// OrderExpired says that an order expired.
	OrderExpired struct{ order.Order }
	// OrderRejected says that a business rule rejected an order.
	OrderRejected struct {
		order.Order
		// Leverage is the leverage that came with the order, so that a reader can verify the rejection; 0 for none.
		Leverage int `json:"leverage,omitzero"`
	}
	// OrderAmended says that a live order's terms changed, by request or because a reduce-only order was cut.
	OrderAmended struct{ order.Order }
)

// EventType returns "order.opened".
func (*OrderOpened) EventType() string { return "order.opened" }

// After implements OrderEvent.
func (e *OrderOpened) After() *order.Order { return &e.Order }

// EventType returns "order.partially_filled".
func (*OrderPartiallyFilled) EventType() string { return "order.partially_filled" }

// After implements OrderEvent.
func (e *OrderPartiallyFilled) After() *order.Order { return &e.Order }

// EventType returns "order.filled".
func (*OrderFilled) EventType() string { return "order.filled" }

// After implements OrderEvent.
func (e *OrderFilled) After() *order.Order { return &e.Order }

// EventType returns "order.canceled".
func (*OrderCanceled) EventType() string { return "order.canceled" }

// After implements OrderEvent.
func (e *OrderCanceled) After() *order.Order { return &e.Order }

// EventType returns "order.expired".
func (*OrderExpired) EventType() string { return "order.expired" }

// After implements OrderEvent.
func (e *OrderExpired) After() *order.Order { return &e.Order }

// EventType returns "order.rejected".
func (*OrderRejected) EventType() string { return "order.rejected" }

var _ decide.Versioned = (*OrderRejected)(nil)

// EventVersion returns 2. Version 1 did not include the leverage.
func (*OrderRejected) EventVersion() int { return 2 }

// rejectedWithoutLeverage reads version 1, which had only the order as its data.
func rejectedWithoutLeverage(data jsontext.Value) (decide.Event, error) {
	e := &OrderRejected{}
	if e.Order.ParseJSON(data) {
		return e, nil
	}
	e = &OrderRejected{}
	return e, json.Unmarshal(data, &e.Order, json.RejectUnknownMembers(true))
}

// After implements OrderEvent.
func (e *OrderRejected) After() *order.Order { return &e.Order }

// EventType returns "order.amended".
func (*OrderAmended) EventType() string { return "order.amended" }

// After implements OrderEvent.
func (e *OrderAmended) After() *order.Order { return &e.Order }

// TriggerFired says that a price which an order waited for was reached. The order then trades like a new order with
// these terms; the order's own event, which follows in the record, has the result.
type TriggerFired struct {
	OrderCode    scalar.ID `json:"order_code"`
	CustomerCode string    `json:"customer_code"`
	Broker       string    `json:"broker"`
	Symbol       string    `json:"symbol"`
	// Leg is the leg with the price that was reached, and TriggerPrice is that price.
	Leg              order.Leg              `json:"leg"`
	TriggerPrice     fixed.Decimal          `json:"trigger_price"`
	TriggerPriceType order.TriggerPriceType `json:"trigger_price_type"`
}

// EventType returns "trigger.fired".
func (*TriggerFired) EventType() string { return "trigger.fired" }
