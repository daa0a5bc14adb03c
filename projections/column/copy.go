package column

import (
	"encoding/binary"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Rows encodes rows in the binary format of COPY, straight from the values: no text, no parameter arrays, no plan. A
// row is begun with the number of its columns, and its fields follow in the order of the COPY statement's columns; the
// server refuses a row of another length.
type Rows struct {
	data []byte
	n    int
}

// What a binary COPY begins with: the signature, no flags, no extension. It ends with a row of -1 fields.
const copyHeader = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// Len returns how many rows there are.
func (r *Rows) Len() int { return r.n }

// Begin begins a row.
func (r *Rows) Begin(columns int) {
	if r.n == 0 {
		r.data = append(r.data[:0], copyHeader...)
	}
	r.n++
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(columns))
}

// Data returns what COPY is to be sent. It is good until Reset.
func (r *Rows) Data() []byte {
	return append(r.data, 0xff, 0xff)
}

// Reset takes all rows away, and keeps their memory for the next ones.
func (r *Rows) Reset() { r.data, r.n = r.data[:0], 0 }

// Null adds a field that is NULL.
func (r *Rows) Null() { r.data = append(r.data, 0xff, 0xff, 0xff, 0xff) }

func (r *Rows) size(n int) { r.data = binary.BigEndian.AppendUint32(r.data, uint32(n)) }

// Text adds a text.
func (r *Rows) Text(s string) {
	s = clean(s)
	r.size(len(s))
	r.data = append(r.data, s...)
}

// NullText adds a text, NULL for "".
func (r *Rows) NullText(s string) {
	if s == "" {
		r.Null()
		return
	}
	r.Text(s)
}

// ID adds a uuid, NULL for the zero ID.
func (r *Rows) ID(id scalar.ID) {
	if id.IsZero() {
		r.Null()
		return
	}
	r.size(len(id))
	r.data = append(r.data, id[:]...)
}

// epoch is where a timestamptz counts its microseconds from: the beginning of the year 2000.
const epoch = scalar.Time(946_684_800_000_000)

// Time adds a timestamptz, NULL for the zero Time.
func (r *Rows) Time(t scalar.Time) {
	if t.IsZero() {
		r.Null()
		return
	}
	r.Int(int64(min(max(t, earliest), latest) - epoch))
}

// Int adds a bigint.
func (r *Rows) Int(n int64) {
	r.size(8)
	r.data = binary.BigEndian.AppendUint64(r.data, uint64(n))
}

// Small adds an integer. Values beyond it stop at its limits.
func (r *Rows) Small(n int64) {
	r.size(4)
	r.data = binary.BigEndian.AppendUint32(r.data, uint32(small(n)))
}

// Bool adds a boolean.
func (r *Rows) Bool(b bool) {
	r.size(1)
	if b {
		r.data = append(r.data, 1)
		return
	}
	r.data = append(r.data, 0)
}

// Bytes adds a bytea.
func (r *Rows) Bytes(b []byte) {
	r.size(len(b))
	r.data = append(r.data, b...)
}

// Words adds a text[] of one dimension.
func (r *Rows) Words(words []string) {
	array(r, 25, words, r.Text)
}

// IDs adds a uuid[] of one dimension.
func (r *Rows) IDs(ids []scalar.ID) {
	array(r, 2950, ids, r.ID)
}

// array adds an array of one dimension, whose elements have the type with the oid.
func array[T any](r *Rows, oid int, elements []T, add func(T)) {
	start := len(r.data)
	r.size(0) // set below
	dimensions := min(len(elements), 1)
	for _, n := range []int{dimensions, 0, oid} {
		r.size(n)
	}
	if dimensions == 1 {
		r.size(len(elements))
		r.size(1) // the first index
		for _, e := range elements {
			add(e)
		}
	}
	binary.BigEndian.PutUint32(r.data[start:], uint32(len(r.data)-start-4))
}

// Decimal adds a numeric with the decimals that the number prints with.
func (r *Rows) Decimal(d fixed.Decimal) { r.numeric(d.Coef, int(d.Scale)) }

// NullDecimal adds a numeric, NULL for zero.
func (r *Rows) NullDecimal(d fixed.Decimal) {
	if d.IsZero() {
		r.Null()
		return
	}
	r.Decimal(d)
}

// Money adds a numeric with the decimals that the amount prints with.
func (r *Rows) Money(m fixed.Money) { r.Decimal(m.Decimal()) }

// numeric adds coef × 10^-scale: its digits in base 10,000 around the decimal point, and how many decimals to show.
// The server drops digits that are zero at either end.
func (r *Rows) numeric(coef int64, scale int) {
	sign, left := uint16(0), uint64(coef)
	if coef < 0 {
		sign, left = 0x4000, uint64(-coef)
	}
	unit := uint64(fixed.Pow10(scale))
	whole, part := left/unit, left%unit
	var digits [10]uint16 // 5 on either side hold 19 digits and more
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
