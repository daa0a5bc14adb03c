package columns

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// form describes a piece to the first pass.
type form struct {
	name []byte   // the last name of a member in it; nil if it has none
	next []uint16 // pieces that came after it, the latest first
}

// maxGuesses is the number of pieces that the first pass tries before it looks for the template of a text.
const maxGuesses = 4

// split is the first pass. It finds the templates and the values of their holes.
func (e *encoder) split() {
	total := 0
	for _, v := range e.in {
		total += len(v.Bytes)
	}
	e.forms = make([]form, 2)
	for i, v := range e.in {
		e.turns.value()
		if i == estimateAfter && len(e.buf) > 0 {
			left := total - len(e.buf)
			ratio := float64(left) / float64(len(e.buf)) * 1.02
			e.values = slices.Grow(e.values, min(int(float64(len(e.values))*ratio), left/leastPerValue))
			e.rows = slices.Grow(e.rows, min(int(float64(len(e.rows))*ratio), left/leastPerValue))
		}
		from, values, rows := len(e.buf), len(e.values), len(e.rows)
		e.buf = append(e.buf, v.Bytes...)
		if !e.splitValue(from, len(e.buf), v.Prev) {
			e.values, e.rows = e.values[:values], append(e.rows[:rows], 1)
			e.values = append(e.values, e.text(spanOf(from, len(e.buf))))
		}
		e.rows = append(e.rows, 0)
	}
}

// estimateAfter is the number of values after which the first pass estimates the memory for the chunk.
const estimateAfter = 256

// splitValue appends the pieces of a value and the values of their holes. It reports false if the value has to be a single text.
func (e *encoder) splitValue(from, to int, prev string) bool {
	last, name := 0, []byte(nil)
	for at := from; ; {
		n, end := e.guess(last, at, to)
		if n == 0 {
			var ok bool
			if n, end, ok = e.lookUp(at, to, name); !ok {
				return false
			}
		}
		e.follows(last, n)
		if e.forms[n].name != nil {
			name = e.forms[n].name
		}
		e.rows = append(e.rows, uint16(n))
		for _, s := range e.holes {
			v := e.text(s)
			if e.parse(&v, prev); v.kind == kindHash {
				prev = "" // only the first is left out
			}
			e.values = append(e.values, v)
		}
		if last, at = n, end; at == to {
			return true
		}
	}
}

// guess tries the pieces that came after the last one before. It returns the piece that begins at a place and its end, or 0.
func (e *encoder) guess(last, from, to int) (n, end int) {
	for _, n := range e.forms[last].next {
		if end := e.fit(e.pieces[n], from, to); end >= 0 {
			return int(n), end
		}
	}
	return 0, 0
}

// fit sets the holes if the text from a place on consists of a template and values, and returns the end of the piece. Otherwise it
// returns -1. A lexer would find the same holes.
func (e *encoder) fit(p *piece, from, to int) int {
	e.holes = e.holes[:0]
	b, at := e.buf[:to], from
	for h, static := range p.statics {
		if !bytes.HasPrefix(b[at:], static) {
			return -1
		}
		at += len(static)
		if h == len(p.columns) {
			break
		}
		start := at
		if p.columns[h].quoted {
			if at = closing(b, start, to); at < 0 {
				return -1
			}
		} else if at = endOfBare(b, start, to); at == start {
			return -1
		}
		e.holes = append(e.holes, spanOf(start, at))
	}
	if at < to && (at == from || b[at] != '{' && b[at] != '[') {
		return -1
	}
	return at
}

// follows notes that a piece came after another.
func (e *encoder) follows(last, n int) {
	next := e.forms[last].next
	if len(next) > 0 && next[0] == uint16(n) {
		return
	}
	i := slices.Index(next, uint16(n))
	if i < 0 {
		if len(next) < maxGuesses {
			next = append(next, 0)
			e.forms[last].next = next
		}
		i = len(next) - 1
	}
	copy(next[1:i+1], next[:i])
	next[0] = uint16(n)
}

// lookUp returns the piece that begins at a place and its end. It adds the template if it is new. name is that of the last member
// before.
func (e *encoder) lookUp(from, to int, name []byte) (n, end int, ok bool) {
	end = e.lexer.next(e.buf, from, to, name)
	if end < 0 {
		return 0, 0, false
	}
	t := &e.lexer.token
	e.holes, e.key = e.holes[:0], e.key[:0]
	for i, s := range t.statics {
		e.key = binary.AppendUvarint(e.key, uint64(s.n))
		e.key = append(e.key, s.of(e.buf)...)
		if i == len(t.holes) {
			break
		}
		e.holes = append(e.holes, t.holes[i].value)
		if t.holes[i].quoted {
			e.key = append(e.key, '"')
		} else {
			e.key = append(e.key, '0')
		}
	}
	if n, known := e.templates[string(e.key)]; known {
		return n, end, true
	}
	if len(e.pieces) >= maxPieces || len(t.holes) > maxHoles || len(e.key) > maxTemplate {
		return 0, 0, false
	}
	n = len(e.pieces)
	e.templates[string(e.key)] = n
	e.addPiece(t)
	return n, end, true
}

func (e *encoder) addPiece(t *token) {
	p := &piece{number: uint32(len(e.pieces))}
	for i, s := range t.statics {
		p.statics = append(p.statics, bytes.Clone(s.of(e.buf)))
		if i == len(t.holes) {
			break
		}
		h := t.holes[i]
		name := string(h.name)
		if _, ok := e.names[name]; !ok {
			e.names[name] = e.model.names
			e.model.names++
		}
		id := e.names[name]
		if e.dicts[id] == nil {
			e.dicts[id] = new(dictionary)
		}
		e.addColumn(p, id, h.quoted, e.dicts[id])
		if text := h.value.of(e.buf); h.quoted && len(p.anchors) < maxAnchors-1 && isName(text) {
			p.anchors = append(p.anchors, i)
			if _, uuid := parseUUID(text); !uuid {
				p.joined = append(p.joined, i)
			}
		}
	}
	e.pieces = append(e.pieces, p)
	e.forms = append(e.forms, form{name: bytes.Clone(t.name)})
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

// text returns a value of which only the text is known.
func (e *encoder) text(s span) value {
	return value{span: s, print: uint16(hashOf(e.objects.seed, s.of(e.buf)))}
}

// parse finds what kind of value a text is.
func (e *encoder) parse(v *value, prev string) {
	b := v.of(e.buf)
	if len(prev) > 0 && len(b) == len(prev) && string(b) == prev {
		v.kind = kindHash
	} else if n, format, ok := parseNumber(b); ok {
		v.kind, v.number, v.format = kindNumber, n, format
	} else if n, ok := parseTime(b); ok {
		v.kind, v.number = kindTime, n
	}
}
