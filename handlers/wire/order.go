package wire

import (
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Order is the REST form of an order. Nullable members are always present; cash_amount and trigger_price_type are
// omitted where they do not apply.
type Order struct {
	OrderHead
	Type order.Type `json:"type"`
	OrderRest
	Updated  scalar.Time `json:"updated"`
	Sequence int64       `json:"sequence"` // of the record that last changed the order
}

// OrderMessage is an order on the orders channel.
type OrderMessage struct {
	Channel string `json:"channel"`
	Kind    string `json:"type"` // the message type, always "update"
	OrderHead
	Type order.Type `json:"order_type"` // how the order executes, which may differ from the submitted type
	OrderRest
	Timestamp scalar.Time `json:"timestamp"`
	Sequence  int64       `json:"sequence"`
}

// OrderHead holds the leading members, which both forms of an order share.
type OrderHead struct {
	Code         scalar.ID    `json:"code"`
	CustomerCode string       `json:"customer_code"`
	Symbol       string       `json:"symbol"`
	Action       order.Action `json:"action"`
}

// OrderRest holds the members after the type, which both forms of an order share.
type OrderRest struct {
	Status           order.Status           `json:"status"`
	Amount           fixed.Decimal          `json:"amount"`
	FilledAmount     fixed.Decimal          `json:"filled_amount"`
	CashAmount       fixed.Money            `json:"cash_amount,omitzero"`
	FilledQuote      fixed.Money            `json:"filled_quote"`
	LimitPrice       Price                  `json:"limit_price"`
	TriggerPrice     Price                  `json:"trigger_price"`
	StopLossPrice    Price                  `json:"stop_loss_price"`
	TakeProfitPrice  Price                  `json:"take_profit_price"`
	TriggerPriceType order.TriggerPriceType `json:"trigger_price_type,omitzero"`
	Triggered        Nullable[scalar.Time]  `json:"triggered"` // when a stop was triggered
	AverageFillPrice Price                  `json:"average_fill_price"`
	TimeInForce      order.TimeInForce      `json:"time_in_force"`
	ExpireTime       Nullable[scalar.Time]  `json:"expire_time"`
	PostOnly         bool                   `json:"post_only"`
	ReduceOnly       bool                   `json:"reduce_only"`
	ReferenceID      string                 `json:"reference_id"`
	Reason           Nullable[order.Reason] `json:"reason"`
	Created          scalar.Time            `json:"created"`
}

// NewOrder converts an order to its REST form. The sequence is that of the record that last changed it.
func NewOrder(o *order.Order, sequence int64) Order {
	return Order{headOf(o), o.Type, restOf(o), o.Updated, sequence}
}

// NewOrderMessage converts an order to a channel message. The sequence is that of the record that last changed it.
func NewOrderMessage(channel string, o *order.Order, sequence int64) *OrderMessage {
	return &OrderMessage{channel, Update, headOf(o), o.Type.Mechanical(), restOf(o), o.Updated, sequence}
}

func headOf(o *order.Order) OrderHead { return OrderHead{o.Code, o.CustomerCode, o.Symbol, o.Action} }

func restOf(o *order.Order) OrderRest {
	return OrderRest{
		Status: o.Status, Amount: o.Amount, FilledAmount: o.FilledAmount, CashAmount: o.CashAmount, FilledQuote: o.FilledQuote,
		LimitPrice: Price(o.LimitPrice), TriggerPrice: Price(o.TriggerPrice), StopLossPrice: Price(o.StopLossPrice),
		TakeProfitPrice: Price(o.TakeProfitPrice), TriggerPriceType: o.TriggerPriceType, Triggered: NullIfZero(o.Triggered),
		AverageFillPrice: Price(o.AverageFillPrice), TimeInForce: o.TimeInForce, ExpireTime: NullIfZero(o.ExpireTime),
		PostOnly: o.PostOnly, ReduceOnly: o.ReduceOnly, ReferenceID: o.ReferenceID, Reason: NullIfZero(o.Reason),
		Created: o.Created,
	}
}

// OrderSize is the buffer capacity for one order; nearly every order fits.
const OrderSize = 768

// AppendJSON appends the order exactly as the generic encoder writes it.
func (o *Order) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	w.Raw(`{`)
	o.OrderHead.write(&w)
	w.Raw(`,"type":`)
	w.String(string(o.Type))
	o.OrderRest.write(&w)
	w.Raw(`,"updated":`)
	fastjson.Text(&w, o.Updated)
	writeSequence(&w, o.Sequence)
	w.Raw(`}`)
	return w.Bytes, w.Err
}

// AppendJSON appends the message exactly as the generic encoder writes it.
func (m *OrderMessage) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	envelope(&w, m.Channel, m.Kind)
	m.OrderHead.write(&w)
	w.Raw(`,"order_type":`)
	w.String(string(m.Type))
	m.OrderRest.write(&w)
	w.Raw(`,"timestamp":`)
	fastjson.Text(&w, m.Timestamp)
	writeSequence(&w, m.Sequence)
	w.Raw(`}`)
	return w.Bytes, w.Err
}

// Orders is a list of orders in REST form.
type Orders []Order

// AppendJSON appends the list exactly as the generic encoder writes it.
func (list Orders) AppendJSON(b []byte) (_ []byte, err error) {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = list[i].AppendJSON(b); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

func envelope(w *fastjson.Writer, channel, kind string) {
	w.Raw(`{"channel":`)
	w.String(channel)
	w.Raw(`,"type":`)
	w.String(kind)
	w.Raw(`,`)
}

func (h *OrderHead) write(w *fastjson.Writer) {
	w.Raw(`"code":`)
	fastjson.Text(w, h.Code)
	w.Raw(`,"customer_code":`)
	w.String(h.CustomerCode)
	w.Raw(`,"symbol":`)
	w.String(h.Symbol)
	w.Raw(`,"action":`)
	w.String(string(h.Action))
}

func (r *OrderRest) write(w *fastjson.Writer) {
	w.Raw(`,"status":`)
	w.String(string(r.Status))
	w.Raw(`,"amount":`)
	fastjson.Text(w, r.Amount)
	w.Raw(`,"filled_amount":`)
	fastjson.Text(w, r.FilledAmount)
	if r.CashAmount != 0 {
		w.Raw(`,"cash_amount":`)
		fastjson.Text(w, r.CashAmount)
	}
	w.Raw(`,"filled_quote":`)
	fastjson.Text(w, r.FilledQuote)
	r.LimitPrice.write(w, `,"limit_price":`)
	r.TriggerPrice.write(w, `,"trigger_price":`)
	r.StopLossPrice.write(w, `,"stop_loss_price":`)
	r.TakeProfitPrice.write(w, `,"take_profit_price":`)
	if r.TriggerPriceType != "" {
		w.Raw(`,"trigger_price_type":`)
		w.String(string(r.TriggerPriceType))
	}
	writeTime(w, `,"triggered":`, r.Triggered)
	r.AverageFillPrice.write(w, `,"average_fill_price":`)
	w.Raw(`,"time_in_force":`)
	w.String(string(r.TimeInForce))
	writeTime(w, `,"expire_time":`, r.ExpireTime)
	w.Raw(`,"post_only":`)
	w.Bool(r.PostOnly)
	w.Raw(`,"reduce_only":`)
	w.Bool(r.ReduceOnly)
	w.Raw(`,"reference_id":`)
	w.String(r.ReferenceID)
	w.Raw(`,"reason":`)
	if r.Reason.Value == "" {
		w.Raw("null")
	} else {
		w.String(string(r.Reason.Value))
	}
	w.Raw(`,"created":`)
	fastjson.Text(w, r.Created)
}

func (p Price) write(w *fastjson.Writer, name string) {
	w.Raw(name)
	if d := fixed.Decimal(p); d.IsZero() {
		w.Raw("null")
	} else {
		fastjson.Text(w, d)
	}
}

func writeTime(w *fastjson.Writer, name string, t Nullable[scalar.Time]) {
	w.Raw(name)
	if t.Value == 0 {
		w.Raw("null")
	} else {
		fastjson.Text(w, t.Value)
	}
}

func writeSequence(w *fastjson.Writer, sequence int64) {
	w.Raw(`,"sequence":`)
	w.Bytes = strconv.AppendInt(w.Bytes, sequence, 10)
}
