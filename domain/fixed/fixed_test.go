package fixed

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecimalText(t *testing.T) {
	for text, want := range map[string]Decimal{
		"0": {0, 0}, "1": {1, 0}, "65000.10": {6500010, 2}, "-0.5": {-5, 1}, "0.000": {0, 3}, "100": {100, 0},
		"123456789012345678": {123456789012345678, 0}, "0.12345678901234567": {12345678901234567, 17},
	} {
		got, err := ParseDecimal(text)
		if err != nil || got != want {
			t.Errorf("%s reads as %+v (%v)", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%s prints as %s", text, got)
		}
	}
	for text, want := range map[string]error{
		"": ErrSyntax, "-": ErrSyntax, ".5": ErrSyntax, "5.": ErrSyntax, "01": ErrSyntax, "00": ErrSyntax, "+1": ErrSyntax,
		"1e3": ErrSyntax, "1E3": ErrSyntax, "--1": ErrSyntax, "1.2.3": ErrSyntax, "-0": ErrSyntax, "-0.00": ErrSyntax,
		" 1": ErrSyntax, "1 ": ErrSyntax, "1,000": ErrSyntax, "NaN": ErrSyntax, "0x10": ErrSyntax, "-.5": ErrSyntax, "-01": ErrSyntax,
		"1234567890123456789": ErrDigits, "0.1234567890123456789": ErrDigits, "1.234567890123456789": ErrDigits, strings.Repeat("9", 500): ErrDigits,
		strings.Repeat("9", 500) + "x": ErrSyntax, "１": ErrSyntax,
	} {
		if got, err := ParseDecimal(text); err != want {
			t.Errorf("%q reads as %+v (%v), not %v", text, got, err, want)
		}
	}
}

// parseMoney parses the text form of money by way of a decimal, as requests do.
func parseMoney(s string) (Money, error) {
	d, err := ParseDecimal(s)
	if err != nil {
		return 0, err
	}
	if m, ok := MoneyOf(d); ok {
		return m, nil
	}
	return 0, ErrRange
}

func TestMoneyText(t *testing.T) {
	for text, want := range map[string]Money{
		"0": 0, "100": 100 * Unit, "-0.5": -Unit / 2, "0.00000001": 1, "92000000000": 92e9 * Unit,
	} {
		got, err := parseMoney(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s reads as %d (%v) and prints as %s", text, got, err, got)
		}
	}
	if m, err := parseMoney("1.50"); err != nil || m.String() != "1.5" {
		t.Errorf("1.50 reads as %s (%v)", m, err)
	}
	for text, want := range map[string]error{
		"0.000000001": ErrRange, "92233720369": ErrRange, "-92233720369": ErrRange, "1e3": ErrSyntax, "1234567890123456789": ErrDigits,
	} {
		if m, err := parseMoney(text); err != want {
			t.Errorf("%s reads as %s (%v), not %v", text, m, err, want)
		}
	}
}

// TestWhatIsPrintedIsRead holds for every number, also those with one digit more than anybody may write: balances are
// sums, and a record whose balance could not be read again would stop every reader of the journal.
func TestWhatIsPrintedIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, 0, 1, -1, 1e18, 1e18 - 1, 1999999999999999998})).Draw(t, "n")
		money := Money(n)
		var m Money
		if err := m.UnmarshalText([]byte(money.String())); err != nil || m != money {
			t.Errorf("money %d prints as %s and reads as %d (%v)", n, money, m, err)
		}
		decimal := Decimal{n, uint8(rapid.IntRange(0, 18).Draw(t, "scale"))}
		var d Decimal
		if err := d.UnmarshalText([]byte(decimal.String())); err != nil || d != decimal {
			t.Errorf("%+v prints as %s and reads as %+v (%v)", decimal, decimal, d, err)
		}
	})
}

func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"0", "-1.5", "65000.1", "00", "1e3", ".", "999999999999999999", "0.0000000000000000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDecimal(s); err == nil && d.String() != s {
			t.Errorf("%q prints as %q", s, d)
		}
		m, err := parseMoney(s)
		if err != nil {
			return
		}
		again, err := parseMoney(m.String())
		if err != nil || again != m {
			t.Errorf("%q is %d, and as text %q it is %d (%v)", s, m, m, again, err)
		}
	})
}

func TestDecimalUnits(t *testing.T) {
	for _, c := range []struct {
		d, unit string
		n       int64
		ok      bool
	}{
		{"65000.1", "0.1", 650001, true}, {"65000.10", "0.1", 650001, true}, {"65000", "0.1", 650000, true}, {"65000.15", "0.1", 0, false},
		{"1.5", "0.5", 3, true}, {"1.6", "0.5", 0, false}, {"2000", "1000", 2, true}, {"1500", "1000", 0, false},
		{"-0.3", "0.1", -3, true}, {"0", "0.1", 0, true}, {"1", "0", 0, false}, {"0.00000000000000001", "100000000000000000", 0, false},
	} {
		d, _ := ParseDecimal(c.d)
		unit, _ := ParseDecimal(c.unit)
		n, ok := d.Over(unit)
		if ok != c.ok || ok && n != c.n {
			t.Errorf("%s over %s is %d, %t", c.d, c.unit, n, ok)
		}
	}
	if d := (Decimal{6500000, 2}).Trim(); d != (Decimal{65000, 0}) || d.AtLeast(1) != (Decimal{650000, 1}) {
		t.Errorf("trimmed to %+v", d)
	}
	if (Decimal{10, 1}).Cmp(Decimal{1, 0}) != 0 || (Decimal{-1, 0}).Cmp(Decimal{1, 5}) != -1 {
		t.Error("comparison depends on the precision")
	}
}

// big returns w as a big integer.
func (w Wide) big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(w.hi), 64)
	return n.Add(n, new(big.Int).SetUint64(w.lo))
}

func wide() *rapid.Generator[Wide] {
	return rapid.Custom(func(t *rapid.T) Wide {
		return Mul(rapid.Int64().Draw(t, "a"), rapid.Int64Range(-1<<62, 1<<62).Draw(t, "b"))
	})
}

// TestWideAgreesWithBigIntegers holds every operation against math/big.
func TestWideAgreesWithBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if got, want := Mul(a, b).big(), new(big.Int).Mul(big.NewInt(a), big.NewInt(b)); got.Cmp(want) != 0 {
			t.Fatalf("%d × %d = %s, not %s", a, b, got, want)
		}
		v, w := wide().Draw(t, "v"), wide().Draw(t, "w")
		if got, want := v.Add(w).big(), new(big.Int).Add(v.big(), w.big()); got.Cmp(want) != 0 {
			t.Fatalf("the sum is %s, not %s", got, want)
		}
		if got, want := v.Sub(w).big(), new(big.Int).Sub(v.big(), w.big()); got.Cmp(want) != 0 {
			t.Fatalf("the difference is %s, not %s", got, want)
		}
		if v.Cmp(w) != v.big().Cmp(w.big()) || v.Sign() != v.big().Sign() || v.Abs().big().Cmp(new(big.Int).Abs(v.big())) != 0 {
			t.Fatalf("comparison, sign or size of %s and %s", v.big(), w.big())
		}
		n, ok := v.Int64()
		if ok != v.big().IsInt64() || ok && n != v.big().Int64() {
			t.Fatalf("%s as an int64 is %d, %t", v.big(), n, ok)
		}
		small := Mul(a, 1).Add(WideOf(b))
		factor := rapid.Int64Range(-1<<60, 1<<60).Draw(t, "factor")
		if got, want := small.Mul(factor).big(), new(big.Int).Mul(small.big(), big.NewInt(factor)); got.Cmp(want) != 0 {
			t.Fatalf("%s × %d = %s, not %s", small.big(), factor, got, want)
		}
		sum, ok := AddInt64(a, b)
		if want := new(big.Int).Add(big.NewInt(a), big.NewInt(b)); ok != want.IsInt64() || ok && sum != want.Int64() {
			t.Fatalf("%d + %d = %d, %t", a, b, sum, ok)
		}
	})
}

// TestRoundings holds division against the definition of each rounding on exact fractions.
func TestRoundings(t *testing.T) {
	half := big.NewRat(1, 2)
	rapid.Check(t, func(t *rapid.T) {
		v, divisor := wide().Draw(t, "v"), rapid.Int64Range(1, math.MaxInt64).Draw(t, "divisor")
		if rapid.Bool().Draw(t, "tie") { // make ties, which chance does not
			divisor = 2 * rapid.Int64Range(1, 1<<40).Draw(t, "half")
			v = Mul(divisor/2, 2*rapid.Int64Range(-1<<40, 1<<40).Draw(t, "odd")+1)
		}
		exact := new(big.Rat).SetFrac(v.big(), big.NewInt(divisor))
		for r := Down; r <= HalfEven; r++ {
			got := v.Div(divisor, r)
			diff := new(big.Rat).Sub(new(big.Rat).SetInt(got.big()), exact)
			size := new(big.Rat).Abs(diff)
			good := size.Cmp(big.NewRat(1, 1)) < 0
			switch r {
			case Down:
				good = good && diff.Sign()*v.Sign() <= 0
			case Up:
				good = good && diff.Sign()*v.Sign() >= 0
			case Floor:
				good = good && diff.Sign() <= 0
			case Ceiling:
				good = good && diff.Sign() >= 0
			case HalfEven:
				good = size.Cmp(half) < 0 || size.Cmp(half) == 0 && got.big().Bit(0) == 0
			}
			if !good {
				t.Fatalf("%s ÷ %d with rounding %d is %s", v.big(), divisor, r, got.big())
			}
		}
	})
}

func TestOverflowPanics(t *testing.T) {
	most := Wide{math.MaxInt64, math.MaxUint64}
	for name, f := range map[string]func(){
		"sum":        func() { most.Add(WideOf(1)) },
		"difference": func() { most.Neg().Sub(WideOf(2)) },
		"product":    func() { most.Mul(2) },
		"negation":   func() { Wide{math.MinInt64, 0}.Neg() },
		"division":   func() { most.Div(0, Down) },
		"money":      func() { Money(math.MaxInt64).Add(1) },
		"less money": func() { Money(math.MinInt64).Sub(1) },
		"part":       func() { Rate{2, 1}.Of(math.MaxInt64, Down) },
		"size":       func() { Abs(math.MinInt64) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("an overflow went unnoticed")
				}
			}()
			f()
		})
	}
}

func TestRates(t *testing.T) {
	for _, c := range []struct {
		r    Rate
		want string
	}{{Leverage(13), "7.70"}, {Leverage(13).Half(), "3.85"}, {Leverage(10), "10.00"}, {Percent(Decimal{500, 2}), "5.00"}, {Percent(Decimal{12345, 4}), "1.24"}} {
		if got := c.r.Percent().String(); got != c.want {
			t.Errorf("%d/%d is %s percent, not %s", c.r.Num, c.r.Den, got, c.want)
		}
	}
	if Leverage(13).Max(Percent(Decimal{5, 0})) != Leverage(13) || Leverage(20).Cmp(Percent(Decimal{5, 0})) != 0 {
		t.Error("rates compare wrongly")
	}
	if got := Leverage(13).Of(65000*Unit, Ceiling); got != 5000*Unit {
		t.Errorf("a thirteenth of 65,000 is %s", got)
	}
}
