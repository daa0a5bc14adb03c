// Package wire holds the JSON types that several interfaces share. REST and the WebSocket channels share orders,
// trades, transactions and instruments; users and operators share API keys, questionnaires, entitlements and
// triggers. A channel message has a "channel" member, then "type":"update", then the members of the REST form. The
// object's type moves to another member, such as order_type. Messages about public trades have no "type":"update";
// their type member is that of the trade.
//
// The types are plain structs for the generic encoder. Trades, which are much of the traffic, also have a handwritten
// encoder (AppendJSON), which writes the same bytes faster. Package order writes orders. Property tests compare both with
// the generic encoder.
//
// Prices and amounts have the instrument's precision. Money is in units of 10⁻⁸ of the currency. Times are UTC with
// microseconds.
package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// Update is the "type" of update messages on the channels.
const Update = "update"

// Price is a price or another decimal. Its zero value means "not set" and is null in JSON.
type Price fixed.Decimal

// MarshalJSONTo writes the decimal, or null if it is zero.
func (p Price) MarshalJSONTo(e *jsontext.Encoder) error {
	if fixed.Decimal(p).IsZero() {
		return e.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(e, fixed.Decimal(p))
}

// Nullable is a value that is null in JSON if it is zero.
type Nullable[T comparable] struct{ Value T }

// NullIfZero wraps v in a Nullable.
func NullIfZero[T comparable](v T) Nullable[T] { return Nullable[T]{v} }

// MarshalJSONTo writes the value, or null if it is zero.
func (n Nullable[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	var zero T
	if n.Value == zero {
		return e.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(e, n.Value)
}

// Percent returns a percentage with exactly 2 decimals, rounded up.
func Percent(d fixed.Decimal) fixed.Decimal {
	d = d.Trim().AtLeast(2)
	if d.Scale == 2 {
		return d
	}
	divisor := fixed.Pow10(int(d.Scale) - 2)
	whole := d.Coef / divisor
	if d.Coef > 0 && d.Coef%divisor != 0 {
		whole++
	}
	return fixed.Decimal{Coef: whole, Scale: 2}
}
