package input

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// String reads a required string, which must not be empty or contain control characters.
func (f *Form) String(name string, rules ...form.Rule) string {
	return f.string(name, true, rules).Value
}

// OptionalString reads an optional string.
func (f *Form) OptionalString(name string, rules ...form.Rule) Optional[string] {
	return f.string(name, false, rules)
}

func (f *Form) string(name string, required bool, rules []form.Rule) Optional[string] {
	return read(f, name, required, func(in form.Value) (string, *validation.FieldError) { return form.ReadText(in, rules...) })
}

// read reads a member by its kind.
func read[V any](f *Form, name string, required bool, kind func(form.Value) (V, *validation.FieldError)) Optional[V] {
	in, ok := f.Member(name, required)
	if !ok {
		return Optional[V]{}
	}
	v, e := kind(in)
	if e != nil {
		f.fail(name, *e)
	}
	if e != nil || in.Broken {
		return Optional[V]{}
	}
	return Optional[V]{v, true}
}

// Member implements form.Source.
func (f *Form) Member(name string, required bool) (form.Value, bool) {
	n := f.member(name, required)
	if n == nil {
		return form.Value{}, false
	}
	return f.value(n), true
}

func (f *Form) value(n *node) form.Value {
	return form.Value{Kind: n.kind, Text: []byte(n.text), Broken: n.broken, Parameter: f.where != inBody}
}

// Report implements form.Source.
func (f *Form) Report(e validation.FieldError) { f.errs.add(f.path, e) }

// AnyText reads an optional string that may be empty and may contain any valid text. The handler validates it.
func (f *Form) AnyText(name string) Optional[string] {
	n := f.member(name, false)
	switch {
	case n == nil, n.broken:
		return Optional[string]{}
	case n.kind != '"':
		f.fail(name, *form.NotAString())
		return Optional[string]{}
	}
	return Optional[string]{n.text, true}
}

// OptionalText reads an optional text, which may be empty and may have several lines.
func (f *Form) OptionalText(name string, rules ...form.Rule) Optional[string] {
	n := f.member(name, false)
	if n == nil || n.broken {
		return Optional[string]{}
	}
	code, message := "", ""
	switch {
	case n.kind != '"':
		code, message = validation.WrongType, "the value must be a string"
	case strings.ContainsFunc(n.text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		code, message = validation.ControlCharacter, "the text holds a control character"
	default:
		code, message = judge(n.text, rules)
	}
	if code != "" {
		f.Fault(name, code, message)
		return Optional[string]{}
	}
	return Optional[string]{n.text, true}
}

// Enum reads a required string that must be one of allowed.
func (f *Form) Enum(name string, allowed ...string) string { return f.enum(name, true, allowed).Value }

// OptionalEnum reads an optional string that must be one of allowed.
func (f *Form) OptionalEnum(name string, allowed ...string) Optional[string] {
	return f.enum(name, false, allowed)
}

func (f *Form) enum(name string, required bool, allowed []string) Optional[string] {
	return read(f, name, required, form.Words(allowed...).Read)
}

// Several reads an optional list of values separated by pipes. Each must be one of allowed.
func Several[T ~string](f *Form, name string, allowed ...T) []T {
	text := f.OptionalString(name)
	if !text.Set {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	var out []T
	for value := range strings.SplitSeq(text.Value, "|") {
		if !slices.Contains(names, value) {
			f.fail(name, *form.NoneOf(names))
			return nil
		}
		out = append(out, T(value))
	}
	return out
}

// OptionalBool reads an optional boolean.
func (f *Form) OptionalBool(name string) Optional[bool] { return f.bool(name, false) }

func (f *Form) bool(name string, required bool) Optional[bool] {
	return read(f, name, required, form.Bool().Read)
}

// Integer reads a required integer between least and most. In a body, it is a JSON number without point or exponent.
func (f *Form) Integer(name string, least, most int64) int64 {
	return f.integer(name, true, least, most).Value
}

// OptionalInteger reads an optional integer.
func (f *Form) OptionalInteger(name string, least, most int64) Optional[int64] {
	return f.integer(name, false, least, most)
}

func (f *Form) integer(name string, required bool, least, most int64) Optional[int64] {
	return read(f, name, required, form.Integer(least, most).Read)
}

// Leverage reads a required leverage between 1 and most: a JSON integer, or a string of digits without sign or
// leading zero.
func (f *Form) Leverage(name string, most int) int {
	return read(f, name, true, form.Leverage(most).Read).Value
}

// OptionalLeverage reads an optional leverage.
func (f *Form) OptionalLeverage(name string, most int) Optional[int] {
	return read(f, name, false, form.Leverage(most).Read)
}

// ID reads a required UUID.
func (f *Form) ID(name string) scalar.ID { return read(f, name, true, form.ID().Read).Value }

// OptionalID reads an optional UUID.
func (f *Form) OptionalID(name string) Optional[scalar.ID] {
	return read(f, name, false, form.ID().Read)
}

// These constants are the widest range of an integer.
const (
	MinInteger = math.MinInt64
	MaxInteger = math.MaxInt64
)

// Decimal reads a required decimal: a string of plain digits without exponent, plus sign or superfluous leading
// zeros. A JSON number is an error.
func (f *Form) Decimal(name string, rules ...form.DecimalRule) fixed.Decimal {
	return read(f, name, true, form.Decimal(rules...).Read).Value
}

// OptionalDecimal reads an optional decimal.
func (f *Form) OptionalDecimal(name string, rules ...form.DecimalRule) Optional[fixed.Decimal] {
	return read(f, name, false, form.Decimal(rules...).Read)
}

// Money reads a required amount of money: positive, with at most 8 decimals.
func (f *Form) Money(name string) fixed.Money { return read(f, name, true, form.Money().Read).Value }

// OptionalMoney reads an optional amount of money.
func (f *Form) OptionalMoney(name string) Optional[fixed.Money] {
	return read(f, name, false, form.Money().Read)
}

// Notional reads an optional amount of money, zero or positive. It returns zero if the amount is absent.
func (f *Form) Notional(name string) fixed.Money {
	return read(f, name, false, form.Notional().Read).Value
}

// Fee reads a required fee in basis points. The fee may be negative if rebates are allowed.
func (f *Form) Fee(name string, rebate bool) fixed.Decimal {
	d := f.Decimal(name, form.MaxDecimals(4))
	if !market.FeeInRange(d, rebate) {
		least := "0"
		if rebate {
			least = "-100"
		}
		f.Fault(name, validation.OutOfRange, "the fee must be between "+least+" and 100 basis points")
	}
	return d.Trim()
}

// OptionalTime reads an optional timestamp.
func (f *Form) OptionalTime(name string) Optional[scalar.Time] {
	return read(f, name, false, form.Time().Read)
}

// Bound reads a bound of a search, which may be any time since 1970. Its value is never zero if it is set.
func (f *Form) Bound(name string, required bool) Optional[scalar.Time] {
	t := read(f, name, required, form.TimeSince(0).Read)
	if t.Set {
		t.Value = max(t.Value, 1) // no record is this old, so 0 and 1 are equivalent
	}
	return t
}
