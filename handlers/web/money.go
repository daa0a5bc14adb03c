package web

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

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
