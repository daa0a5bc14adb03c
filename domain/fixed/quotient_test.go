package fixed

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestQuotient holds products of three over products of two against integers of any size.
func TestQuotient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string, least int64) int64 {
			return max(least, rapid.Int64Range(0, math.MaxInt64).Draw(t, name)>>rapid.IntRange(0, 62).Draw(t, name+" less"))
		}
		a, b, c, d, e := number("a", 0), number("b", 0), number("c", 0), number("d", 1), number("e", 1)
		want := big.NewInt(a)
		want.Mul(want, big.NewInt(b)).Mul(want, big.NewInt(c))
		want.Quo(want, new(big.Int).Mul(big.NewInt(d), big.NewInt(e)))
		largest := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
		if want.Cmp(largest) > 0 {
			want = largest
		}
		w := Quotient(a, b, c, d, e)
		got := new(big.Int).Lsh(big.NewInt(w.hi), 64)
		if got.Add(got, new(big.Int).SetUint64(w.lo)); got.Cmp(want) != 0 {
			t.Fatalf("%d × %d × %d ÷ (%d × %d) is %s, not %s", a, b, c, d, e, got, want)
		}
	})
}
