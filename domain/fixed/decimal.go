package fixed

import (
	"cmp"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Decimal is the exact number Coef × 10^-Scale. It keeps its printed precision: "65000.10" is {6500010, 2} and prints as
// "65000.10". Where a price or an amount is optional, the zero Decimal means that it is absent.
type Decimal struct {
	Coef  int64
	Scale uint8
}

// ParseDecimal parses user input: the text form, with at most 18 digits.
func ParseDecimal[T string | []byte](s T) (Decimal, error) {
	var d Decimal
	if err := d.UnmarshalText([]byte(s)); err != nil {
		return Decimal{}, err
	}
	if !written(d.Coef) {
		return Decimal{}, ErrDigits
	}
	return d, nil
}

// IsZero reports whether the number is zero, in any precision. With the omitzero option, absent fields are left out of
// JSON.
func (d Decimal) IsZero() bool { return d.Coef == 0 }

// Readable reports whether UnmarshalText reads the text form of d back.
func (d Decimal) Readable() bool { return int(d.Scale) < len(pow10) }

// Canonical is Readable for a field that is left out of JSON when it is zero.
func (d Decimal) Canonical() bool { return d.Readable() && (d.Coef != 0 || d.Scale == 0) }

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int { return cmp.Compare(d.Coef, 0) }

// Neg returns −d.
func (d Decimal) Neg() Decimal { return Decimal{-d.Coef, d.Scale} }

// Cmp compares the values of two numbers. It ignores their precisions.
func (d Decimal) Cmp(o Decimal) int {
	a, b := Mul(d.Coef, 1), Mul(o.Coef, 1)
	if d.Scale < o.Scale {
		a = Mul(d.Coef, pow10[o.Scale-d.Scale])
	} else {
		b = Mul(o.Coef, pow10[d.Scale-o.Scale])
	}
	return a.Cmp(b)
}

// Trim returns the same number without trailing zeros after the decimal point.
func (d Decimal) Trim() Decimal {
	for d.Scale > 0 && d.Coef%10 == 0 {
		d.Coef /= 10
		d.Scale--
	}
	return d
}

// AtLeast returns the same number with at least scale decimals, or with fewer if the result would exceed 18 digits.
func (d Decimal) AtLeast(scale uint8) Decimal {
	for d.Scale < scale && Abs(d.Coef) < 1e17 {
		d.Coef *= 10
		d.Scale++
	}
	return d
}

// In converts the number to units of 10^-scale. It returns false if the result is not an integer or does not fit an
// int64.
func (d Decimal) In(scale uint8) (int64, bool) {
	d = d.Trim()
	if d.Scale > scale || scale > 18 {
		return 0, false
	}
	return MulInt64(d.Coef, pow10[scale-d.Scale])
}

// Over returns the number divided by unit. It returns false if the quotient is not an integer or does not fit an int64.
func (d Decimal) Over(unit Decimal) (int64, bool) {
	if unit.Coef == 0 {
		return 0, false
	}
	a, b := Mul(d.Coef, 1), Mul(unit.Coef, 1)
	if d.Scale < unit.Scale {
		a = Mul(d.Coef, pow10[unit.Scale-d.Scale])
	} else {
		b = Mul(unit.Coef, pow10[d.Scale-unit.Scale])
	}
	divisor, fits := b.Int64()
	if !fits {
		return 0, d.Coef == 0 // the unit is larger than any number of this precision
	}
	quotient, remainder := a.DivMod(divisor)
	if remainder != 0 {
		return 0, false
	}
	return quotient.Int64()
}

// Times returns n × d in d's precision, and whether it fits.
func (d Decimal) Times(n int64) (Decimal, bool) {
	coef, ok := MulInt64(d.Coef, n)
	return Decimal{coef, d.Scale}, ok
}

// String returns the text form.
func (d Decimal) String() string { return string(appendScaled(nil, d.Coef, int(d.Scale))) }

// AppendText appends the text form. It implements encoding.TextAppender.
func (d Decimal) AppendText(b []byte) ([]byte, error) {
	return appendScaled(b, d.Coef, int(d.Scale)), nil
}

// MarshalText implements encoding.TextMarshaler.
func (d Decimal) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText parses every text that AppendText prints.
func (d *Decimal) UnmarshalText(b []byte) error {
	coef, scale, err := scan(b)
	if err != nil {
		return err
	}
	*d = Decimal{coef, uint8(scale)}
	return nil
}

// ReadJSON reads the quoted output of AppendText if it has at most 18 digits.
func (d *Decimal) ReadJSON(r *fastjson.Reader) {
	coef, scale := r.Number()
	*d = Decimal{coef, uint8(scale)}
}
