package columns

import (
	"encoding/hex"
	"fmt"
	"math"

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

type decoder struct {
	*model
	sequences []int64
	raw, rare stream
	limit     int // of len(buf)
	out       Decoded
}

// values decodes all values.
func (d *decoder) all() error {
	for i := range d.sequences {
		d.begin(i)
		d.out.Prev = append(d.out.Prev, -1)
		if err := d.oneRecord(i); err != nil {
			return &DamagedError{i, err}
		}
		d.out.Ends = append(d.out.Ends, len(d.buf))
	}
	return d.end()
}

func (d *decoder) oneRecord(i int) error {
	p := d.pieces[0]
	for {
		n, err := p.next.readUvarint()
		if err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		if n >= uint64(len(d.pieces)) {
			return errRange
		}
		p = d.pieces[n]
		d.beginRow(ref(len(d.values)))
		for j, c := range p.columns {
			if err := d.static(p.statics[j]); err != nil {
				return err
			}
			from := len(d.buf)
			r := d.next()
			if err := d.value(p, c, i, r); err != nil {
				return err
			}
			if len(d.buf) > d.limit {
				return errRange
			}
			d.values[r].span = spanOf(from, len(d.buf))
			d.put(c, r)
		}
		if err := d.static(p.statics[len(p.columns)]); err != nil {
			return err
		}
		d.endRow(p)
	}
}

func (d *decoder) static(b []byte) error {
	if len(b) > d.limit-len(d.buf) {
		return errRange
	}
	d.buf = append(d.buf, b...)
	return nil
}

// next adds a value of which nothing is known yet.
func (d *decoder) next() ref {
	d.values = append(d.values, value{})
	return ref(len(d.values) - 1)
}

// copy appends the text of an earlier value, and makes another value equal to it.
func (d *decoder) copy(r, to ref) error {
	v := &d.values[r]
	if r == 0 || v.kind == kindHash {
		return errRange
	}
	d.buf = append(d.buf, v.of(d.buf)...)
	d.values[to] = *v
	return nil
}

// value appends the text of the next value of a column, and sets all of the value r but its span.
func (d *decoder) value(p *piece, c *column, record int, r ref) error {
	op, err := c.streams[streamOps].readByte()
	if err != nil {
		return err
	}
	switch {
	case op >= opMinus:
		if int(op-opMinus) >= len(c.slots) {
			return errRange
		}
		return d.minus(d.slot(c.slots[op-opMinus]), r)
	case op >= opSlot:
		if int(op-opSlot) >= len(c.slots) {
			return errRange
		}
		return d.copy(d.slot(c.slots[op-opSlot]), r)
	case op >= opNumber:
		return d.number(p, c, op, r)
	case op >= opObject:
		return d.copy(d.member(d.object(p, int(op-opObject), c.hole), c.name), r)
	case op == opBefore:
		return d.copy(d.latest[c.id].value, r)
	case op == opHash:
		if d.out.Prev[record] >= 0 {
			return errRange
		}
		d.out.Prev[record] = len(d.buf)
		d.buf = append(d.buf, noHash...)
		d.values[r].kind = kindHash
		return nil
	case op == opEntry:
		return d.entry(c, r)
	}
	return d.literal(c, op, record, r)
}

// entry appends a text of the dictionary.
func (d *decoder) entry(c *column, r ref) error {
	n, err := c.streams[streamIndexes].readUvarint()
	if err != nil {
		return err
	}
	if n >= uint64(len(c.dict.entries)) {
		return errRange
	}
	return d.copy(c.dict.entries[n], r)
}

func (d *decoder) minus(r, to ref) error {
	w := &d.values[r]
	if r == 0 || w.kind != kindNumber || w.n == 0 {
		return errRange
	}
	b := w.of(d.buf)
	if b[0] == '-' {
		d.buf = append(d.buf, b[1:]...)
	} else {
		d.buf = append(append(d.buf, '-'), b...)
	}
	v := &d.values[to]
	v.kind, v.format, v.number = kindNumber, w.format, -w.number
	return nil
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
	v, ok := &d.values[r], false
	v.kind, v.number = kind, n
	if kind == kindTime {
		d.buf, ok = appendTime(d.buf, n)
	} else {
		if v.format, err = c.streams[streamFormats].readByte(); err != nil {
			return err
		}
		d.buf, ok = appendNumber(d.buf, n, v.format)
	}
	if !ok {
		return errRange
	}
	return nil
}

// literal appends the text of an operation that needs no other value.
func (d *decoder) literal(c *column, op byte, record int, r ref) error {
	indexes := &c.streams[streamIndexes]
	switch op {
	case opText:
		n, err := c.streams[streamTexts].readUvarint()
		if err != nil {
			return err
		}
		if n > uint64(d.limit-len(d.buf)) {
			return errRange
		}
		b, err := c.streams[streamTexts].take(int(n))
		if err != nil {
			return err
		}
		d.buf = append(d.buf, b...)
		if len(b) <= maxEntry {
			c.dict.entries = append(c.dict.entries, r)
		}
		return nil
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
		d.buf = hex.AppendEncode(d.buf, b)
		return nil
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
	d.buf, _ = decide.Stamp{Journal: d.journal, Sequence: sequence}.Derive(int(index)).AppendText(d.buf)
	return nil
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
	d.buf, _ = id.AppendText(d.buf)
	c.dict.entries = append(c.dict.entries, r)
	return nil
}

// count returns the number of values of all columns, or less if the streams are not what they should be.
func (d *decoder) count() (n int) {
	for _, c := range d.columns {
		n += max(len(c.streams[streamOps].b), min(c.streams[streamOps].repeated, d.limit))
	}
	return min(n, d.limit)
}

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
