package fixed

// Rate is an exact fraction Num ÷ Den, for example 1/13 or 5/100. Den is positive; Num is not negative.
type Rate struct{ Num, Den int64 }

// Percent returns d percent as a fraction.
func Percent(d Decimal) Rate {
	d = d.Trim()
	return Rate{d.Coef, 100 * pow10[d.Scale]}
}

// Leverage returns 1/n.
func Leverage(n int) Rate { return Rate{1, int64(n)} }

// Half returns r/2.
func (r Rate) Half() Rate { return Rate{r.Num, 2 * r.Den} }

// Cmp compares two fractions exactly.
func (r Rate) Cmp(o Rate) int { return Mul(r.Num, o.Den).Cmp(Mul(o.Num, r.Den)) }

// Max returns the greater of two fractions.
func (r Rate) Max(o Rate) Rate {
	if r.Cmp(o) >= 0 {
		return r
	}
	return o
}

// Percent returns the fraction in percent with exactly 2 decimals, rounded up: 1/13 is 7.70.
func (r Rate) Percent() Decimal {
	n, _ := Mul(r.Num, 10_000).Div(r.Den, Ceiling).Int64()
	return Decimal{n, 2}
}

// Of returns the fraction of an amount of money, rounded. It panics if the result is out of range.
func (r Rate) Of(m Money, rounding Rounding) Money {
	part, ok := Mul(int64(m), r.Num).Div(r.Den, rounding).Money()
	if !ok {
		panic("fixed: a part of an amount does not fit")
	}
	return part
}
