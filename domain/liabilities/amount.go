package liabilities

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"strconv"
	"strings"
)

// Amount is an unsigned number of 128 bits, in units of the smallest unit of the asset. In text it is a decimal number.
type Amount struct{ Hi, Lo uint64 }

// AmountOf returns a as an Amount.
func AmountOf(a uint64) Amount { return Amount{0, a} }

// ErrOverflow reports that a sum has more than 128 bits.
var ErrOverflow = errors.New("the sum overflows 128 bits")

// Plus returns a + b, or ErrOverflow.
func (a Amount) Plus(b Amount) (Amount, error) {
	lo, carry := bits.Add64(a.Lo, b.Lo, 0)
	hi, carry := bits.Add64(a.Hi, b.Hi, carry)
	if carry != 0 {
		return Amount{}, ErrOverflow
	}
	return Amount{hi, lo}, nil
}

// minus returns a − b, which must not be negative.
func (a Amount) minus(b Amount) Amount {
	lo, borrow := bits.Sub64(a.Lo, b.Lo, 0)
	return Amount{a.Hi - b.Hi - borrow, lo}
}

// less reports whether a < b.
func (a Amount) less(b Amount) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }

// part returns a × fraction ÷ 2⁶⁴, rounded down.
func (a Amount) part(fraction uint64) Amount {
	low, _ := bits.Mul64(a.Lo, fraction)
	hi, lo := bits.Mul64(a.Hi, fraction)
	lo, carry := bits.Add64(lo, low, 0)
	return Amount{hi + carry, lo}
}

// put writes the amount as 16 bytes, big-endian.
func (a Amount) put(to *[16]byte) {
	binary.BigEndian.PutUint64(to[:8], a.Hi)
	binary.BigEndian.PutUint64(to[8:], a.Lo)
}

// Bytes returns the amount as 16 bytes, big-endian.
func (a Amount) Bytes() (b [16]byte) {
	a.put(&b)
	return b
}

// AmountOfBytes reads what Bytes returns.
func AmountOfBytes(b *[16]byte) Amount {
	return Amount{binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])}
}

func (a Amount) big() *big.Int {
	b := a.Bytes()
	return new(big.Int).SetBytes(b[:])
}

// String returns the amount in decimal digits.
func (a Amount) String() string {
	if a.Hi == 0 {
		return strconv.FormatUint(a.Lo, 10)
	}
	return a.big().String()
}

// MarshalText returns the amount in decimal digits.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// maxAmountDigits is the number of digits of 2¹²⁸ − 1.
const maxAmountDigits = 39

// UnmarshalText reads what MarshalText returns, and nothing else.
func (a *Amount) UnmarshalText(text []byte) error {
	s := string(text)
	switch {
	case strings.HasPrefix(s, "-"):
		return fmt.Errorf("%.50q is negative", s)
	case s == "" || strings.Trim(s, "0123456789") != "" || s[0] == '0' && len(s) > 1:
		return fmt.Errorf("%.50q is no whole number", s)
	case len(s) > maxAmountDigits:
		return fmt.Errorf("%.50q… overflows 128 bits", s)
	}
	if lo, err := strconv.ParseUint(s, 10, 64); err == nil {
		*a = Amount{0, lo}
		return nil
	}
	n, _ := new(big.Int).SetString(s, 10)
	if n.BitLen() > 128 {
		return fmt.Errorf("%s overflows 128 bits", s)
	}
	var b [16]byte
	n.FillBytes(b[:])
	*a = AmountOfBytes(&b)
	return nil
}

// Balance is a signed amount of one of the venue's own accounts. In text it is a decimal number.
type Balance int64

// MarshalText returns the balance in decimal digits, after a minus sign if it is negative.
func (b Balance) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(b), 10), nil }

// UnmarshalText reads what MarshalText returns, and nothing else.
func (b *Balance) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != string(text) {
		return fmt.Errorf("%.50q is no whole number of 64 bits", text)
	}
	*b = Balance(n)
	return nil
}
