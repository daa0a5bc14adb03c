// Package arithmetic writes calculations down so that a person can follow them and a program can repeat them: a formula, the
// number that each name in it stands for, and the result.
//
// The rules compute on integers and are not built from these formulas. A formula is in the package of the rule that it
// describes; the rule passes the numbers that it used and the result that it got. Evaluate computes a formula from its text, so
// that a test can compare the two.
//
// # Formulas
//
// A formula has numbers, names, + - * /, parentheses, and these functions:
//
//	min(a, b, …)  max(a, b, …)  abs(a)
//	floor(a, d)      rounded down to d decimals
//	ceil(a, d)       rounded up
//	truncate(a, d)   rounded toward zero
//	away(a, d)       rounded away from zero
//	half_even(a, d)  rounded to the nearest, a tie to the even neighbor
//
// A condition compares with <, <=, >, >= or =, and may combine comparisons with "and" and "or"; "and" binds tighter. The result
// of a condition is true or false. Numbers are exact: decimals, or fractions such as 1/13.
package arithmetic

import (
	"cmp"
	"errors"
	"math/big"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
)

// Line is one calculation.
type Line struct {
	// Party is the customer or the entitlement trigger that the values belong to; "" if they concern everybody whom the
	// decision concerns. It is not shown.
	Party string `json:"-"`
	// Name says what is computed. Several lines may have one name: one for each fill, for example.
	Name string `json:"name"`
	// Subject tells lines of one name apart: a symbol, an order's code, or "before" and "after". It may be empty.
	Subject string `json:"subject,omitzero"`
	Formula string `json:"formula"`
	Values  Values `json:"values"`
	Result  string `json:"result"`
}

// Values are the numbers of a formula. Their JSON form is an object in their order.
type Values []Value

// MarshalJSONTo implements json.MarshalerTo.
func (v Values) MarshalJSONTo(e *jsontext.Encoder) error {
	if err := e.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, x := range v {
		if err := e.WriteToken(jsontext.String(x.Name)); err != nil {
			return err
		}
		if err := e.WriteToken(jsontext.String(x.Text)); err != nil {
			return err
		}
	}
	return e.WriteToken(jsontext.EndObject)
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (v *Values) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*v = Values{}
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return cmp.Or(err, errors.New("values are an object"))
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		x := Value{Name: name.String()}
		text, err := d.ReadToken()
		if err != nil || text.Kind() != '"' {
			return cmp.Or(err, errors.New("a value is a string"))
		}
		x.Text = text.String()
		*v = append(*v, x)
	}
	_, err := d.ReadToken()
	return err
}

// Sheet collects lines. A nil Sheet collects nothing: rules call it without a check.
type Sheet struct{ lines []Line }

// On reports whether lines are collected. Rules ask before they compute values that only a line needs.
func (s *Sheet) On() bool { return s != nil }

// Lines returns the lines in the order in which they were added.
func (s *Sheet) Lines() []Line {
	if s == nil {
		return nil
	}
	return s.lines
}

// For returns the lines that a party may see: its own and those of everybody.
func (s *Sheet) For(party string) []Line {
	out := []Line{}
	for _, l := range s.Lines() {
		if l.Party == "" || l.Party == party {
			out = append(out, l)
		}
	}
	return out
}

// Value is a named number of a formula.
type Value struct {
	Name string
	Text string
}

// Money returns a named amount of money.
func Money(name string, m fixed.Money) Value { return Value{name, m.String()} }

// Sum returns a named sum of money that may be beyond the range of fixed.Money.
func Sum(name string, w fixed.Wide) Value { return Value{name, SumText(w)} }

// Decimal returns a named decimal.
func Decimal(name string, d fixed.Decimal) Value { return Value{name, d.String()} }

// Count returns a named whole number.
func Count(name string, n int64) Value { return Value{name, strconv.FormatInt(n, 10)} }

// Flag returns a named condition as a number: 1 if it holds, and otherwise 0.
func Flag(name string, holds bool) Value {
	if holds {
		return Count(name, 1)
	}
	return Count(name, 0)
}

// Rate returns a named fraction: a decimal if it is one, and otherwise a quotient such as 1/13.
func Rate(name string, r fixed.Rate) Value { return Value{name, Text(big.NewRat(r.Num, r.Den))} }

// Add adds a line.
func (s *Sheet) Add(party, name, subject, formula, result string, values ...Value) {
	if s == nil {
		return
	}
	s.lines = append(s.lines, Line{Party: party, Name: name, Subject: subject, Formula: formula, Values: values, Result: result})
}

// SumText returns a sum of money, in units of 10⁻⁸, as a decimal without trailing zeros.
func SumText(w fixed.Wide) string {
	return Text(new(big.Rat).SetFrac(w.Big(), big.NewInt(int64(fixed.Unit))))
}

// Text returns a number as a decimal without trailing zeros, or as a fraction if it is not a decimal.
func Text(r *big.Rat) string {
	digits, exact := r.FloatPrec()
	if !exact {
		return r.RatString()
	}
	return r.FloatString(digits)
}

// Truth returns "true" or "false", the result of a condition.
func Truth(holds bool) string {
	if holds {
		return "true"
	}
	return "false"
}
