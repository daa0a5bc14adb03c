package columns

import (
	"bytes"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Value is a value to encode.
type Value struct {
	Bytes []byte
	// Sequence is that of a valid record, and negative for others. Derived ids are recognized by it.
	Sequence int64
	// Prev is the hexadecimal hash of the record before. Where the value repeats it, it is left out. It may be empty.
	Prev string
}

// encoder encodes the values of a chunk in three passes: it finds the templates, counts which operations would give the values of
// a sample, and then chooses one for each value. split.go has the first pass, and count.go the second.
type encoder struct {
	*model
	in    []Value
	rows  []uint16 // the pieces of the values, each followed by 0
	turns turns

	// Of the first pass.
	forms     []form // by piece
	templates map[string]int
	names     map[string]int
	dicts     map[int]*dictionary
	lexer     lexer
	holes     []span // of the current piece
	counts    []int  // rows of each piece

	// Of the second pass.
	stats  []stats  // by column
	recent []sight  // the columns that have a value in the current record, with the last one
	joins  []uint32 // for each row whose piece has joined anchors, in order: their object

	// Of the third pass.
	ids       idIndex
	row       []uint16 // the pieces of the current value
	read      []bool   // by object: an operation has read a member
	raw, rare stream   // of UUIDs
}

// emit is the third pass. It writes the operation of each value.
func (e *encoder) emit() {
	e.start()
	e.objects.forget()
	e.objects.noted = true
	e.read = make([]bool, len(e.objects.heads))
	at, joins, left := ref(1), e.joins, e.rows
	for record := range e.in {
		e.turns.value()
		e.begin(record)
		e.row, left = cutRow(left)
		before := e.pieces[0]
		for _, n := range e.row {
			before.next.uvarint(uint64(n))
			p := e.pieces[n]
			before = p
			e.beginRow(at)
			if len(p.joined) > 0 {
				e.joined, joins = joins[0], joins[1:]
			}
			for _, c := range p.columns {
				e.emitValue(p, c, at)
				e.put(c, at)
				at++
			}
			e.endRow(p)
		}
		before.next.uvarint(0)
	}
}

// cutRow returns the pieces of the next value, and those of the values after it.
func cutRow(rows []uint16) (row, left []uint16) {
	n := slices.Index(rows, 0)
	return rows[:n], rows[n+1:]
}

// emitValue writes the operation of a value.
func (e *encoder) emitValue(p *piece, c *column, r ref) {
	v := &e.values[r]
	ops := &c.streams[streamOps]
	if v.kind == kindHash {
		ops.byte(opHash)
		return
	}
	for _, op := range e.stats[c.id].order {
		if e.gives(p, c, op, v) {
			if op >= opObject && op < opNumber {
				e.read[e.object(p, int(op-opObject), c.hole)] = true
			}
			ops.byte(op)
			return
		}
	}
	if v.kind == kindNumber || v.kind == kindTime {
		e.emitNumber(p, c, v)
		return
	}
	b := v.of(e.buf)
	if c.quoted {
		if id, ok := parseUUID(b); ok {
			e.emitUUID(c, id, b, r)
			return
		}
	}
	if e.emitEntry(c, b) {
		return
	}
	if c.quoted && isHex(b) {
		ops.byte(opHex)
		c.streams[streamIndexes].uvarint(uint64(len(b) / 2))
		e.raw.b = appendUnhex(e.raw.b, b)
		return
	}
	ops.byte(opText)
	c.streams[streamTexts].uvarint(uint64(len(b)))
	c.streams[streamTexts].b = append(c.streams[streamTexts].b, b...)
	if len(b) <= maxEntry {
		e.addEntry(c.dict, b, r)
	}
}

// emitEntry writes the operation of a text that is in the dictionary, or reports false.
func (e *encoder) emitEntry(c *column, b []byte) bool {
	x := &c.dict.index
	hash := hashOf(e.objects.seed, b)
	for i := x.start(hash); x.slots[i].number != 0; i = x.after(i) {
		n := x.slots[i].number - 1
		if x.slots[i].hash == hash && bytes.Equal(e.values[c.dict.entries[n]].of(e.buf), b) {
			c.streams[streamOps].byte(opEntry)
			c.streams[streamIndexes].uvarint(uint64(n))
			return true
		}
	}
	return false
}

func (e *encoder) addEntry(d *dictionary, b []byte, r ref) {
	d.entries = append(d.entries, r)
	d.index.add(hashOf(e.objects.seed, b), uint32(len(d.entries)))
}

// prune leaves out the updates of objects that no operation has read. It does not change what the operations give.
func (e *encoder) prune() {
	for _, p := range e.pieces {
		clear(p.updates)
	}
	mark := func(piece int, anchors uint8) {
		for a := range e.pieces[piece].updates {
			if anchors&(1<<a) != 0 {
				e.pieces[piece].updates[a] = true
			}
		}
	}
	for o, read := range e.read {
		if !read {
			continue
		}
		head := e.objects.heads[o]
		if head >= inTable {
			for piece, anchors := range e.objects.tables[head-inTable].by {
				mark(piece, anchors)
			}
			continue
		}
		for ; head != 0; head = e.objects.changes[head].next {
			mark(int(e.objects.changes[head].piece), uint8(e.objects.changes[head].by))
		}
	}
}

// gives reports whether an operation that takes no argument gives the value.
func (e *encoder) gives(p *piece, c *column, op byte, v *value) bool {
	switch {
	case op == opBefore:
		return e.same(e.latest[c.id].value, v)
	case op >= opMinus:
		w := &e.values[e.slot(c.slots[op-opMinus])]
		return w.n > 0 && w.kind == kindNumber && w.number == -v.number && isMinus(w.of(e.buf), v.of(e.buf))
	case op >= opSlot:
		return e.same(e.slot(c.slots[op-opSlot]), v)
	default:
		return e.same(e.member(e.object(p, int(op-opObject), c.hole), c.name), v)
	}
}

// same reports whether an operation that repeats an earlier value gives a value.
func (e *encoder) same(r ref, v *value) bool {
	w := &e.values[r]
	return w.print == v.print && w.n == v.n && r != 0 && w.kind != kindHash && string(w.of(e.buf)) == string(v.of(e.buf))
}

// isMinus reports whether one text is the other with a minus before it.
func isMinus(a, b []byte) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(b) == len(a)+1 && b[0] == '-' && string(b[1:]) == string(a)
}

func (e *encoder) emitNumber(p *piece, c *column, v *value) {
	op, least, of := opNumber, int64(-1), 0
	if v.kind == kindTime {
		op = opTime
	}
	var difference int64
	for i, b := range c.bases {
		n := v.number - e.baseOf(p, c, b, v.kind)
		size := n
		if size < 0 {
			size = -size
		}
		if size >= 0 && (least < 0 || size == 0 && least > 0) {
			least, of, difference = size, i, n
		}
	}
	if len(c.bases) == 0 {
		difference = v.number
	} else if b := c.bases[of]; b.kind == baseObject {
		e.read[e.object(p, b.of, c.hole)] = true
	}
	c.streams[streamOps].byte(op + byte(of))
	c.streams[streamNumbers].varint(difference)
	if v.kind == kindNumber {
		c.streams[streamFormats].byte(v.format)
	}
}

// emitUUID writes the operation of a UUID.
func (e *encoder) emitUUID(c *column, id scalar.ID, b []byte, r ref) {
	ops := &c.streams[streamOps]
	if id[6]>>4 == 8 {
		if from, ok := e.ids.find(e, id); ok {
			if current := e.in[e.record].Sequence; from.sequence == current {
				ops.byte(opOwn)
				c.streams[streamIndexes].varint(int64(from.index) - int64(e.last))
				e.last = from.index
			} else {
				ops.byte(opOther)
				c.streams[streamIndexes].uvarint(uint64(current - from.sequence))
				c.streams[streamIndexes].uvarint(uint64(from.index))
			}
			return
		}
	}
	if e.emitEntry(c, b) {
		return
	}
	if id[6]>>4 == 7 && id[8]>>6 == 2 {
		ops.byte(opUUID7)
		ms := int64(id[0])<<40 | int64(id[1])<<32 | int64(id[2])<<24 | int64(id[3])<<16 | int64(id[4])<<8 | int64(id[5])
		c.streams[streamNumbers].varint(ms - e.time/1000)
		e.raw.b = append(e.raw.b, id[6]<<4|id[8]>>2&0x0f, id[7])
		e.raw.b = append(e.raw.b, id[9:]...)
		e.rare.byte(id[8] & 3)
	} else {
		ops.byte(opUUID)
		e.raw.b = append(e.raw.b, id[:]...)
	}
	e.addEntry(c.dict, b, r)
}

// idIndex finds which record and event an id derives from.
type idIndex struct {
	known  map[scalar.ID]origin // the ids that values have
	record int                  // of own
	own    []scalar.ID          // the ids that derive from the record, as far as they were needed
}

type origin struct {
	sequence int64
	index    uint32
}

// maxDerived is the highest number of ids of one record that an encoder recognizes.
const maxDerived = 512

// find returns the origin of an id that derives from the current record, or that a value has which derives from an earlier one.
func (x *idIndex) find(e *encoder, id scalar.ID) (from origin, ok bool) {
	current := e.in[e.record].Sequence
	if current < 0 {
		return origin{}, false
	}
	if x.record != e.record {
		x.record, x.own = e.record, x.own[:0]
	}
	for i, own := range x.own {
		if own == id {
			return origin{current, uint32(i)}, true
		}
	}
	if from, ok = x.known[id]; ok {
		return from, true
	}
	for i := len(x.own); i < min(len(e.row), maxDerived); i++ {
		own := decide.Stamp{Journal: e.journal, Sequence: current}.Derive(i)
		x.own = append(x.own, own)
		if own == id {
			from = origin{current, uint32(i)}
			x.known[id] = from
			return from, true
		}
	}
	return origin{}, false
}
