package columns

import (
	"bytes"
	"hash/maphash"
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
)

// table holds the last members of an object by name. It is a hash table, because a chunk may have many objects and many names.
type table struct {
	members []member // a power of two, of which at most half are used
	used    int
	by      []uint8 // by piece: the anchors that identified the object, as bits; only for encoding
}

// member is the last value of a name. name is one higher, and 0 if there is none.
type member struct {
	name uint32
	last ref
}

// of returns the member with a name, or the one that is free for it.
func (t *table) of(name int) *member {
	mask := len(t.members) - 1
	for i := name & mask; ; i = (i + 1) & mask {
		if m := &t.members[i]; m.name == uint32(name+1) || m.name == 0 {
			return m
		}
	}
}

// fit makes room for more names.
func (t *table) fit(names int) {
	size := max(16, len(t.members))
	for size < 2*(t.used+names) {
		size *= 2
	}
	if size == len(t.members) {
		return
	}
	old := t.members
	t.members = make([]member, size)
	for _, m := range old {
		if m.name != 0 {
			*t.of(int(m.name) - 1) = m
		}
	}
}

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

// lookup returns the object with a key. If it is new, stored says where its key is.
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

// change makes the members of a row the last ones.
func (t *table) change(p *piece, first ref) {
	t.fit(len(p.names))
	for i, name := range p.names {
		m := t.of(name)
		if m.name == 0 {
			m.name = uint32(name + 1)
			t.used++
		}
		m.last = first + ref(i)
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

// index is a hash table of numbers above 0. Its owner keeps what the numbers stand for, and compares it.
type index struct {
	slots []indexSlot // a power of two, of which at most half are used
	used  int
}

type indexSlot struct{ hash, number uint32 }

func (x *index) start(hash uint32) uint32 {
	if len(x.slots) == 0 {
		x.slots = make([]indexSlot, 16)
	}
	return hash & uint32(len(x.slots)-1)
}

func (x *index) after(i uint32) uint32 { return (i + 1) & uint32(len(x.slots)-1) }

// add inserts a new number.
func (x *index) add(hash, number uint32) {
	if x.used++; 2*x.used > len(x.slots) {
		old := x.slots
		x.slots = make([]indexSlot, max(16, 4*len(old)))
		for _, s := range old {
			if s.number != 0 {
				x.put(s)
			}
		}
	}
	x.put(indexSlot{hash, number})
}

func (x *index) put(s indexSlot) {
	i := x.start(s.hash)
	for x.slots[i].number != 0 {
		i = x.after(i)
	}
	x.slots[i] = s
}

func hashOf(seed maphash.Seed, b []byte) uint32 {
	h := maphash.Bytes(seed, b)
	return uint32(h ^ h>>32)
}

// joins finds the object of several texts by the objects that these identify alone.
type joins struct {
	seed  uint64
	index index
	all   []join // 0 is none
}

type join struct {
	parts  [maxAnchors]uint32
	object uint32
}

func (x *joins) hash(parts *[maxAnchors]uint32) uint32 {
	h := x.seed
	for _, n := range parts {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return uint32(h ^ h>>32)
}

// find returns the object, or 0.
func (x *joins) find(hash uint32, parts *[maxAnchors]uint32) uint32 {
	for i := x.index.start(hash); ; i = x.index.after(i) {
		s := x.index.slots[i]
		if s.number == 0 {
			return 0
		}
		if s.hash == hash && x.all[s.number].parts == *parts {
			return x.all[s.number].object
		}
	}
}

func (x *joins) add(hash uint32, j join) {
	x.index.add(hash, uint32(len(x.all)))
	x.all = append(x.all, j)
}
