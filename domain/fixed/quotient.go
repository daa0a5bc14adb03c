package fixed

import (
	"math"
	"math/bits"
)

// Quotient returns a × b × c ÷ (d × e), rounded toward zero. Intermediate results are exact: a product of three amounts
// may need 192 bits. The factors must not be negative and the divisors must be positive. A quotient of more than 127
// bits is returned as the largest Wide.
func Quotient(a, b, c, d, e int64) Wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	over, low := bits.Mul64(lo, uint64(c))
	top, middle := bits.Mul64(hi, uint64(c))
	middle, carry := bits.Add64(middle, over, 0)
	limbs := [3]uint64{top + carry, middle, low}
	// Truncation by the first division does not affect the second: ⌊⌊n ÷ d⌋ ÷ e⌋ = ⌊n ÷ (d × e)⌋.
	for _, divisor := range [2]int64{d, e} {
		rest := uint64(0)
		for i := range limbs {
			limbs[i], rest = bits.Div64(rest, limbs[i], uint64(divisor))
		}
	}
	if limbs[0] != 0 || limbs[1] > math.MaxInt64 {
		return Wide{math.MaxInt64, math.MaxUint64}
	}
	return Wide{int64(limbs[1]), limbs[2]}
}
