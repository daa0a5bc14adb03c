package web

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
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
