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
}

type tokenHole struct {
	value  span
	name   span // of the member that the hole is the value of, or of the array that it is in
	quoted bool
}

// lexer splits values into static text and holes. It accepts any bytes: joining the parts always gives the value.
type lexer struct {
	tokens []token
	n      int
}

// split returns the pieces of b[from:to], which are valid until the next call. It reports false if the value doesn't look like
// JSON.
func (l *lexer) split(b []byte, from, to int) ([]token, bool) {
	l.n = 0
	l.begin()
	static, name := from, span{}
	for i := from; i < to; {
		switch c := b[i]; {
		case c == '"':
			end := closing(b, i+1, to)
			if end < 0 {
				return nil, false
			}
			inside := spanOf(i+1, end)
			switch {
			case end+1 < to && b[end+1] == ':':
				name = inside
			case string(name.of(b)) == "type" && isWord(inside.of(b)):
			default:
				l.hole(spanOf(static, i+1), tokenHole{inside, name, true})
				static = end
			}
			i = end + 1
		case isBare(c):
			end := i + 1
			for end < to && isBare(b[end]) {
				end++
			}
			l.hole(spanOf(static, i), tokenHole{spanOf(i, end), name, false})
			static, i = end, end
		case (c == '{' || c == '[') && i > static:
			l.close(spanOf(static, i))
			static = i
			l.begin()
			i++
		default:
			i++
		}
	}
	l.close(spanOf(static, to))
	return l.tokens[:l.n], true
}

func (l *lexer) begin() {
	if l.n == len(l.tokens) {
		l.tokens = append(l.tokens, token{})
	}
	t := &l.tokens[l.n]
	t.statics, t.holes = t.statics[:0], t.holes[:0]
	l.n++
}

func (l *lexer) hole(static span, h tokenHole) {
	t := &l.tokens[l.n-1]
	t.statics, t.holes = append(t.statics, static), append(t.holes, h)
}

func (l *lexer) close(static span) {
	t := &l.tokens[l.n-1]
	t.statics = append(t.statics, static)
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

func isBare(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
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
