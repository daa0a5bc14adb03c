package columns

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Decoded holds the values of a chunk.
type Decoded struct {
	Bytes []byte // all values, one after the other
	Ends  []int  // of each value, in Bytes
	// Prev is where each value has the hash of the record before it, in Bytes, or -1. 64 zeros take its place.
	Prev []int
}

// DamagedError says that the bytes of a chunk can't be decoded.
type DamagedError struct {
	Value int // number of the value in the chunk; -1 before the first
	Err   error
}

// Error names the value.
func (e *DamagedError) Error() string {
	if e.Value < 0 {
		return fmt.Sprintf("the chunk is damaged: %v", e.Err)
	}
	return fmt.Sprintf("the chunk is damaged at value %d: %v", e.Value, e.Err)
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Err }

const noHash = "0000000000000000000000000000000000000000000000000000000000000000"

// decoder decodes the values of a chunk. buf has slack more bytes than the values.
type decoder struct {
	*model
	sequences []int64
	raw, rare stream
	at        int // of the next byte in buf
	limit     int // of at
	out       Decoded
}

// slack is the length up to which a text is copied by moving slack bytes. A call would take longer, because its branches depend on
// the length. The bytes after the text are overwritten by the next one, so the buffer needs slack bytes at the end.
const slack = 48

// move copies slack bytes.
func move(to, from []byte) {
	t, f := (*[slack]byte)(to), (*[slack]byte)(from)
	*(*[16]byte)(t[:16]) = *(*[16]byte)(f[:16])
	*(*[16]byte)(t[16:32]) = *(*[16]byte)(f[16:32])
	*(*[16]byte)(t[32:]) = *(*[16]byte)(f[32:])
}

// all decodes all values.
func (d *decoder) all() error {
	for i := range d.sequences {
		d.begin(i)
		d.out.Prev = append(d.out.Prev, -1)
		if err := d.oneRecord(i); err != nil {
			return &DamagedError{i, err}
		}
		d.out.Ends = append(d.out.Ends, d.at)
	}
	return d.end()
}

func (d *decoder) oneRecord(i int) error {
	p, from := d.pieces[0], d.at
	for rows := 0; ; rows++ {
		n, err := p.next.readUvarint()
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		// Only an empty value has a row without text. Other rows without text could go on without an end.
		if n >= uint64(len(d.pieces)) || rows > d.at-from {
			return errRange
		}
		p = d.pieces[n]
		if err := d.row(p, i); err != nil {
			return err
		}
	}
}

// row decodes a piece.
func (d *decoder) row(p *piece, record int) error {
	if len(d.values)+len(p.columns) > 1+d.limit+len(d.sequences) { // each value has at least one byte of the text
		return errRange
	}
	r := ref(len(d.values))
	d.beginRow(r)
	d.grow(len(p.columns))
	for j, c := range p.columns {
		if err := d.static(p.statics[j]); err != nil {
			return err
		}
		from := d.at
		earlier, err := d.value(p, c, record, r)
		if err != nil {
			return err
		}
		v := &d.values[r]
		if earlier != 0 {
			if err := d.copy(earlier, v); err != nil {
				return err
			}
		}
		v.span = spanOf(from, d.at)
		d.put(c, r)
		r++
	}
	if err := d.static(p.statics[len(p.columns)]); err != nil {
		return err
	}
	d.endRow(p)
	return nil
}

// grow adds values of which nothing is known yet.
func (d *decoder) grow(n int) {
	from := len(d.values)
	d.values = slices.Grow(d.values, n)[:from+n]
	clear(d.values[from:])
}

func (d *decoder) static(b []byte) error {
	n := len(b)
	if n > d.limit-d.at {
		return errRange
	}
	if n <= slack && cap(b) >= slack {
		move(d.buf[d.at:], b[:slack])
	} else {
		copy(d.buf[d.at:], b)
	}
	d.at += n
	return nil
}

// copy writes the text of an earlier value, and makes another value equal to it.
func (d *decoder) copy(r ref, to *value) error {
	v := &d.values[r]
	n := int(v.n)
	if v.kind == kindHash || n > d.limit-d.at {
		return errRange
	}
	if n <= slack {
		move(d.buf[d.at:], d.buf[v.off:])
	} else {
		copy(d.buf[d.at:], v.of(d.buf))
	}
	d.at += n
	*to = *v
	return nil
}

// free returns the rest of the buffer, empty. Text that is appended to it and fits is written when it was passed to wrote.
func (d *decoder) free() []byte { return d.buf[d.at:d.at] }

// wrote takes what was appended to free.
func (d *decoder) wrote(text []byte) error {
	if len(text) > d.limit-d.at {
		return errRange
	}
	d.at += len(text)
	return nil
}

// value decodes the next value of a column, which is the value r. It returns an earlier value if it is equal to that. Otherwise it
// writes the text, and sets all of the value but its span.
func (d *decoder) value(p *piece, c *column, record int, r ref) (earlier ref, err error) {
	op, err := c.streams[streamOps].readByte()
	if err != nil {
		return 0, err
	}
	switch {
	case op >= opMinus:
		if int(op-opMinus) >= len(c.slots) {
			return 0, errRange
		}
		return 0, d.minus(d.slot(c.slots[op-opMinus]), r)
	case op >= opSlot:
		if int(op-opSlot) >= len(c.slots) {
			return 0, errRange
		}
		earlier = d.slot(c.slots[op-opSlot])
	case op >= opNumber:
		return 0, d.number(p, c, op, r)
	case op >= opObject:
		earlier = d.member(d.object(p, int(op-opObject), c.hole), c.name)
	case op == opBefore:
		earlier = d.latest[c.id].value
	case op == opEntry:
		n, err := c.streams[streamIndexes].readUvarint()
		if err != nil {
			return 0, err
		}
		if n >= uint64(len(c.dict.entries)) {
			return 0, errRange
		}
		earlier = c.dict.entries[n]
	default:
		return 0, d.literal(c, op, record, r)
	}
	if earlier == 0 {
		return 0, errRange
	}
	return earlier, nil
}

func (d *decoder) minus(r, to ref) error {
	w := &d.values[r]
	if r == 0 || w.kind != kindNumber || w.n == 0 {
		return errRange
	}
	b, text := w.of(d.buf), d.free()
	if b[0] == '-' {
		text = append(text, b[1:]...)
	} else {
		text = append(append(text, '-'), b...)
	}
	v := &d.values[to]
	v.kind, v.format, v.number = kindNumber, w.format, -w.number
	return d.wrote(text)
}

func (d *decoder) number(p *piece, c *column, op byte, r ref) error {
	n, err := c.streams[streamNumbers].readVarint()
	if err != nil {
		return err
	}
	kind, which := kindNumber, int(op-opNumber)
	if op >= opTime {
		kind, which = kindTime, int(op-opTime)
	}
	if which < len(c.bases) {
		n += d.baseOf(p, c, c.bases[which], kind)
	} else if which > 0 {
		return errRange
	}
	v, text, ok := &d.values[r], d.free(), false
	v.kind, v.number = kind, n
	if kind == kindTime {
		text, ok = appendTime(text, n)
	} else {
		if v.format, err = c.streams[streamFormats].readByte(); err != nil {
			return err
		}
		text, ok = appendNumber(text, n, v.format)
	}
	if !ok {
		return errRange
	}
	return d.wrote(text)
}

// literal writes the text of an operation that needs no other value.
func (d *decoder) literal(c *column, op byte, record int, r ref) error {
	indexes := &c.streams[streamIndexes]
	switch op {
	case opHash:
		if d.out.Prev[record] >= 0 {
			return errRange
		}
		d.out.Prev[record] = d.at
		d.values[r].kind = kindHash
		return d.wrote(append(d.free(), noHash...))
	case opText:
		n, err := c.streams[streamTexts].readUvarint()
		if err != nil {
			return err
		}
		if n > uint64(d.limit-d.at) {
			return errRange
		}
		b, err := c.streams[streamTexts].take(int(n))
		if err != nil {
			return err
		}
		if len(b) <= maxEntry {
			c.dict.entries = append(c.dict.entries, r)
		}
		return d.wrote(append(d.free(), b...))
	case opHex:
		n, err := indexes.readUvarint()
		if err != nil {
			return err
		}
		if n > 256 {
			return errRange
		}
		b, err := d.raw.take(int(n))
		if err != nil {
			return err
		}
		return d.wrote(hex.AppendEncode(d.free(), b))
	case opOwn, opOther:
		return d.derived(indexes, op, record)
	case opUUID, opUUID7:
		return d.uuid(c, op, r)
	}
	return errRange
}

func (d *decoder) derived(indexes *stream, op byte, record int) error {
	sequence, index := d.sequences[record], int64(0)
	if op == opOwn {
		n, err := indexes.readVarint()
		if err != nil {
			return err
		}
		index = int64(d.last) + n
		if index < 0 || index > math.MaxUint32 {
			return errRange
		}
		d.last = uint32(index)
	} else {
		n, err := indexes.readUvarint()
		if err != nil {
			return err
		}
		i, err := indexes.readUvarint()
		if err != nil {
			return err
		}
		if n > math.MaxInt64 || i > math.MaxUint32 {
			return errRange
		}
		sequence, index = sequence-int64(n), int64(i)
	}
	text, _ := decide.Stamp{Journal: d.journal, Sequence: sequence}.Derive(int(index)).AppendText(d.free())
	return d.wrote(text)
}

func (d *decoder) uuid(c *column, op byte, r ref) error {
	var id scalar.ID
	if op == opUUID {
		b, err := d.raw.take(16)
		if err != nil {
			return err
		}
		copy(id[:], b)
	} else {
		n, err := c.streams[streamNumbers].readVarint()
		if err != nil {
			return err
		}
		b, err := d.raw.take(9)
		if err != nil {
			return err
		}
		low, err := d.rare.readByte()
		if err != nil {
			return err
		}
		ms := uint64(n + d.time/1000)
		if low > 3 || ms >= 1<<48 {
			return errRange
		}
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
		id[6], id[7] = 0x70|b[0]>>4, b[1]
		id[8] = 0x80 | b[0]&0x0f<<2 | low
		copy(id[9:], b[2:])
	}
	c.dict.entries = append(c.dict.entries, r)
	text, _ := id.AppendText(d.free())
	return d.wrote(text)
}

// count returns the number of values of all columns, or less if the streams are not what they should be, or if there are more values
// than the text of records has.
func (d *decoder) count() (n int) {
	for _, c := range d.columns {
		n += max(len(c.streams[streamOps].b), min(c.streams[streamOps].repeated, d.limit))
	}
	return min(n, d.limit/leastPerValue)
}

// leastPerValue is the number of bytes of text per value for which memory is allocated ahead.
const leastPerValue = 4

// end checks that nothing is left.
func (d *decoder) end() error {
	left := !d.raw.done() || !d.rare.done()
	for _, p := range d.pieces {
		left = left || !p.next.done()
	}
	for _, c := range d.columns {
		for i := range c.streams {
			left = left || !c.streams[i].done()
		}
	}
	if left {
		return &DamagedError{-1, errLeft}
	}
	return nil
}
