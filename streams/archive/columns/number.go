package columns

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// decimals is the number of decimals of a number's integer form.
const decimals = 8

// trimmed is the format of a number without trailing zeros after the point. Other formats are the number of decimals.
const trimmed = 0xff

// unit is 1 in a number's integer form.
const unit = 100_000_000

var powers = [...]int64{1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000}

// parseNumber returns a decimal number in units of 10⁻⁸, and the format in which appendNumber appends the same text.
func parseNumber(b []byte) (n int64, format byte, ok bool) {
	i, negative := 0, false
	if len(b) > 0 && b[0] == '-' {
		i, negative = 1, true
	}
	start, point := i, -1
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case '0' <= c && c <= '9':
			if n > math.MaxInt64/1000 {
				return 0, 0, false
			}
			n = n*10 + int64(c-'0')
		case c == '.' && point < 0 && i > start:
			point = i
		default:
			return 0, 0, false
		}
	}
	digits := len(b) - start
	scale := 0
	if point >= 0 {
		scale = len(b) - point - 1
		digits = point - start
	}
	if digits == 0 || digits > 1 && b[start] == '0' || point >= 0 && scale == 0 || scale > decimals || negative && n == 0 {
		return 0, 0, false
	}
	if n > math.MaxInt64/4/powers[decimals-scale] {
		return 0, 0, false
	}
	format = byte(scale)
	if scale == 0 || n%10 != 0 {
		format = trimmed
	}
	n *= powers[decimals-scale]
	if negative {
		n = -n
	}
	return n, format, true
}

// appendNumber appends the text of a number. It reports false if the number has no text in that format.
func appendNumber(b []byte, n int64, format byte) ([]byte, bool) {
	if n < 0 {
		if n == math.MinInt64 {
			return b, false
		}
		b, n = append(b, '-'), -n
	}
	whole, part := n/unit, uint64(n%unit)
	b = strconv.AppendInt(b, whole, 10)
	high, low := part/10_000, part%10_000
	digits := twoDigits(high/100) | twoDigits(high%100)<<16 | twoDigits(low/100)<<32 | twoDigits(low%100)<<48
	last := decimals - bits.LeadingZeros64(digits)/8 // the number of digits without the zeros at the end
	scale := int(format)
	if format == trimmed {
		scale = last
	}
	if scale > decimals || last > scale {
		return b, false
	}
	if scale == 0 {
		return b, true
	}
	b = binary.LittleEndian.AppendUint64(append(b, '.'), digits|0x3030303030303030)
	return b[:len(b)-decimals+scale], true
}

// twoDigits returns the two digits of a number below 100, the first one in the lowest byte.
func twoDigits(n uint64) uint64 { return n/10 | n%10<<8 }

// parseTime returns a timestamp in microseconds.
func parseTime(b []byte) (int64, bool) {
	if len(b) != len(scalar.TimeLayout) || b[4] != '-' || b[10] != 'T' || b[19] != '.' {
		return 0, false
	}
	var t scalar.Time
	if err := t.UnmarshalText(b); err != nil {
		return 0, false
	}
	var again [40]byte
	text, err := t.AppendText(again[:0])
	return int64(t), err == nil && string(text) == string(b)
}

// appendTime appends the text of a timestamp in microseconds.
func appendTime(b []byte, t int64) ([]byte, bool) {
	at := len(b)
	b, err := scalar.Time(t).AppendText(b)
	return b, err == nil && len(b)-at == len(scalar.TimeLayout)
}

// parseUUID returns a UUID in canonical lower-case form.
func parseUUID(b []byte) (id scalar.ID, ok bool) {
	if len(b) != 36 || b[8] != '-' {
		return id, false
	}
	if id.UnmarshalText(b) != nil {
		return id, false
	}
	for _, c := range b {
		if 'A' <= c && c <= 'F' {
			return id, false
		}
	}
	return id, true
}

// isHex reports whether a text consists of hexadecimal digits and has a length at which it is stored as bytes.
func isHex(b []byte) bool {
	if len(b) < 16 || len(b)%2 != 0 || len(b) > 512 {
		return false
	}
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
