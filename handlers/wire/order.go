package wire

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// Order is the REST form of an order. Package order has the members, and says which are omitted where they do not apply.
type Order struct {
	order    order.Order
	sequence int64 // of the record that last changed the order
}

// NewOrder returns the REST form of an order. The sequence is that of the record that last changed it.
func NewOrder(o *order.Order, sequence int64) Order { return Order{*o, sequence} }

// OrderSize is the buffer capacity for one order; nearly every order fits.
const OrderSize = 768

// AppendJSON appends the order.
func (o *Order) AppendJSON(b []byte) ([]byte, error) {
	b, err := o.order.AppendREST(append(b, '{'), o.sequence)
	return append(b, '}'), err
}

// Columns returns the names of the order's members, in order. It implements rows.Columned.
func (Order) Columns() []string { return orderColumns() }

// orderColumns reads the names from an order that omits no member.
var orderColumns = sync.OnceValue(func() (names []string) {
	full := NewOrder(order.Full(), 0)
	b, err := full.AppendJSON(nil)
	for d := jsontext.NewDecoder(bytes.NewReader(b)); err == nil && d.InputOffset() < int64(len(b)); {
		var t jsontext.Token
		if t, err = d.ReadToken(); err == nil && t.Kind() == '"' {
			names = append(names, t.String())
			err = d.SkipValue()
		}
	}
	if err != nil {
		panic(err) // a constant order has a JSON form
	}
	return names
})

// MarshalJSONTo writes the order as AppendJSON does.
func (o Order) MarshalJSONTo(e *jsontext.Encoder) error {
	b, err := o.AppendJSON(make([]byte, 0, OrderSize))
	if err != nil {
		return err
	}
	return e.WriteValue(b)
}

// OrderMessage is an order on the orders channel.
type OrderMessage struct {
	channel string
	shown   Order
}

// NewOrderMessage returns an order as a channel message. The sequence is that of the record that last changed it.
func NewOrderMessage(channel string, o *order.Order, sequence int64) *OrderMessage {
	return &OrderMessage{channel, NewOrder(o, sequence)}
}

// AppendJSON appends the message.
func (m *OrderMessage) AppendJSON(b []byte) ([]byte, error) {
	w := fastjson.Writer{Bytes: b}
	envelope(&w, m.channel, Update)
	if w.Err != nil {
		return w.Bytes, w.Err
	}
	b, err := m.shown.order.AppendChannel(w.Bytes, m.shown.sequence)
	return append(b, '}'), err
}

// MarshalJSONTo writes the message as AppendJSON does.
func (m *OrderMessage) MarshalJSONTo(e *jsontext.Encoder) error {
	b, err := m.AppendJSON(make([]byte, 0, OrderSize))
	if err != nil {
		return err
	}
	return e.WriteValue(b)
}

// Orders is a list of orders in REST form.
type Orders []Order

// AppendJSON appends the list.
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

func writeSequence(w *fastjson.Writer, sequence int64) {
	w.Raw(`,"sequence":`)
	w.Bytes = strconv.AppendInt(w.Bytes, sequence, 10)
}
