package columns

import "slices"

// A column that always has the same text becomes static text, if the text has at most foldBytes and the piece has at least
// foldRows rows. For fewer rows, the operations may take less space than the text.
const (
	foldBytes = 64
	foldRows  = 8
)

// fold moves the texts of columns that never change into the templates.
func (e *encoder) fold() {
	rows := make([]int, len(e.pieces))
	texts := make([][]byte, len(e.columns)) // the first of each column
	changes := make([]bool, len(e.columns))
	at := 0
	e.eachPiece(func(p *piece) {
		rows[p.number]++
		for _, c := range p.columns {
			v := &e.all[at]
			text := v.of(e.buf)
			if texts[c.id] == nil {
				texts[c.id] = text
			}
			if v.kind == kindHash || len(text) > foldBytes || string(text) != string(texts[c.id]) {
				changes[c.id] = true
			}
			at++
		}
	})
	stays := func(p *piece, c *column) bool {
		return p.number < 2 || changes[c.id] || rows[p.number] < foldRows || slices.Contains(p.anchors, c.hole)
	}
	at = 0
	values := e.all[:0]
	e.eachPiece(func(p *piece) {
		for _, c := range p.columns {
			if stays(p, c) {
				values = append(values, e.all[at])
			}
			at++
		}
	})
	e.all, e.columns = values, e.columns[:0]
	for _, p := range e.pieces[1:] {
		e.foldPiece(p, texts, stays)
	}
}

// eachPiece passes the pieces of all values to visit.
func (e *encoder) eachPiece(visit func(p *piece)) {
	for _, row := range e.rows {
		for _, n := range row {
			visit(e.pieces[n])
		}
	}
}

// foldPiece moves the texts of the columns that do not stay into the template of their piece. It numbers the other columns.
func (e *encoder) foldPiece(p *piece, texts [][]byte, stays func(*piece, *column) bool) {
	statics := [][]byte{p.statics[0]}
	moved := make([]int, len(p.columns)) // the new number of each hole, or -1
	var columns []*column
	for i, c := range p.columns {
		if stays(p, c) {
			moved[i] = len(columns)
			columns = append(columns, c)
			statics = append(statics, p.statics[i+1])
			continue
		}
		moved[i] = -1
		last := &statics[len(statics)-1]
		*last = slices.Concat(*last, texts[c.id], p.statics[i+1])
	}
	p.statics, p.columns, p.highest = statics, columns, 0
	for i, c := range columns {
		c.id, c.hole = len(e.columns), i
		p.highest = max(p.highest, c.name)
		e.columns = append(e.columns, c)
	}
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
