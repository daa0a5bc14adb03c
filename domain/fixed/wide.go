package fixed

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

// Rounding selects the neighbor to which an inexact quotient is rounded.
type Rounding int

// The rounding modes, by their usual names.
const (
	Down     Rounding = iota // toward zero
	Up                       // away from zero
	Floor                    // toward minus infinity
	Ceiling                  // toward plus infinity
	HalfEven                 // to the nearest, a tie to the even neighbor
)

// Wide is a signed 128-bit integer in two's complement. Operations panic on overflow. Their operands are bounded by the
// limits of orders, prices and rates, so an overflow is a broken invariant.
type Wide struct {
	hi int64
	lo uint64
}

// WideOf returns a as a Wide.
func WideOf(a int64) Wide { return Wide{a >> 63, uint64(a)} }

// Mul returns the exact product of two integers.
func Mul(a, b int64) Wide {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	w := Wide{int64(hi), lo}
	if (a < 0) != (b < 0) {
		return w.Neg()
	}
	return w
}

// Bytes returns w in two's complement, big-endian.
func (w Wide) Bytes() (b [16]byte) {
	binary.BigEndian.PutUint64(b[:8], uint64(w.hi))
	binary.BigEndian.PutUint64(b[8:], w.lo)
	return b
}

// magnitude returns |a|, which always fits a uint64.
func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// Neg returns −w.
func (w Wide) Neg() Wide {
	lo, borrow := bits.Sub64(0, w.lo, 0)
	hi, _ := bits.Sub64(0, uint64(w.hi), borrow)
	if w.hi == math.MinInt64 && w.lo == 0 {
		panic("fixed: a negation does not fit 128 bits")
	}
	return Wide{int64(hi), lo}
}

// Add returns w + o.
func (w Wide) Add(o Wide) Wide {
	lo, carry := bits.Add64(w.lo, o.lo, 0)
	hi, _ := bits.Add64(uint64(w.hi), uint64(o.hi), carry)
	sum := Wide{int64(hi), lo}
	if (w.hi < 0) == (o.hi < 0) && (sum.hi < 0) != (w.hi < 0) {
		panic("fixed: a sum does not fit 128 bits")
	}
	return sum
}

// Sub returns w − o.
func (w Wide) Sub(o Wide) Wide { return w.Add(o.Neg()) }

// Mul returns w × b.
func (w Wide) Mul(b int64) Wide {
	abs := w.Abs()
	m := magnitude(b)
	over, top := bits.Mul64(uint64(abs.hi), m)
	carry, lo := bits.Mul64(abs.lo, m)
	hi, more := bits.Add64(top, carry, 0)
	if over != 0 || more != 0 || hi > math.MaxInt64 {
		panic("fixed: a product does not fit 128 bits")
	}
	product := Wide{int64(hi), lo}
	if (w.hi < 0) != (b < 0) {
		return product.Neg()
	}
	return product
}

// Abs returns |w|.
func (w Wide) Abs() Wide {
	if w.hi < 0 {
		return w.Neg()
	}
	return w
}

// Sign returns -1, 0 or 1.
func (w Wide) Sign() int {
	switch {
	case w.hi < 0:
		return -1
	case w.hi == 0 && w.lo == 0:
		return 0
	}
	return 1
}

// Cmp compares two integers.
func (w Wide) Cmp(o Wide) int {
	switch {
	case w.hi < o.hi || w.hi == o.hi && w.lo < o.lo:
		return -1
	case w == o:
		return 0
	}
	return 1
}

// Int64 returns w as an int64, and whether it fits.
func (w Wide) Int64() (int64, bool) { return int64(w.lo), w.hi == int64(w.lo)>>63 }

// Words returns the upper and the lower half of w.
func (w Wide) Words() (hi int64, lo uint64) { return w.hi, w.lo }

// WideFrom returns the integer that Words split.
func WideFrom(hi int64, lo uint64) Wide { return Wide{hi, lo} }

// Big returns w as a big.Int.
func (w Wide) Big() *big.Int {
	hi := new(big.Int).Lsh(big.NewInt(w.hi), 64)
	return hi.Add(hi, new(big.Int).SetUint64(w.lo))
}

// Money returns w units of 10⁻⁸ as money, and whether it fits.
func (w Wide) Money() (Money, bool) {
	n, ok := w.Int64()
	return Money(n), ok
}

// Capped returns w units of 10⁻⁸ as money. A value that does not fit is replaced by the nearest bound of the range.
func (w Wide) Capped() Money {
	if m, fits := w.Money(); fits {
		return m
	}
	if w.Sign() < 0 {
		return math.MinInt64 + 1 // the negation of this bound also fits
	}
	return math.MaxInt64
}

// DivMod returns the quotient rounded toward zero, and the remainder, which has the sign of w. The divisor must be
// positive.
func (w Wide) DivMod(divisor int64) (quotient Wide, remainder int64) {
	if divisor <= 0 {
		panic(fmt.Sprintf("fixed: division by %d", divisor))
	}
	abs := w.Abs()
	hi, rest := bits.Div64(0, uint64(abs.hi), uint64(divisor))
	lo, rem := bits.Div64(rest, abs.lo, uint64(divisor))
	quotient, remainder = Wide{int64(hi), lo}, int64(rem)
	if w.hi < 0 {
		return quotient.Neg(), -remainder
	}
	return quotient, remainder
}

// Div returns w ÷ divisor, rounded by r. The divisor must be positive.
func (w Wide) Div(divisor int64, r Rounding) Wide {
	quotient, remainder := w.DivMod(divisor)
	if remainder == 0 {
		return quotient
	}
	if away(r, w.hi < 0, quotient.lo&1 == 1, magnitude(remainder), uint64(divisor)) {
		return quotient.Add(WideOf(int64(w.Sign())))
	}
	return quotient
}

// away reports whether a quotient that was rounded toward zero must move by one away from zero.
func away(r Rounding, negative, odd bool, remainder, divisor uint64) bool {
	switch r {
	case Down:
		return false
	case Up:
		return true
	case Floor:
		return negative
	case Ceiling:
		return !negative
	case HalfEven:
		rest := divisor - remainder
		return remainder > rest || remainder == rest && odd
	}
	panic(fmt.Sprintf("fixed: unknown rounding %d", r))
}
