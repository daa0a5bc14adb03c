package liabilities

import (
	"encoding/binary"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func amounts() *rapid.Generator[Amount] {
	return rapid.Custom(func(t *rapid.T) Amount {
		return Amount{rapid.Uint64().Draw(t, "hi") >> rapid.IntRange(0, 64).Draw(t, "shift"), rapid.Uint64().Draw(t, "lo")}
	})
}

// TestAmountsAgreeWithBigIntegers computes with amounts and with package math/big.
func TestAmountsAgreeWithBigIntegers(t *testing.T) {
	limit := new(big.Int).Lsh(big.NewInt(1), 128)
	rapid.Check(t, func(t *rapid.T) {
		a, b, fraction := amounts().Draw(t, "a"), amounts().Draw(t, "b"), rapid.Uint64().Draw(t, "fraction")
		want := new(big.Int).Add(a.big(), b.big())
		sum, err := a.Plus(b)
		if fits := want.Cmp(limit) < 0; fits != (err == nil) || fits && sum.big().Cmp(want) != 0 {
			t.Fatalf("%s + %s = %s (%v)", a, b, sum, err)
		}
		want.Mul(a.big(), new(big.Int).SetUint64(fraction)).Rsh(want, 64)
		if got := a.part(fraction); got.big().Cmp(want) != 0 || a.less(got) {
			t.Fatalf("%s × %d ÷ 2⁶⁴ = %s", a, fraction, got)
		}
		if a.less(b) != (a.big().Cmp(b.big()) < 0) {
			t.Fatalf("%s < %s", a, b)
		}
		if !a.less(b) && a.minus(b).big().Cmp(want.Sub(a.big(), b.big())) != 0 {
			t.Fatalf("%s - %s", a, b)
		}
		text, _ := a.MarshalText()
		bytes := a.Bytes()
		var read Amount
		if err := read.UnmarshalText(text); err != nil || read != a || AmountOfBytes(&bytes) != a || string(text) != a.big().String() {
			t.Fatalf("%s is read as %s (%v)", text, read, err)
		}
		nonce := Hash{}
		binary.BigEndian.PutUint64(nonce[:], fraction)
		parts, n := Split(nonce, a)
		all := Amount{}
		for _, p := range parts[:n] {
			if all, err = all.Plus(p); err != nil {
				t.Fatal(err)
			}
		}
		if n < MinParts || n > MaxParts || all != a {
			t.Fatalf("%s is split into %v", a, parts[:n])
		}
	})
}

func TestAmountsThatAreRefused(t *testing.T) {
	for _, text := range []string{"", "-1", "-0", "+1", "01", "00", "1.0", "1e3", " 1", "1 ", "0x1", "١", "340282366920938463463374607431768211456", "9999999999999999999999999999999999999999"} {
		var a Amount
		if err := a.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %s", text, a)
		}
	}
	for _, text := range []string{"", "-0", "+1", "01", "1.0", "9223372036854775808"} {
		var b Balance
		if err := b.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, b)
		}
	}
	for _, text := range []string{"0", "340282366920938463463374607431768211455"} {
		var a Amount
		if err := a.UnmarshalText([]byte(text)); err != nil || a.String() != text {
			t.Errorf("%s: %s (%v)", text, a, err)
		}
	}
}

// TestTotals: the sum of the venue's accounts is signed, and the totals are not bounded by 64 bits.
func TestTotals(t *testing.T) {
	good := Totals{Leaves: 8, Total: Amount{1, 5}, Deficits: Amount{1, 0}, Venue: Venue{Insurance: -3, Fees: 4, Clearing: 1, Rounding: -1}, NetPaidIn: 6}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Totals){func(s *Totals) { s.NetPaidIn-- }, func(s *Totals) { s.Total.Hi++ }, func(s *Totals) { s.Leaves = 0 }, func(s *Totals) { s.Leaves = 6 }, func(s *Totals) { s.Leaves = -8 }} {
		bad := good
		change(&bad)
		if bad.Check() == nil {
			t.Errorf("%+v adds up", bad)
		}
	}
}
