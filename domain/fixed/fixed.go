// Package fixed does the venue's arithmetic: exact decimals, money and 128-bit products, all on integers.
//
// The package has three kinds of number. A Decimal is a number from a person or a program, with the precision in which
// it is printed: prices in tick precision, amounts in step precision. Money is an amount of a currency in units of 10⁻⁸.
// A Wide is a signed 128-bit integer for intermediate results: a product keeps all digits until it is rounded
// once, by a Rounding that the caller names.
//
// The package does not use floating point, and nothing wraps around: an operation that could overflow returns false or
// panics.
package fixed

import (
	"errors"
	"math"
)

// MaxDigits is the greatest number of digits in user input. Results of the venue may have one digit more, since sums and
// products of valid numbers may. UnmarshalText parses every text that AppendText prints.
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

// scan parses the only accepted text form of a decimal: an optional minus, an integer part without superfluous zeros,
// and optionally a decimal point with at least one digit after it. It rejects "-0" in every spelling, so that parsing
// and printing are inverse to each other.
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
				fits = false // continue, so that a syntax error is reported as one
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

// written reports whether a number has at most MaxDigits digits.
func written(coef int64) bool { return coef < pow10[MaxDigits] && coef > -pow10[MaxDigits] }

// appendScaled appends coef × 10^-scale with exactly scale decimals.
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

// Abs returns |a|. It panics for the smallest int64, which has no positive counterpart and is never stored.
func Abs(a int64) int64 {
	if a == math.MinInt64 {
		panic("fixed: the absolute value of the smallest integer does not fit")
	}
	if a < 0 {
		return -a
	}
	return a
}
