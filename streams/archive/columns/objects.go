package columns

import (
	"bytes"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"slices"
)

// objects numbers the objects that texts identify, from 1 on, and holds the last members of each. Most objects are changed by the
// rows of few pieces. For these it keeps the newest row of each piece, and for others the members by name.
type objects struct {
	seed    maphash.Seed
	texts   index
	keys    []key    // by object
	long    []byte   // the keys that are not texts of a value, one after the other
	joins   joins    // the objects that were found by several texts together
	heads   []uint32 // by object: its newest change, or inTable plus its table
	changes []change // 0 is none
	tables  []table
	noted   bool // tables keep which rows have changed them; only for encoding
}

// key is where the text that identifies an object is: in the values, or among the long keys.
type key struct {
	span
	long bool
}

// change is the newest row of a piece that has changed the members of an object. The changes of an object are a list, the newest
// first.
type change struct {
	piece uint32
	first ref    // the value of the first hole
	next  uint32 // the next older change of the object; 0 is none
	by    uint32 // the anchors that identified the object, as bits; only for encoding
}

const (
	// maxChanges is the length of the longest list of changes.
	maxChanges = 5
	inTable    = 1 << 31
	// maxLong is the length of all long keys together that a span can express.
	maxLong = math.MaxUint32
)

func newObjects() objects {
	return objects{seed: maphash.MakeSeed(), keys: make([]key, 1), heads: make([]uint32, 1), changes: make([]change, 1),
		joins: joins{seed: rand.Uint64(), all: make([]join, 1)}}
}

// forget removes the members of all objects. The objects keep their numbers.
func (o *objects) forget() {
	clear(o.heads)
	o.changes, o.tables = o.changes[:1], nil
}

// find returns the object that the text of a value identifies.
func (o *objects) find(buf []byte, at span) uint32 { return o.lookup(buf, at.of(buf), key{at, false}) }

// lookup returns the object with a key. If it is new, stored says where its key is. It returns 0 if the key does not fit.
func (o *objects) lookup(buf, text []byte, stored key) uint32 {
	hash := hashOf(o.seed, text)
	for i := o.texts.start(hash); ; i = o.texts.after(i) {
		s := o.texts.slots[i]
		if s.number == 0 {
			break
		}
		if s.hash != hash {
			continue
		}
		if k := o.keys[s.number]; int(k.n) == len(text) && bytes.Equal(k.of(o.source(buf, k)), text) {
			return s.number
		}
	}
	n := uint32(len(o.keys))
	if stored.long && len(o.long)+len(text) > maxLong {
		return 0 // only a crafted chunk has so many
	}
	if stored.long {
		stored.span = spanOf(len(o.long), len(o.long)+len(text))
		o.long = append(o.long, text...)
	}
	o.keys, o.heads = append(o.keys, stored), append(o.heads, 0)
	o.texts.add(hash, n)
	return n
}

func (o *objects) source(buf []byte, k key) []byte {
	if k.long {
		return o.long
	}
	return buf
}

// changed makes the members of the current row those of an object that an anchor identifies.
func (m *model) changed(object uint32, p *piece, anchor int) {
	o := &m.objects
	head := o.heads[object]
	if head >= inTable {
		o.tables[head-inTable].change(p, m.first)
		o.note(head-inTable, p.number, 1<<anchor)
		return
	}
	before, at, n := uint32(0), head, 0
	for ; at != 0 && o.changes[at].piece != p.number; n++ {
		before, at = at, o.changes[at].next
	}
	switch {
	case n == maxChanges:
		m.tabulate(object)
		o.tables[len(o.tables)-1].change(p, m.first)
		o.note(uint32(len(o.tables)-1), p.number, 1<<anchor)
		return
	case at == 0:
		at = uint32(len(o.changes))
		o.changes = append(o.changes, change{piece: p.number, next: head})
		o.heads[object] = at
	case before != 0:
		o.changes[before].next = o.changes[at].next
		o.changes[at].next = head
		o.heads[object] = at
	}
	c := &o.changes[at]
	c.first, c.by = m.first, c.by|1<<anchor
}

// tabulate makes a table of the changes of an object.
func (m *model) tabulate(object uint32) {
	o := &m.objects
	var list [maxChanges]change
	n := 0
	for at := o.heads[object]; at != 0; n++ {
		list[n] = o.changes[at]
		at = list[n].next
	}
	var t table
	for _, c := range slices.Backward(list[:n]) {
		t.change(m.pieces[c.piece], c.first)
	}
	o.heads[object] = inTable + uint32(len(o.tables))
	o.tables = append(o.tables, t)
	for _, c := range list[:n] {
		o.note(uint32(len(o.tables)-1), c.piece, uint8(c.by))
	}
}

// note adds anchors that identified the object of a table in a row of a piece.
func (o *objects) note(table, piece uint32, anchors uint8) {
	if !o.noted {
		return
	}
	t := &o.tables[table]
	if n := int(piece) + 1 - len(t.by); n > 0 {
		t.by = append(t.by, make([]uint8, n)...)
	}
	t.by[piece] |= anchors
}

// member returns the last value of a name of an object, or 0.
func (m *model) member(object uint32, name int) ref {
	o := &m.objects
	head := o.heads[object]
	if head >= inTable {
		return o.tables[head-inTable].of(name).last
	}
	for head != 0 {
		c := &o.changes[head]
		if h := m.pieces[c.piece].holeOf(name); h >= 0 {
			return c.first + ref(h)
		}
		head = c.next
	}
	return 0
}
