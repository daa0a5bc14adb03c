package columns

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// The kinds of values.
const (
	kindText byte = iota
	kindNumber
	kindTime
	kindHash // the hash of the record before, which is not known while values are read
)

// value is the content of a hole.
type value struct {
	span
	kind   byte
	format byte   // of a number
	print  uint16 // a hash of the text, only for encoding
	object uint32 // that it identifies, in model.objects, if that was looked for
	number int64  // in 10⁻⁸, or microseconds
}

// ref is the index of a value in model.values. 0 is none.
type ref uint32

// piece is a template: static text with holes in it.
type piece struct {
	statics [][]byte
	columns []*column // one for each hole
	names   []int     // of the columns
	holes   []uint16  // a hash table of names: the last hole with a name, plus 1
	anchors []int     // holes whose values identify an object
	joined  []int     // anchors that identify one together; may be empty
	updates []bool    // for each anchor, whether the row changes the object that it identifies
	next    stream    // the pieces that came after it
	number  uint32    // in model.pieces
}

// column is a hole of a piece. Its first fields are those that each value needs, so that they share a cache line.
type column struct {
	streams [streamsPerColumn]stream

	id     int // in model.columns
	hole   int // in its piece
	name   int // of its member, in model.names
	quoted bool
	seat   int    // in encoder.recent, while it has a value in the current record
	slots  []int  // columns that it repeats values of the same record from
	bases  []base // of numbers and times
	dict   *dictionary
}

// latest is the last value of a column. It is apart from the column so that those of all columns fit into the processor's cache.
type latest struct {
	value  ref
	record int32 // in which it was
}

// The streams of a column.
const (
	streamOps     = iota
	streamIndexes // of dictionary entries and derived ids
	streamNumbers // differences from the base
	streamFormats
	streamTexts
	streamsPerColumn
)

// The operations that give a value.
const (
	opText  byte = iota // a new text
	opEntry             // of the dictionary
	opUUID
	opUUID7
	opHex
	opOwn    // an id derived from this record
	opOther  // an id derived from an earlier record
	opBefore // the value of the row before
	opHash   // the hash of the record before

	opObject byte = 16 // + anchor: the member of the same name of the last object with that anchor
	opNumber byte = 24 // + base
	opTime   byte = 28 // + base
	opSlot   byte = 32 // + slot: equal to another column
	opMinus  byte = 64 // + slot: the negative number of another column

	maxAnchors = 4
	maxBases   = 3
	maxSlots   = 24
)

// base is the prediction of a number: the sum of two values, each of them optional. The number is stored as the difference.
type base struct {
	kind byte // the form of the first
	of   int  // anchor or column
	plus int  // column + 1; 0 is none
}

const (
	baseZero   byte = iota
	baseBefore      // the row before
	baseObject      // the member of the same name of the last object with an anchor
	baseSlot        // another column in the same record
)

// dictionary numbers texts in the order of their first appearance. The columns of members with the same name share one.
type dictionary struct {
	entries []ref
	index   index // of entries plus 1, only for encoding
}

// maxEntry is the length of the longest text in a dictionary.
const maxEntry = 128

// model is the state that an encoder and a decoder have in common after the same values.
type model struct {
	buf     []byte
	journal scalar.ID
	values  []value
	pieces  []*piece
	columns []*column
	latest  []latest // by column
	names   int
	objects objects
	record  int
	time    int64  // the first time in the record, in microseconds
	last    uint32 // index of the last id derived from the record
	first   ref    // the value of the first hole of the current piece
	joined  uint32 // the object of the joined anchors of the current piece; unknownObject until it is looked for
	key     []byte
}

// unknownObject says that the object was not looked up.
const unknownObject = 1<<32 - 1

func newModel(journal scalar.ID) *model {
	raw := &piece{statics: [][]byte{nil, nil}, number: 1}
	m := &model{journal: journal, values: make([]value, 1), objects: newObjects()}
	m.names = 1
	m.pieces = []*piece{{}, raw} // piece 0 is the beginning and the end of a value
	m.addColumn(raw, 0, false, new(dictionary))
	raw.index()
	return m
}

func (m *model) addColumn(p *piece, name int, quoted bool, d *dictionary) {
	c := &column{id: len(m.columns), hole: len(p.columns), name: name, quoted: quoted, dict: d}
	p.columns = append(p.columns, c)
	m.columns = append(m.columns, c)
}

// index prepares holeOf, once all columns of the piece are known.
func (p *piece) index() {
	size := 2
	for size < 2*len(p.columns) {
		size *= 2
	}
	p.names, p.holes = make([]int, len(p.columns)), make([]uint16, size)
	for h, c := range p.columns {
		p.names[h] = c.name
		i := c.name & (size - 1)
		for p.holes[i] != 0 && p.names[p.holes[i]-1] != c.name {
			i = (i + 1) & (size - 1)
		}
		p.holes[i] = uint16(h + 1)
	}
}

// holeOf returns the last hole with a name, or -1.
func (p *piece) holeOf(name int) int {
	mask := len(p.holes) - 1
	for i := name & mask; ; i = (i + 1) & mask {
		h := int(p.holes[i]) - 1
		if h < 0 || p.names[h] == name {
			return h
		}
	}
}

// start makes all columns ones without a value, once all are known.
func (m *model) start() {
	m.latest = make([]latest, len(m.columns))
	for i := range m.latest {
		m.latest[i].record = -1
	}
}

// beginRow starts a piece. Its first value is first.
func (m *model) beginRow(first ref) { m.first, m.joined = first, unknownObject }

// object returns the object that an anchor of the current row identifies, or 0. Only the holes before the given one have values.
func (m *model) object(p *piece, anchor, hole int) uint32 {
	if anchor >= len(p.anchors) {
		return m.joinedObject(p, hole)
	}
	h := p.anchors[anchor]
	if h >= hole {
		return 0
	}
	return m.objectOf(&m.values[m.first+ref(h)])
}

// objectOf returns the object that the text of a value identifies, or 0.
func (m *model) objectOf(v *value) uint32 {
	if v.kind == kindHash {
		return 0
	}
	if v.object == 0 { // else it was found before, for this value or for one that this is a copy of
		v.object = m.objects.find(m.buf, v.span)
	}
	return v.object
}

func (m *model) joinedObject(p *piece, hole int) uint32 {
	for _, h := range p.joined {
		if h >= hole {
			return 0
		}
	}
	if m.joined == unknownObject {
		m.joined = m.findJoined(p)
	}
	return m.joined
}

func (m *model) findJoined(p *piece) uint32 {
	var j join
	for i, h := range p.joined {
		if j.parts[i] = m.objectOf(&m.values[m.first+ref(h)]); j.parts[i] == 0 {
			return 0
		}
	}
	if len(p.joined) == 0 {
		return 0
	}
	hash := m.objects.joins.hash(&j.parts)
	if n := m.objects.joins.find(hash, &j.parts); n != 0 {
		return n
	}
	m.key = m.key[:0]
	for _, h := range p.joined {
		m.key = append(append(m.key, m.values[m.first+ref(h)].of(m.buf)...), 0)
	}
	j.object = m.objects.lookup(m.buf, m.key, key{long: true})
	m.objects.joins.add(hash, j)
	return j.object
}

// anchorsOf returns the number of anchors, with the joined one.
func (p *piece) anchorsOf() int {
	if len(p.joined) > 0 {
		return len(p.anchors) + 1
	}
	return len(p.anchors)
}

// put makes a value the last one of a column.
func (m *model) put(c *column, r ref) {
	m.latest[c.id] = latest{r, int32(m.record)}
	if v := &m.values[r]; v.kind == kindTime && m.time == 0 {
		m.time = v.number
	}
}

// endRow makes the members of the current row those of the objects that it identifies.
func (m *model) endRow(p *piece) {
	for a, updates := range p.updates {
		if !updates {
			continue
		}
		if o := m.object(p, a, len(p.columns)); o != 0 {
			m.changed(o, p, a)
		}
	}
}

// slot returns the value of another column in the current record, or 0.
func (m *model) slot(column int) ref {
	l := m.latest[column]
	if l.record != int32(m.record) {
		return 0
	}
	return l.value
}

// baseOf returns the prediction for the next number of a column. A missing value counts as 0.
func (m *model) baseOf(p *piece, c *column, b base, kind byte) int64 {
	var r ref
	switch b.kind {
	case baseBefore:
		r = m.latest[c.id].value
	case baseObject:
		r = m.member(m.object(p, b.of, c.hole), c.name)
	case baseSlot:
		r = m.slot(b.of)
	}
	n := m.numberOf(r, kind)
	if b.plus > 0 {
		n += m.numberOf(m.slot(b.plus-1), kind)
	}
	return n
}

func (m *model) numberOf(r ref, kind byte) int64 {
	if v := &m.values[r]; r != 0 && v.kind == kind {
		return v.number
	}
	return 0
}

// begin starts the next record.
func (m *model) begin(record int) { m.record, m.time, m.last = record, 0, 0 }
