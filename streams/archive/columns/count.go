package columns

import (
	"cmp"
	"encoding/binary"
	"math/bits"
	"slices"
)

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
func (e *encoder) textOf(column uint32) []byte { return e.values[e.latest[column].value].of(e.buf) }

// stats counts for one column.
type stats struct {
	equal [opNumber]int // by operation
	slots counts        // by column
	minus counts
	bases []trial
	order []byte
}

// counts counts columns.
type counts []columnCount

// maxCounted is the number of columns from which others are no longer counted. Values that are equal to that many others are not worth
// the time.
const maxCounted = 512

type columnCount struct{ column, n uint32 }

func (c *counts) add(column uint32) {
	for i := range *c {
		if (*c)[i].column == column {
			(*c)[i].n++
			return
		}
	}
	if len(*c) < maxCounted {
		*c = append(*c, columnCount{column, 1})
	}
}

// trial is a base with its cost: the bytes of the differences, and how many are zero.
type trial struct {
	base
	bytes, zeros int
}

const (
	// near is how many values back the second pass looks for an equal one.
	near = 96
	// sampleRows is about how many rows of each piece the second pass looks at.
	sampleRows = 256
	// maxTrials is the highest number of bases of a column that the second pass compares.
	maxTrials = 64
)

// count is the second pass. It looks at a sample of the rows of each piece.
func (e *encoder) count() {
	e.start()
	e.stats = make([]stats, len(e.columns))
	seen := make([]uint32, len(e.pieces))
	var inSample []bool // by row of the record
	at, left := ref(1), e.rows
	for record := range e.in {
		e.turns.value()
		e.begin(record)
		e.row, left = cutRow(left)
		e.recent = e.recent[:0]
		inSample = inSample[:0]
		for _, n := range e.row {
			inSample = append(inSample, e.sampled(n, seen[n]))
			seen[n]++
		}
		watches := slices.Contains(inSample, true)
		for i, n := range e.row {
			p := e.pieces[n]
			e.beginRow(at)
			for _, c := range p.columns {
				v := &e.values[at]
				if inSample[i] {
					e.countValue(p, c, v)
				}
				if watches {
					if e.latest[c.id].record != int32(record) {
						c.seat = len(e.recent)
						e.recent = append(e.recent, sight{})
					}
					e.recent[c.seat] = e.see(c, v)
				}
				e.put(c, at)
				at++
			}
			e.endRow(p)
			if len(p.joined) > 0 {
				e.joins = append(e.joins, e.joinedObject(p, len(p.columns)))
			}
		}
	}
}

// sampled reports whether row number after of a piece, from 0 on, is in the sample. Rows may alternate between two shapes, so it
// hashes the number: every other row would show one shape only.
func (e *encoder) sampled(piece uint16, after uint32) bool {
	step := uint32(e.counts[piece]) / sampleRows
	return step < 2 || (after*0x9e3779b1)>>16%step == 0
}

// countValue counts which operations would give a value.
func (e *encoder) countValue(p *piece, c *column, v *value) {
	if v.kind == kindHash {
		return
	}
	st := &e.stats[c.id]
	found := false
	hit := func(op byte) {
		st.equal[op]++
		found = true
	}
	if e.same(e.latest[c.id].value, v) {
		hit(opBefore)
	}
	for a := range p.anchorsOf() {
		if e.same(e.member(e.object(p, a, c.hole), c.name), v) {
			hit(opObject + byte(a))
		}
	}
	b := v.of(e.buf)
	me := e.see(c, v)
	window := e.recent[max(0, len(e.recent)-near):]
	for i := range window {
		w := &window[i]
		if w.head == me.head && w.n == me.n && w.kind != kindHash && (w.n <= 8 || string(e.textOf(w.column)) == string(b)) {
			st.slots.add(w.column)
			found = true
		} else if w.number == -v.number && v.kind == kindNumber && w.kind == kindNumber && w.number != 0 && isMinus(e.textOf(w.column), b) {
			st.minus.add(w.column)
			found = true
		}
	}
	if !found && (v.kind == kindNumber || v.kind == kindTime) {
		e.countBases(p, c, v, st)
	}
}

// countBases counts what each base would cost for a value. A base that was not among the first ones has cost as much as none before.
func (e *encoder) countBases(p *piece, c *column, v *value, st *stats) {
	try := func(b base) {
		if len(st.bases) == maxTrials || slices.ContainsFunc(st.bases, func(t trial) bool { return t.base == b }) {
			return
		}
		t := trial{base: b}
		// A base that is tried later counts as the first one for the values before. Otherwise one that is rarely tried would look cheapest.
		if len(st.bases) > 0 {
			t.bytes = st.bases[0].bytes
		}
		st.bases = append(st.bases, t)
	}
	try(base{})
	try(base{kind: baseBefore})
	for a := range p.anchorsOf() {
		if a >= len(p.anchors) || p.anchors[a] < c.hole {
			try(base{kind: baseObject, of: a})
		}
	}
	for _, d := range p.columns[:c.hole] {
		w := &e.values[e.latest[d.id].value]
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
	for i := range st.bases {
		t := &st.bases[i]
		n := v.number - e.baseOf(p, c, t.base, v.kind)
		t.bytes += (bits.Len64(uint64(n<<1)^uint64(n>>63)) + 6) / 7
		if n == 0 {
			t.zeros++
		}
	}
}

// choose orders the operations of each column after the second pass.
func (e *encoder) choose() {
	type option struct {
		op    byte
		count int
	}
	var options []option
	for i := range e.stats {
		st, c := &e.stats[i], e.columns[i]
		options = options[:0]
		for op, n := range st.equal {
			if n > 0 {
				options = append(options, option{byte(op), n})
			}
		}
		slot := func(op byte, k columnCount) {
			c.slots = append(c.slots, int(k.column))
			options = append(options, option{op + byte(len(c.slots)-1), int(k.n)})
		}
		for _, k := range st.slots.top(maxSlots * 2 / 3) {
			slot(opSlot, k)
		}
		for _, k := range st.minus.top(maxSlots / 3) {
			slot(opMinus, k)
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

// leastCount is how often a column must give a value to become a slot.
const leastCount = 2

// top returns the columns with the highest counts.
func (c counts) top(n int) counts {
	c = slices.DeleteFunc(c, func(k columnCount) bool { return k.n < leastCount })
	slices.SortFunc(c, func(a, b columnCount) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.column, b.column)) })
	return c[:min(n, len(c))]
}

// chooseBases returns the base with the fewest bytes, and those that give most numbers exactly.
func chooseBases(all []trial) []base {
	if len(all) == 0 {
		return nil
	}
	tie := func(a, b trial) int { return cmp.Or(int(a.kind)-int(b.kind), a.of-b.of, a.plus-b.plus) }
	slices.SortFunc(all, func(a, b trial) int { return cmp.Or(a.bytes-b.bytes, tie(a, b)) })
	bases := []base{all[0].base}
	slices.SortFunc(all, func(a, b trial) int { return cmp.Or(b.zeros-a.zeros, tie(a, b)) })
	for _, t := range all {
		if len(bases) < maxBases && t.zeros > 0 && !slices.Contains(bases, t.base) {
			bases = append(bases, t.base)
		}
	}
	return bases
}
