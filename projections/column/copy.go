package column

import (
	"encoding/binary"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Rows encodes rows in the binary format of COPY, directly from the values, without text, parameter arrays or a plan.
// Begin starts a row with its number of columns. The fields must follow in the column order of the COPY statement. The
// server rejects a row with another number of fields.
type Rows struct {
	data []byte
	n    int
}

// copyHeader starts a binary COPY: the signature, no flags, no extension. A row with -1 fields ends it.
const copyHeader = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Len returns the number of rows.
func (r *Rows) Len() int { return r.n }

// Begin starts a row.
func (r *Rows) Begin(columns int) {
	if r.n == 0 {
		r.data = append(r.data[:0], copyHeader...)
	}
	r.n++
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(columns))
}

// Data returns the bytes to send. They are valid until Reset.
func (r *Rows) Data() []byte {
	return append(r.data, 0xff, 0xff)
}

// Reset removes all rows and keeps the buffer.
func (r *Rows) Reset() { r.data, r.n = r.data[:0], 0 }

// Null appends a NULL field.
func (r *Rows) Null() { r.data = append(r.data, 0xff, 0xff, 0xff, 0xff) }

func (r *Rows) size(n int) { r.data = binary.BigEndian.AppendUint32(r.data, uint32(n)) }

// Text appends a text.
func (r *Rows) Text(s string) {
	s = clean(s)
	r.size(len(s))
	r.data = append(r.data, s...)
}

// NullText appends a text, or NULL for "".
func (r *Rows) NullText(s string) {
	if s == "" {
		r.Null()
		return
	}
	r.Text(s)
}

// ID appends a uuid, or NULL for the zero ID.
func (r *Rows) ID(id scalar.ID) {
	if id.IsZero() {
		r.Null()
		return
	}
	r.size(len(id))
	r.data = append(r.data, id[:]...)
}

// epoch is the origin of timestamptz: 2000-01-01.
const epoch = scalar.Time(946_684_800_000_000)

// Time appends a timestamptz, or NULL for the zero Time.
func (r *Rows) Time(t scalar.Time) {
	if t.IsZero() {
		r.Null()
		return
	}
	r.Int(int64(min(max(t, earliest), latest) - epoch))
}

// Int appends a bigint.
func (r *Rows) Int(n int64) {
	r.size(8)
	r.data = binary.BigEndian.AppendUint64(r.data, uint64(n))
}

// Small appends an integer. Values out of range are clamped.
func (r *Rows) Small(n int64) {
	r.size(4)
	r.data = binary.BigEndian.AppendUint32(r.data, uint32(small(n)))
}

// Bool appends a boolean.
func (r *Rows) Bool(b bool) {
	r.size(1)
	if b {
		r.data = append(r.data, 1)
		return
	}
	r.data = append(r.data, 0)
}

// Bytes appends a bytea.
func (r *Rows) Bytes(b []byte) {
	r.size(len(b))
	r.data = append(r.data, b...)
}

// Words appends a one-dimensional text[].
func (r *Rows) Words(words []string) {
	array(r, 25, words, r.Text)
}

// IDs appends a one-dimensional uuid[].
func (r *Rows) IDs(ids []scalar.ID) {
	array(r, 2950, ids, r.ID)
}

// array appends a one-dimensional array. oid is the type of the elements.
func array[T any](r *Rows, oid int, elements []T, add func(T)) {
	start := len(r.data)
	r.size(0) // set below
	dimensions := min(len(elements), 1)
	for _, n := range []int{dimensions, 0, oid} {
		r.size(n)
	}
	if dimensions == 1 {
		r.size(len(elements))
		r.size(1) // the lower bound
		for _, e := range elements {
			add(e)
		}
	}
	binary.BigEndian.PutUint32(r.data[start:], uint32(len(r.data)-start-4))
}

// Decimal appends a numeric with the printed decimals of the number.
func (r *Rows) Decimal(d fixed.Decimal) { r.numeric(d.Coef, int(d.Scale)) }

// NullDecimal appends a numeric, or NULL for zero.
func (r *Rows) NullDecimal(d fixed.Decimal) {
	if d.IsZero() {
		r.Null()
		return
	}
	r.Decimal(d)
}

// Money appends a numeric with the printed decimals of the amount.
func (r *Rows) Money(m fixed.Money) { r.Decimal(m.Decimal()) }

// Whole appends a numeric without decimals, given as decimal digits that a minus sign may precede.
func (r *Rows) Whole(digits string) {
	sign := uint16(0)
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = 0x4000, rest
	}
	n := (len(digits) + 3) / 4
	r.size(8 + 2*n)
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(n))
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(n-1)) // the weight of the first digit
	r.data = binary.BigEndian.AppendUint16(r.data, sign)
	r.data = binary.BigEndian.AppendUint16(r.data, 0)
	for from, to := 0, len(digits)-4*(n-1); from < len(digits); from, to = to, to+4 {
		digit := uint16(0)
		for _, c := range []byte(digits[from:to]) {
			digit = 10*digit + uint16(c-'0')
		}
		r.data = binary.BigEndian.AppendUint16(r.data, digit)
	}
}

// numeric appends coef × 10^-scale: its base-10,000 digits around the decimal point, and the number of displayed
// decimals. The server removes zero digits at both ends.
func (r *Rows) numeric(coef int64, scale int) {
	sign, left := uint16(0), uint64(coef)
	if coef < 0 {
		sign, left = 0x4000, uint64(-coef)
	}
	unit := uint64(fixed.Pow10(scale))
	whole, part := left/unit, left%unit
	var digits [10]uint16 // 5 digits on either side hold at least 19 decimal digits
	first := 5
	for ; whole > 0; whole /= 10_000 {
		first--
		digits[first] = uint16(whole % 10_000)
	}
	before, last := 5-first, 5
	for decimals := scale; decimals > 0 && part > 0; decimals -= 4 {
		if decimals >= 4 {
			below := uint64(fixed.Pow10(decimals - 4))
			digits[last], part = uint16(part/below), part%below
		} else {
			digits[last], part = uint16(part*uint64(fixed.Pow10(4-decimals))), 0
		}
		last++
	}
	all := digits[first:last]
	r.size(8 + 2*len(all))
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(len(all)))
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(int16(before-1)))
	r.data = binary.BigEndian.AppendUint16(r.data, sign)
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(scale))
	for _, d := range all {
		r.data = binary.BigEndian.AppendUint16(r.data, d)
	}
}
