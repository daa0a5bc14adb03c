// Package fixed does the venue's arithmetic: exact decimals, money and 128-bit products, all on integers.
//
// Three kinds of number meet here. A Decimal is what a person or a program wrote, with the precision in which it is
// printed again: prices at tick precision, amounts at step precision. Money is an amount of a currency in units of
// 10⁻⁸. A Wide is a signed 128-bit integer for what lies between, so that a product never loses a digit before the
// one place where it is rounded, by a Rounding that the caller names.
//
// Nothing here uses floating point, and nothing wraps around: an operation that could overflow says so.
package fixed

import (
	"errors"
	"math"
)

// MaxDigits is how many digits may be in what somebody writes. What the venue makes of it may have one more, since
// sums and products of what fits may have: UnmarshalText reads everything that AppendText prints.
const MaxDigits = 18

// Errors of the parsers.
var (
	ErrSyntax    = errors.New("not a decimal number: digits with at most one point between them, no exponent, no sign but a leading minus, no leading zeros")
	ErrDigits    = errors.New("more than 18 digits")
	ErrPrecision = errors.New("more than 8 decimals")
	ErrRange     = errors.New("the number is out of range")
)

// pow10 holds the powers of ten that fit an int64.
var pow10 = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// Pow10 returns 10ⁿ for n from 0 to 18.
func Pow10(n int) int64 { return pow10[n] }

// scan reads the one accepted form of a decimal: an optional minus, an integer part without superfluous zeros, and
// possibly a point with at least one digit after it. "-0" in every spelling is refused, so that reading and writing
// are inverse to each other.
func scan(b []byte) (coef int64, scale int, err error) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	point, size, fits := -1, uint64(0), true
	for i, c := range b {
		switch {
		case c == '.' && point < 0 && i > 0:
			point = i
		case c >= '0' && c <= '9':
			if size > (math.MaxUint64-9)/10 {
				fits = false // go on, so that bad syntax is told as such
				continue
			}
			size = size*10 + uint64(c-'0')
		default:
			return 0, 0, ErrSyntax
		}
	}
	whole := len(b)
	if point >= 0 {
		whole, scale = point, len(b)-point-1
	}
	if whole == 0 || b[len(b)-1] == '.' || whole > 1 && b[0] == '0' || negative && size == 0 {
		return 0, 0, ErrSyntax
	}
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if !fits || size > limit || scale >= len(pow10) {
		return 0, 0, ErrDigits
	}
	if negative {
		return -int64(size), scale, nil
	}
	return int64(size), scale, nil
}

// written reports whether a number has no more digits than somebody may write.
func written(coef int64) bool { return coef < pow10[MaxDigits] && coef > -pow10[MaxDigits] }

// appendScaled writes coef × 10^-scale with exactly scale decimals.
func appendScaled(b []byte, coef int64, scale int) []byte {
	u := uint64(coef)
	if coef < 0 {
		b = append(b, '-')
		u = -u
	}
	var digits [24]byte
	i := len(digits)
	for n := 0; u > 0 || n <= scale; n++ {
		if n == scale && scale > 0 {
			i--
			digits[i] = '.'
		}
		i--
		digits[i] = byte('0' + u%10)
		u /= 10
	}
	return append(b, digits[i:]...)
}

// AddInt64 returns a + b, and whether it fits.
func AddInt64(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (a >= 0) != (b >= 0) || (sum >= 0) == (a >= 0)
}

// MulInt64 returns a × b, and whether it fits.
func MulInt64(a, b int64) (int64, bool) { return Mul(a, b).Int64() }

// Abs returns |a|. The smallest int64 has no positive counterpart and is never stored; it panics.
func Abs(a int64) int64 {
	if a == math.MinInt64 {
		panic("fixed: the absolute value of the smallest integer does not fit")
	}
	if a < 0 {
		return -a
	}
	return a
}
