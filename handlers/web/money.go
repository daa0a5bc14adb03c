package web

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// MoneyDecimals is the maximum number of decimals of an amount of money.
const MoneyDecimals = 8

// Money reads a required amount of money: positive, with at most 8 decimals.
func (f *Form) Money(name string) fixed.Money {
	return f.money(name, f.decimal(name, true, moneyRules)).Value
}

// OptionalMoney reads an optional amount of money.
func (f *Form) OptionalMoney(name string) Optional[fixed.Money] {
	return f.money(name, f.decimal(name, false, moneyRules))
}

// Notional reads an optional amount of money, zero or positive. It returns zero if the amount is absent.
func (f *Form) Notional(name string) fixed.Money {
	return f.money(name, f.OptionalDecimal(name, NotNegative, MaxDecimals(MoneyDecimals))).Value
}

var moneyRules = []Rule{Positive, MaxDecimals(MoneyDecimals)}

func (f *Form) money(name string, d Optional[fixed.Decimal]) Optional[fixed.Money] {
	m, fits := fixed.MoneyOf(d.Value)
	if !fits {
		f.Fault(name, validation.TooManyDigits, "the value has too many digits")
	}
	return Optional[fixed.Money]{m, d.Set && fits}
}

// Fee reads a required fee in basis points. The fee may be negative if rebates are allowed.
func (f *Form) Fee(name string, rebate bool) fixed.Decimal {
	d := f.Decimal(name, MaxDecimals(4))
	if !market.FeeInRange(d, rebate) {
		least := "0"
		if rebate {
			least = "-100"
		}
		f.Fault(name, validation.OutOfRange, "the fee must be between "+least+" and 100 basis points")
	}
	return d.Trim()
}
