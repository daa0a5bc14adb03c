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
	object uint32 // that it identifies, in model.objects, if that was looked for
	number int64  // in 10⁻⁸, or microseconds
}

// ref is the index of a value in model.values. 0 is none.
type ref uint32

// piece is a template: static text with holes in it.
type piece struct {
	statics [][]byte
	columns []*column // one for each hole
	anchors []int     // holes whose values identify an object
	joined  []int     // anchors that identify one together; may be empty
	updates []bool    // for each anchor, whether the row changes the object that it identifies
	highest int       // of the names of its columns
	next    stream    // the pieces that came after it
	number  int       // in model.pieces, only for encoding
}

// column is a hole of a piece, with the values that it had. Its first fields are those that each value needs, so that they share a
// cache line.
type column struct {
	now     ref // last value
	record  int // in which it was
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

// entity holds the last members of the objects that a text identifies.
type entity struct {
	last    []ref // by name
	read    bool  // only for encoding
	writers []int // pieces and anchors that have changed it, only for encoding
}

// dictionary numbers texts in the order of their first appearance. The columns of members with the same name share one.
type dictionary struct {
	entries []ref
	index   map[string]int // only for encoding
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
	names   int
	objects []*entity         // 0 is none
	keys    map[string]uint32 // of the objects
	record  int
	time    int64                                 // the first time in the record, in microseconds
	last    uint32                                // index of the last id derived from the record
	row     []ref                                 // the values of the current piece
	wrote   func(o *entity, p *piece, anchor int) // notes who changes an object; only for encoding
	key     []byte
}

func newModel(journal scalar.ID) *model {
	raw := &piece{statics: [][]byte{nil, nil}, number: 1}
	m := &model{journal: journal, values: make([]value, 1, 1<<12), objects: make([]*entity, 1), keys: make(map[string]uint32)}
	m.names = 1
	m.pieces = []*piece{{}, raw} // piece 0 is the beginning and the end of a value
	m.addColumn(raw, 0, false, new(dictionary))
	return m
}

func (m *model) addColumn(p *piece, name int, quoted bool, d *dictionary) {
	c := &column{id: len(m.columns), hole: len(p.columns), name: name, quoted: quoted, record: -1, dict: d}
	p.columns = append(p.columns, c)
	p.highest = max(p.highest, name)
	m.columns = append(m.columns, c)
}

// object returns the object that an anchor of the current row identifies, or nil. Only the holes before the given one have
// values. With add, it is never nil.
func (m *model) object(p *piece, anchor, hole int, add bool) *entity {
	if anchor >= len(p.anchors) {
		return m.joinedObject(p, hole, add)
	}
	h := p.anchors[anchor]
	if h >= hole {
		return nil
	}
	v := &m.values[m.row[h]]
	if v.kind == kindHash {
		return nil
	}
	if v.object == 0 { // else it was found before, for this value or for one that this is a copy of
		v.object = m.find(v.of(m.buf), add)
	}
	return m.objects[v.object]
}

// find returns the number of the object with a key, or 0.
func (m *model) find(key []byte, add bool) uint32 {
	n, ok := m.keys[string(key)]
	if !ok && add {
		n = uint32(len(m.objects))
		m.objects = append(m.objects, new(entity))
		m.keys[string(key)] = n
	}
	return n
}

func (m *model) joinedObject(p *piece, hole int, add bool) *entity {
	m.key = m.key[:0]
	for _, h := range p.joined {
		if h >= hole || m.values[m.row[h]].kind == kindHash {
			return nil
		}
		m.key = append(append(m.key, m.values[m.row[h]].of(m.buf)...), 0)
	}
	if len(m.key) == 0 {
		return nil
	}
	return m.objects[m.find(m.key, add)]
}

// anchorsOf returns the number of anchors, with the joined one.
func (p *piece) anchorsOf() int {
	if len(p.joined) > 0 {
		return len(p.anchors) + 1
	}
	return len(p.anchors)
}

// member returns the last value of a name of an entity.
func (e *entity) member(name int) ref {
	if e == nil || name >= len(e.last) {
		return 0
	}
	return e.last[name]
}

// put makes a value that of a column in the current row.
func (m *model) put(c *column, r ref) {
	m.row = append(m.row, r)
	c.now, c.record = r, m.record
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
		e := m.object(p, a, len(p.columns), true)
		if e == nil {
			continue
		}
		if n := p.highest + 1 - len(e.last); n > 0 {
			e.last = append(e.last, make([]ref, n)...)
		}
		for i, c := range p.columns {
			e.last[c.name] = m.row[i]
		}
		if m.wrote != nil {
			m.wrote(e, p, a)
		}
	}
}

// slot returns the value of another column in the current record, or 0.
func (m *model) slot(column int) ref {
	c := m.columns[column]
	if c.record != m.record {
		return 0
	}
	return c.now
}

// baseOf returns the prediction for the next number of a column. A missing value counts as 0.
func (m *model) baseOf(p *piece, c *column, b base, kind byte) int64 {
	var r ref
	switch b.kind {
	case baseBefore:
		r = c.now
	case baseObject:
		r = m.object(p, b.of, c.hole, false).member(c.name)
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

// reset forgets the values, and keeps the templates and their choices.
func (m *model) reset() {
	m.values, m.record, m.objects, m.keys = m.values[:1], 0, m.objects[:1], make(map[string]uint32)
	for _, c := range m.columns {
		c.now, c.record = 0, -1
	}
}
