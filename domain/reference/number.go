package reference

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// one is the number of units in 1: prices, amounts and money are counted in 10⁻⁸.
const one = 100_000_000

// dec is a decimal in units of 10⁻⁸. set is false if the record does not contain it.
type dec struct {
	v   int64
	set bool
}

// UnmarshalText parses a number with at most 8 decimals.
func (d *dec) UnmarshalText(text []byte) error {
	whole, part, _ := strings.Cut(string(text), ".")
	if len(part) > 8 {
		return fmt.Errorf("%s is finer than 10⁻⁸", text)
	}
	r, ok := new(big.Int).SetString(whole+part+strings.Repeat("0", 8-len(part)), 10)
	if !ok || !r.IsInt64() {
		return fmt.Errorf("%s is no decimal that can be counted", text)
	}
	d.v, d.set = r.Int64(), true
	return nil
}

// fine is a decimal of any precision, as a fraction. r is nil if the record does not contain it.
type fine struct{ r *big.Rat }

// UnmarshalText parses a decimal.
func (f *fine) UnmarshalText(text []byte) error {
	r, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return fmt.Errorf("%s is no decimal", text)
	}
	f.r = r
	return nil
}

// moment is a time in microseconds since 1970-01-01 UTC. 0 means none.
type moment int64

const (
	second = moment(1_000_000)
	minute = 60 * second
	day    = 24 * 60 * minute
)

// UnmarshalText parses a time.
func (m *moment) UnmarshalText(text []byte) error {
	t, err := time.Parse("2006-01-02T15:04:05.000000Z", string(text))
	*m = moment(t.UnixMicro())
	return err
}

func rat(n, d int64) *big.Rat { return big.NewRat(n, d) }

func times(factors ...*big.Rat) *big.Rat {
	p := rat(1, 1)
	for _, f := range factors {
		p.Mul(p, f)
	}
	return p
}

func plus(a, b *big.Rat) *big.Rat  { return new(big.Rat).Add(a, b) }
func minus(a, b *big.Rat) *big.Rat { return new(big.Rat).Sub(a, b) }

// limit returns r limited to the range from low to high.
func limit(r, low, high *big.Rat) *big.Rat {
	if r.Cmp(low) < 0 {
		return low
	}
	if r.Cmp(high) > 0 {
		return high
	}
	return r
}

// down, up and even round a fraction to an integer: toward minus infinity, toward plus infinity, and half to even.
func down(r *big.Rat) int64 {
	q, _ := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int)) // toward minus infinity, as the denominator is positive
	if !q.IsInt64() {
		if q.Sign() > 0 {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return q.Int64()
}

func up(r *big.Rat) int64 { return -down(new(big.Rat).Neg(r)) }

func even(r *big.Rat) int64 {
	low := down(r)
	switch rest := minus(r, rat(low, 1)).Cmp(rat(1, 2)); {
	case rest > 0, rest == 0 && low%2 != 0:
		return low + 1
	}
	return low
}

func toward0(r *big.Rat) int64 {
	if r.Sign() < 0 {
		return up(r)
	}
	return down(r)
}

// scaled converts a fraction to units of 10⁻⁸.
func scaled(r *big.Rat) *big.Rat { return new(big.Rat).Mul(r, rat(one, 1)) }

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}

// product multiplies two numbers. The audit fails if the result overflows.
func product(a, b int64) int64 {
	p := a * b
	if a != 0 && (p/a != b || a == -1 && b == math.MinInt64) {
		panic(brokenRule("a product is too large to be counted"))
	}
	return p
}

func sign(buy bool) int64 {
	if buy {
		return 1
	}
	return -1
}
