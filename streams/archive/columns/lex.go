package columns

import "bytes"

// Limits of templates. A value that exceeds one is stored as a single text.
const (
	maxPieces   = 4096
	maxHoles    = 256
	maxTemplate = 4096 // bytes of static text before texts are folded into it
	maxStatic   = maxTemplate + maxHoles*foldBytes
)

// token is a piece of a value: the text between two openings of objects or arrays.
type token struct {
	statics []span // len(holes)+1
	holes   []tokenHole
	name    []byte // the last name of a member in it; nil if it has none
}

type tokenHole struct {
	value  span
	name   []byte // of the member that the hole is the value of, or of the array that it is in
	quoted bool
}

// lexer splits values into static text and holes. It accepts any bytes: joining the parts always gives the value.
type lexer struct{ token token }

// next makes the piece that begins at from the token, and returns its end, or -1 if b[from:to] doesn't look like JSON. name is
// that of the last member before.
func (l *lexer) next(b []byte, from, to int, name []byte) int {
	t := &l.token
	t.statics, t.holes, t.name = t.statics[:0], t.holes[:0], nil
	static := from
	for i := from; i < to; {
		switch c := b[i]; {
		case c == '"':
			end := closing(b, i+1, to)
			if end < 0 {
				return -1
			}
			inside := spanOf(i+1, end)
			switch {
			case end+1 < to && b[end+1] == ':':
				name = inside.of(b)
				t.name = name
			case string(name) == "type" && isWord(inside.of(b)):
			default:
				t.hole(spanOf(static, i+1), tokenHole{inside, name, true})
				static = end
			}
			i = end + 1
		case isBare[c]:
			end := endOfBare(b, i, to)
			t.hole(spanOf(static, i), tokenHole{spanOf(i, end), name, false})
			static, i = end, end
		case (c == '{' || c == '[') && i > from:
			t.statics = append(t.statics, spanOf(static, i))
			return i
		default:
			i++
		}
	}
	t.statics = append(t.statics, spanOf(static, to))
	return to
}

func (t *token) hole(static span, h tokenHole) {
	t.statics, t.holes = append(t.statics, static), append(t.holes, h)
}

// closing returns the index of the quote that ends a string, or -1.
func closing(b []byte, i, to int) int {
	for i < to {
		j := bytes.IndexByte(b[i:to], '"')
		if j < 0 {
			return -1
		}
		j += i
		slashes := 0
		for k := j - 1; k >= i && b[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return j
		}
		i = j + 1
	}
	return -1
}

// isBare has the characters of values that are not in quotes.
var isBare = bare()

func bare() (is [256]bool) {
	for c := range is {
		b := byte(c)
		is[c] = '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || b == '-' || b == '+' || b == '.'
	}
	return is
}

// endOfBare returns the end of a value that is not in quotes.
func endOfBare(b []byte, i, to int) int {
	for i < to && isBare[b[i]] {
		i++
	}
	return i
}

// isWord reports whether the value of a member "type" is part of the template.
func isWord(b []byte) bool {
	if len(b) == 0 || len(b) > 48 {
		return false
	}
	for _, c := range b {
		if (c < 'a' || c > 'z') && c != '.' && c != '_' {
			return false
		}
	}
	return true
}

// span is a part of the buffer that holds the values of a chunk.
type span struct{ off, n uint32 }

func spanOf(from, to int) span { return span{uint32(from), uint32(to - from)} }

func (s span) of(b []byte) []byte { return b[s.off : s.off+s.n] }
