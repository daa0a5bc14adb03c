// Package wire holds the JSON shapes that several interfaces share: orders, trades, transactions and instruments, for REST
// and the WebSocket channels, and API keys, questionnaires, entitlements and triggers, for users and operators. A channel's
// message begins with the name of the channel and the type "update". The shape follows, with its own type under another
// name.
//
// The shapes are plain structs for the generic encoder. Orders and trades, which are most of the traffic, also have an
// encoder written by hand (AppendJSON), which writes the same bytes faster. A property test compares the two.
//
// Prices and amounts have the instrument's precision; money is in units of 10⁻⁸ of the currency; times are UTC with
// microseconds.
package wire

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// Update is the type of every message that is one.
const Update = "update"

// Price is a price, or another decimal of which zero stands for nothing and is null.
type Price fixed.Decimal

// MarshalJSONTo writes the decimal or null.
func (p Price) MarshalJSONTo(e *jsontext.Encoder) error {
	if fixed.Decimal(p).IsZero() {
		return e.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(e, fixed.Decimal(p))
}

// Nullable is a value of which the zero stands for nothing and is null.
type Nullable[T comparable] struct{ Value T }

// NullIfZero returns a value that is null in JSON where it is zero.
func NullIfZero[T comparable](v T) Nullable[T] { return Nullable[T]{v} }

// MarshalJSONTo writes the value or null.
func (n Nullable[T]) MarshalJSONTo(e *jsontext.Encoder) error {
	var zero T
	if n.Value == zero {
		return e.WriteToken(jsontext.Null)
	}
	return json.MarshalEncode(e, n.Value)
}

// Percent prints a percentage with exactly 2 decimals, rounded up.
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
