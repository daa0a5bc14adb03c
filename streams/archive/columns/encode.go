package columns

import (
	"cmp"
	"encoding/binary"
	"math/bits"
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

// encoder encodes the values of a chunk in three passes: it finds the templates, counts which operations would give each value,
// and then chooses one for each.
type encoder struct {
	*model
	in        []Value
	rows      [][]int // the pieces of each value
	templates map[string]int
	names     map[string]int
	dicts     map[int]*dictionary
	stats     []stats // by column
	ids       idIndex
	choosing  bool   // the third pass
	raw, rare stream // of UUIDs
	all       []value
	recent    []sight // the columns that have a value in the current record, with the last one
	turns     turns
}

// sight is a value of the current record as the second pass compares it with others. A record has up to a hundred values, and each
// is compared with all others: one slice keeps them in the processor's cache.
type sight struct {
	head   uint64 // the first 8 bytes
	number int64
	n      uint32 // bytes
	column uint32
	kind   byte
}

// see returns the sight of a value.
func (e *encoder) see(c *column, v *value) sight {
	s := sight{number: v.number, n: v.n, column: uint32(c.id), kind: v.kind}
	b := v.of(e.buf)
	if len(b) >= 8 {
		s.head = binary.LittleEndian.Uint64(b)
		return s
	}
	for i, x := range b {
		s.head |= uint64(x) << (8 * i)
	}
	return s
}

// textOf returns the text of a column's last value.
func (e *encoder) textOf(column uint32) []byte { return e.values[e.columns[column].now].of(e.buf) }

// stats counts for one column.
type stats struct {
	equal  map[byte]int // by operation
	slots  map[int]int  // by column
	minus  map[int]int
	bases  map[base]*cost
	order  []byte
	misses int
}

type cost struct{ bytes, zeros int }

// split is the first pass.
func (e *encoder) split() {
	total := 0
	for _, v := range e.in {
		total += len(v.Bytes)
	}
	e.buf = make([]byte, 0, total)
	var l lexer
	for _, v := range e.in {
		e.turns.value()
		from := len(e.buf)
		e.buf = append(e.buf, v.Bytes...)
		tokens, ok := l.split(e.buf, from, len(e.buf))
		var row []int
		if ok {
			row, ok = e.match(tokens)
		}
		if !ok {
			row = []int{1}
			e.all = append(e.all, value{span: spanOf(from, len(e.buf))})
		} else {
			for _, t := range tokens {
				for _, h := range t.holes {
					w := e.parse(h.value, v.Prev)
					if w.kind == kindHash {
						v.Prev = "" // only the first is left out
					}
					e.all = append(e.all, w)
				}
			}
		}
		e.rows = append(e.rows, row)
	}
}

// match returns the templates of a value's pieces. It adds those that are new.
func (e *encoder) match(tokens []token) (row []int, ok bool) {
	for _, t := range tokens {
		var key []byte
		for i, s := range t.statics {
			key = binary.AppendUvarint(key, uint64(s.n))
			key = append(key, s.of(e.buf)...)
			if i < len(t.holes) && t.holes[i].quoted {
				key = append(key, '"')
			} else {
				key = append(key, '0')
			}
		}
		n, known := e.templates[string(key)]
		if !known {
			if len(e.pieces) >= maxPieces || len(t.holes) > maxHoles || len(key) > maxTemplate {
				return nil, false
			}
			n = e.addPiece(t)
			e.templates[string(key)] = n
		}
		row = append(row, n)
	}
	return row, true
}

func (e *encoder) addPiece(t token) int {
	p := new(piece)
	for i, s := range t.statics {
		p.statics = append(p.statics, append([]byte(nil), s.of(e.buf)...))
		if i == len(t.holes) {
			break
		}
		h := t.holes[i]
		name := string(h.name.of(e.buf))
		if _, ok := e.names[name]; !ok {
			e.names[name] = e.model.names
			e.model.names++
		}
		id := e.names[name]
		if e.dicts[id] == nil {
			e.dicts[id] = &dictionary{index: make(map[string]int)}
		}
		e.addColumn(p, id, h.quoted, e.dicts[id])
		if text := h.value.of(e.buf); h.quoted && len(p.anchors) < maxAnchors-1 && isName(text) {
			p.anchors = append(p.anchors, i)
			if _, uuid := parseUUID(text); !uuid {
				p.joined = append(p.joined, i)
			}
		}
	}
	p.number = len(e.pieces)
	e.pieces = append(e.pieces, p)
	return len(e.pieces) - 1
}

// isName reports whether a text probably identifies an object.
func isName(b []byte) bool {
	if len(b) == 0 || len(b) > 40 || isHex(b) {
		return false
	}
	if _, _, ok := parseNumber(b); ok {
		return false
	}
	if _, ok := parseTime(b); ok {
		return false
	}
	return true
}

func (e *encoder) parse(s span, prev string) value {
	v := value{span: s}
	b := s.of(e.buf)
	if len(prev) > 0 && len(b) == len(prev) && string(b) == prev {
		v.kind = kindHash
	} else if n, format, ok := parseNumber(b); ok {
		v.kind, v.number, v.format = kindNumber, n, format
	} else if n, ok := parseTime(b); ok {
		v.kind, v.number = kindTime, n
	}
	return v
}

// walk passes all values to visit, with the model in the state in which a decoder has it.
func (e *encoder) walk(visit func(p *piece, c *column, v *value)) {
	at := 0
	for i, row := range e.rows {
		e.turns.value()
		e.begin(i)
		e.recent = e.recent[:0]
		before := e.pieces[0]
		for _, n := range row {
			p := e.pieces[n]
			if e.choosing {
				before.next.uvarint(uint64(n))
			}
			before = p
			e.row = e.row[:0]
			for _, c := range p.columns {
				v := &e.all[at]
				at++
				visit(p, c, v)
				if !e.choosing {
					if c.record != i {
						c.seat = len(e.recent)
						e.recent = append(e.recent, sight{})
					}
					e.recent[c.seat] = e.see(c, v)
				}
				e.values = append(e.values, *v)
				e.put(c, ref(len(e.values)-1))
			}
			e.endRow(p)
		}
		if e.choosing {
			before.next.uvarint(0)
		}
	}
}

// near is how many values back the second pass looks for an equal one.
const near = 96

// count is the second pass.
func (e *encoder) count(p *piece, c *column, v *value) {
	st := &e.stats[c.id]
	if v.kind == kindHash {
		return
	}
	found := false
	hit := func(op byte) {
		st.equal[op]++
		found = true
	}
	if e.same(c.now, v) {
		hit(opBefore)
	}
	for a := range p.anchorsOf() {
		if e.same(e.object(p, a, c.hole, false).member(c.name), v) {
			hit(opObject + byte(a))
		}
	}
	b := v.of(e.buf)
	me := e.see(c, v)
	window := e.recent[max(0, len(e.recent)-near):]
	for i := range window {
		w := &window[i]
		if w.head == me.head && w.n == me.n && w.kind != kindHash && (w.n <= 8 || string(e.textOf(w.column)) == string(b)) {
			st.slots[int(w.column)]++
			found = true
		} else if w.number == -v.number && v.kind == kindNumber && w.kind == kindNumber && w.number != 0 && isMinus(e.textOf(w.column), b) {
			st.minus[int(w.column)]++
			found = true
		}
	}
	if found {
		return
	}
	st.misses++
	if v.kind != kindNumber && v.kind != kindTime {
		return
	}
	e.countBases(p, c, v, st)
}

func (e *encoder) countBases(p *piece, c *column, v *value, st *stats) {
	try := func(b base) {
		if k := st.bases[b]; k != nil || len(st.bases) < 64 {
			if k == nil {
				k = new(cost)
				st.bases[b] = k
			}
			n := v.number - e.baseOf(p, c, b, v.kind)
			k.bytes += (bits.Len64(uint64(n<<1)^uint64(n>>63)) + 6) / 7
			if n == 0 {
				k.zeros++
			}
		}
	}
	try(base{})
	try(base{kind: baseBefore})
	for a := range p.anchorsOf() {
		if a >= len(p.anchors) || p.anchors[a] < c.hole {
			try(base{kind: baseObject, of: a})
		}
	}
	for _, d := range p.columns[:c.hole] {
		w := &e.values[d.now]
		if w.kind != v.kind {
			continue
		}
		try(base{kind: baseSlot, of: d.id})
		for a := range p.anchorsOf() {
			try(base{kind: baseObject, of: a, plus: d.id + 1})
		}
	}
	n := 0
	for _, w := range slices.Backward(e.recent) {
		if k := int(w.column); w.kind == v.kind && n < 8 {
			try(base{kind: baseSlot, of: k})
			if v.kind == kindNumber && n < 4 {
				for a := range p.anchorsOf() {
					try(base{kind: baseObject, of: a, plus: k + 1})
				}
			}
			n++
		}
	}
}

func (e *encoder) same(r ref, v *value) bool {
	w := &e.values[r]
	return r != 0 && w.n == v.n && w.kind != kindHash && string(w.of(e.buf)) == string(v.of(e.buf))
}

// isMinus reports whether one text is the other with a minus before it.
func isMinus(a, b []byte) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(b) == len(a)+1 && b[0] == '-' && string(b[1:]) == string(a)
}

// choose orders the operations of each column after the second pass.
func (e *encoder) choose() {
	for i := range e.stats {
		st, c := &e.stats[i], e.columns[i]
		type option struct {
			op    byte
			count int
		}
		var options []option
		for op, n := range st.equal {
			options = append(options, option{op, n})
		}
		least := 2
		for _, k := range top(st.slots, maxSlots*2/3, least) {
			c.slots = append(c.slots, k)
			options = append(options, option{opSlot + byte(len(c.slots)-1), st.slots[k]})
		}
		for _, k := range top(st.minus, maxSlots/3, least) {
			c.slots = append(c.slots, k)
			options = append(options, option{opMinus + byte(len(c.slots)-1), st.minus[k]})
		}
		slices.SortFunc(options, func(a, b option) int {
			return cmp.Or(b.count-a.count, expense(a.op)-expense(b.op), int(a.op)-int(b.op))
		})
		for _, o := range options {
			st.order = append(st.order, o.op)
		}
		c.bases = chooseBases(st.bases)
	}
}

// expense orders operations that give a column equally often: an object takes longer to find than another column.
func expense(op byte) int {
	if op >= opObject && op < opNumber {
		return 1
	}
	return 0
}

func top(counts map[int]int, n, least int) (keys []int) {
	for k, count := range counts {
		if count >= least {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b int) int { return cmp.Or(counts[b]-counts[a], a-b) })
	return keys[:min(n, len(keys))]
}

// chooseBases returns the base with the fewest bytes, and those that give most numbers exactly.
func chooseBases(all map[base]*cost) []base {
	keys := make([]base, 0, len(all))
	for b := range all {
		keys = append(keys, b)
	}
	if len(keys) == 0 {
		return nil
	}
	tie := func(a, b base) int { return cmp.Or(int(a.kind)-int(b.kind), a.of-b.of, a.plus-b.plus) }
	slices.SortFunc(keys, func(a, b base) int { return cmp.Or(all[a].bytes-all[b].bytes, tie(a, b)) })
	bases := []base{keys[0]}
	slices.SortFunc(keys, func(a, b base) int { return cmp.Or(all[b].zeros-all[a].zeros, tie(a, b)) })
	for _, k := range keys {
		if len(bases) < maxBases && all[k].zeros > 0 && !slices.Contains(bases, k) {
			bases = append(bases, k)
		}
	}
	return bases
}

// emit is the third pass: it writes the operation of a value.
func (e *encoder) emit(p *piece, c *column, v *value) {
	ops := &c.streams[streamOps]
	if v.kind == kindHash {
		ops.byte(opHash)
		return
	}
	for _, op := range e.stats[c.id].order {
		if e.gives(p, c, op, v) {
			if op >= opObject && op < opNumber {
				e.object(p, int(op-opObject), c.hole, false).read = true
			}
			ops.byte(op)
			return
		}
	}
	b := v.of(e.buf)
	if v.kind == kindNumber || v.kind == kindTime {
		e.emitNumber(p, c, v)
		return
	}
	if c.quoted {
		if id, ok := parseUUID(b); ok && e.emitUUID(c, id, b) {
			return
		}
		if n, ok := c.dict.index[string(b)]; ok {
			ops.byte(opEntry)
			c.streams[streamIndexes].uvarint(uint64(n))
			return
		}
		if isHex(b) {
			ops.byte(opHex)
			c.streams[streamIndexes].uvarint(uint64(len(b) / 2))
			e.raw.b = appendUnhex(e.raw.b, b)
			return
		}
	} else if n, ok := c.dict.index[string(b)]; ok {
		ops.byte(opEntry)
		c.streams[streamIndexes].uvarint(uint64(n))
		return
	}
	ops.byte(opText)
	c.streams[streamTexts].uvarint(uint64(len(b)))
	c.streams[streamTexts].b = append(c.streams[streamTexts].b, b...)
	if len(b) <= maxEntry {
		c.dict.index[string(b)] = len(c.dict.entries)
		c.dict.entries = append(c.dict.entries, ref(len(e.values)))
	}
}

// noteWriter remembers that a piece has changed an object by an anchor.
func noteWriter(o *entity, p *piece, anchor int) {
	if w := p.number*(maxAnchors+1) + anchor; !slices.Contains(o.writers, w) {
		o.writers = append(o.writers, w)
	}
}

// prune leaves out the updates of objects that no operation has read. It does not change what the operations give.
func (e *encoder) prune() {
	for _, p := range e.pieces {
		clear(p.updates)
	}
	for _, o := range e.objects[1:] {
		if !o.read {
			continue
		}
		for _, w := range o.writers {
			e.pieces[w/(maxAnchors+1)].updates[w%(maxAnchors+1)] = true
		}
	}
}

// gives reports whether an operation that takes no argument gives the value.
func (e *encoder) gives(p *piece, c *column, op byte, v *value) bool {
	switch {
	case op == opBefore:
		return e.same(c.now, v)
	case op >= opMinus:
		w := &e.values[e.slot(c.slots[op-opMinus])]
		return w.n > 0 && w.kind == kindNumber && isMinus(w.of(e.buf), v.of(e.buf))
	case op >= opSlot:
		return e.same(e.slot(c.slots[op-opSlot]), v)
	default:
		return e.same(e.object(p, int(op-opObject), c.hole, false).member(c.name), v)
	}
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
		if o := e.object(p, b.of, c.hole, false); o != nil {
			o.read = true
		}
	}
	c.streams[streamOps].byte(op + byte(of))
	c.streams[streamNumbers].varint(difference)
	if v.kind == kindNumber {
		c.streams[streamFormats].byte(v.format)
	}
}

func (e *encoder) emitUUID(c *column, id scalar.ID, b []byte) bool {
	ops := &c.streams[streamOps]
	if id[6]>>4 == 8 {
		if sequence, index, ok := e.ids.find(e, id); ok {
			current := e.in[e.record].Sequence
			if sequence == current {
				ops.byte(opOwn)
			} else {
				ops.byte(opOther)
				c.streams[streamIndexes].uvarint(uint64(current - sequence))
			}
			if sequence == current {
				c.streams[streamIndexes].varint(int64(index) - int64(e.last))
				e.last = index
			} else {
				c.streams[streamIndexes].uvarint(uint64(index))
			}
			return true
		}
	}
	if n, ok := c.dict.index[string(b)]; ok {
		ops.byte(opEntry)
		c.streams[streamIndexes].uvarint(uint64(n))
		return true
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
	c.dict.index[string(b)] = len(c.dict.entries)
	c.dict.entries = append(c.dict.entries, ref(len(e.values)))
	return true
}

// idIndex finds which record and event an id derives from.
type idIndex struct {
	known map[scalar.ID]origin
	done  int64 // the last sequence whose ids are known
}

type origin struct {
	sequence int64
	index    uint32
}

// maxDerived is the highest number of ids of one record that an encoder recognizes.
const maxDerived = 512

func (x *idIndex) find(e *encoder, id scalar.ID) (sequence int64, index uint32, ok bool) {
	current := e.in[e.record].Sequence
	if current < 0 {
		return 0, 0, false
	}
	if x.done < current {
		x.done = current
		n := uint32(min(len(e.rows[e.record]), maxDerived))
		for i := range n {
			x.known[decide.Stamp{Journal: e.journal, Sequence: current}.Derive(int(i))] = origin{current, i}
		}
	}
	o, ok := x.known[id]
	return o.sequence, o.index, ok
}
