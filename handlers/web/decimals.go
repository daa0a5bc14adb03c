package web

import (
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Decimal reads a required decimal: a string of plain digits without exponent, plus sign or superfluous leading
// zeros. A JSON number is an error.
func (f *Form) Decimal(name string, rules ...Rule) fixed.Decimal {
	return f.decimal(name, true, rules).Value
}

// OptionalDecimal reads an optional decimal.
func (f *Form) OptionalDecimal(name string, rules ...Rule) Optional[fixed.Decimal] {
	return f.decimal(name, false, rules)
}

func (f *Form) decimal(name string, required bool, rules []Rule) Optional[fixed.Decimal] {
	n := f.member(name, required)
	if n == nil || n.broken {
		return Optional[fixed.Decimal]{}
	}
	code, message := "", ""
	var d fixed.Decimal
	switch {
	case n.kind != '"':
		code, message = validation.WrongType, "the value must be a string that holds a decimal"
	case !plainDecimal(n.text):
		code, message = validation.InvalidDecimal, "the value must be a decimal in plain digits, like 0.5 or 1200"
	default:
		var err error
		if d, err = fixed.ParseDecimal(n.text); err != nil {
			code, message = validation.TooManyDigits, "the value has too many digits"
			if strings.HasPrefix(n.text, "-") && strings.Trim(n.text, "-0.") == "" {
				code, message = validation.InvalidDecimal, "zero has no sign"
			}
		} else {
			code, message = judge(n.text, rules)
		}
	}
	if code != "" {
		f.Fault(name, code, message)
		return Optional[fixed.Decimal]{}
	}
	return Optional[fixed.Decimal]{d, true}
}

// plainDecimal reports whether s matches -?(0|[1-9][0-9]*)(\.[0-9]+)?.
func plainDecimal(s string) bool {
	whole, fraction, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	if whole == "" || len(whole) > 1 && whole[0] == '0' || point && fraction == "" {
		return false
	}
	return strings.Trim(whole, "0123456789") == "" && strings.Trim(fraction, "0123456789") == ""
}
