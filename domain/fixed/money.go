package fixed

import "github.com/perpetua-exchange/perpetua/domain/fastjson"

// Money is an amount of a currency in units of 10⁻⁸. Its text form has no trailing zeros: "100", "-0.5".
type Money int64

// Unit is one whole unit of a currency, such as 1 USDC.
const Unit Money = 1e8

// moneyScale is the number of decimals of Money.
const moneyScale = 8

// Decimal returns m as a Decimal without trailing zeros.
func (m Money) Decimal() Decimal { return Decimal{int64(m), moneyScale}.Trim() }

// MoneyOf converts a decimal to money. It returns false if the decimal has more than 8 decimals or is out of range.
func MoneyOf(d Decimal) (Money, bool) {
	n, ok := d.In(moneyScale)
	return Money(n), ok
}

// Wide returns m as a Wide, for sums that may exceed the range of Money.
func (m Money) Wide() Wide { return WideOf(int64(m)) }

// Plus returns m + o, and whether it fits.
func (m Money) Plus(o Money) (Money, bool) {
	sum, ok := AddInt64(int64(m), int64(o))
	return Money(sum), ok
}

// Add returns m + o. Callers refuse sums that could overflow before they add. An overflow is a broken invariant: Add
// panics.
func (m Money) Add(o Money) Money {
	sum, ok := m.Plus(o)
	if !ok {
		panic("fixed: a sum of money does not fit")
	}
	return sum
}

// Sub returns m − o and panics like Add.
func (m Money) Sub(o Money) Money {
	difference := m - o
	if (m >= 0) != (o >= 0) && (difference >= 0) != (m >= 0) {
		panic("fixed: a difference of money does not fit")
	}
	return difference
}

// Abs returns |m|.
func (m Money) Abs() Money { return Money(Abs(int64(m))) }

// String returns the text form.
func (m Money) String() string { return string(m.append(nil)) }

// AppendText appends the text form. It implements encoding.TextAppender.
func (m Money) AppendText(b []byte) ([]byte, error) { return m.append(b), nil }

func (m Money) append(b []byte) []byte {
	d := m.Decimal()
	return appendScaled(b, d.Coef, int(d.Scale))
}

// MarshalText implements encoding.TextMarshaler.
func (m Money) MarshalText() ([]byte, error) { return m.append(nil), nil }

// UnmarshalText parses every text that AppendText prints.
func (m *Money) UnmarshalText(b []byte) error {
	coef, scale, err := scan(b)
	if err != nil {
		return err
	}
	if scale > moneyScale {
		return ErrPrecision
	}
	n, ok := MulInt64(coef, pow10[moneyScale-scale])
	if !ok {
		return ErrRange
	}
	*m = Money(n)
	return nil
}

// ReadJSON reads the quoted output of AppendText if it has at most 18 digits.
func (m *Money) ReadJSON(r *fastjson.Reader) {
	coef, scale := r.Number()
	if scale > moneyScale {
		r.Fail()
		return
	}
	n, ok := MulInt64(coef, pow10[moneyScale-scale])
	if !ok {
		r.Fail()
	}
	*m = Money(n)
}
