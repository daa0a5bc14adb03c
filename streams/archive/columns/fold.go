package columns

import "slices"

// A column that always has the same text becomes static text, if the text has at most foldBytes and the piece has at least
// foldRows rows. For fewer rows, the operations may take less space than the text.
const (
	foldBytes = 64
	foldRows  = 8
)

// fold moves the texts of columns that never change into the templates. It counts the rows of the pieces.
func (e *encoder) fold() {
	e.counts = make([]int, len(e.pieces))
	firsts := make([]ref, len(e.columns)) // the first value of each column
	changes := make([]bool, len(e.columns))
	at := ref(1)
	for _, n := range e.rows {
		e.counts[n]++
		for _, c := range e.pieces[n].columns {
			if firsts[c.id] == 0 {
				firsts[c.id] = at
				v := &e.values[at]
				changes[c.id] = v.kind == kindHash || v.n > foldBytes
			}
			if !changes[c.id] && !e.same(firsts[c.id], &e.values[at]) {
				changes[c.id] = true
			}
			at++
		}
	}
	stays := func(p *piece, c *column) bool {
		return p.number < 2 || changes[c.id] || e.counts[p.number] < foldRows || slices.Contains(p.anchors, c.hole)
	}
	stay := make([]bool, len(e.columns))
	texts := make([][]byte, len(e.columns))
	for _, p := range e.pieces {
		for _, c := range p.columns {
			if stay[c.id] = stays(p, c); !stay[c.id] {
				texts[c.id] = e.values[firsts[c.id]].of(e.buf)
			}
		}
	}
	at = 1
	values := e.values[:1]
	for _, n := range e.rows {
		for _, c := range e.pieces[n].columns {
			if stay[c.id] {
				values = append(values, e.values[at])
			}
			at++
		}
	}
	e.values, e.columns = values, e.columns[:0]
	for _, p := range e.pieces[1:] {
		e.foldPiece(p, texts, stay)
	}
}

// foldPiece moves the texts of the columns that do not stay into the template of their piece. It numbers the other columns.
func (e *encoder) foldPiece(p *piece, texts [][]byte, stay []bool) {
	statics := [][]byte{p.statics[0]}
	moved := make([]int, len(p.columns)) // the new number of each hole, or -1
	var columns []*column
	for i, c := range p.columns {
		if stay[c.id] {
			moved[i] = len(columns)
			columns = append(columns, c)
			statics = append(statics, p.statics[i+1])
			continue
		}
		moved[i] = -1
		last := &statics[len(statics)-1]
		*last = slices.Concat(*last, texts[c.id], p.statics[i+1])
	}
	p.statics, p.columns = statics, columns
	for i, c := range columns {
		c.id, c.hole = len(e.columns), i
		e.columns = append(e.columns, c)
	}
	p.index()
	keep := func(holes []int) (left []int) {
		for _, h := range holes {
			if moved[h] >= 0 {
				left = append(left, moved[h])
			}
		}
		return left
	}
	p.anchors, p.joined = keep(p.anchors), keep(p.joined)
	if len(p.joined) < 2 {
		p.joined = nil
	}
	p.updates = slices.Repeat([]bool{true}, p.anchorsOf())
}
