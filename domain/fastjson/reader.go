package fastjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/go-json-experiment/json/jsontext"
)

// Reader reads the output of a Writer. At the first deviation from that form it fails, and the values that it returns
// are invalid.
type Reader struct {
	b      []byte
	i      int
	failed bool
	words  *Words
	moment moment
}

// moment is the time that was read last. The next time is often the same.
type moment struct {
	known bool
	text  [27]byte
	value int64
}

// NewReader returns a reader of b.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Reset makes the reader start over with b. words caches recently read strings; it may be nil.
func (r *Reader) Reset(b []byte, words *Words) { r.b, r.i, r.failed, r.words = b, 0, false, words }

// Done reports whether the reader has not failed and has read its whole input.
func (r *Reader) Done() bool { return !r.failed && r.i == len(r.b) }

// Rest returns the input that is not read yet. It aliases the reader's input.
func (r *Reader) Rest() []byte { return r.b[r.i:] }

// Failed reports whether the reader has failed.
func (r *Reader) Failed() bool { return r.failed }

// Fail makes the reader fail.
func (r *Reader) Fail() { r.failed = true }

// Raw reads s. The reader fails if the input does not continue with s.
func (r *Reader) Raw(s string) {
	if !r.Try(s) {
		r.failed = true
	}
}

// Try reads s if the input continues with it, and reports whether it did.
func (r *Reader) Try(s string) bool {
	if r.failed || len(r.b)-r.i < len(s) || string(r.b[r.i:r.i+len(s)]) != s {
		return false
	}
	r.i += len(s)
	return true
}

// Quoted reads a string of printable ASCII characters without escapes. The result aliases the reader's input.
func (r *Reader) Quoted() []byte {
	b, start := r.b, r.i+1
	if r.failed || start > len(b) || b[start-1] != '"' {
		r.failed = true
		return nil
	}
	i := start
	for ; i+8 <= len(b); i += 8 {
		if stops := stops(binary.LittleEndian.Uint64(b[i:])); stops != 0 {
			i += bits.TrailingZeros64(stops) / 8
			break
		}
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			r.i = i + 1
			return b[start:i]
		case c < ' ' || c >= 0x7f || c == '\\':
			r.failed = true
			return nil
		}
	}
	r.failed = true
	return nil
}

// stops sets the highest bit of each byte of w that cannot be copied as part of a string. Only the lowest marked byte is
// reliable: bytes above it may be marked wrongly.
func stops(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^'"'*ones, w^'\\'*ones
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (w-' '*ones)&^w | w | (w + ones)) & highs
}

// Unquote reads a string of printable ASCII characters, in which quotes and backslashes are escaped with a backslash, and appends
// its text to a slice. The reader fails at other escapes.
func (r *Reader) Unquote(to []byte) []byte {
	b, i := r.b, r.i+1
	if r.failed || i > len(b) || b[i-1] != '"' {
		r.failed = true
		return to
	}
	for start := i; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			r.i = i + 1
			return append(to, b[start:i]...)
		case c == '\\':
			to = append(to, b[start:i]...)
			if i++; i == len(b) || b[i] != '"' && b[i] != '\\' {
				r.failed = true
				return to
			}
			start = i // the escaped character begins the next part
		case c < ' ' || c >= 0x7f:
			r.failed = true
			return to
		}
	}
	r.failed = true
	return to
}

// Fixed reads a string of n bytes without checking them. The caller must reject bytes that JSON would escape.
func (r *Reader) Fixed(n int) []byte {
	end := r.i + n + 1
	if r.failed || end >= len(r.b) || r.b[r.i] != '"' || r.b[end] != '"' {
		r.failed = true
		return nil
	}
	text := r.b[r.i+1 : end]
	r.i = end + 1
	return text
}

// String reads a string of printable ASCII characters without escapes.
func (r *Reader) String() string { return r.words.of(r.Quoted()) }

// Object reads an object without insignificant space and returns its text, which aliases the reader's input. It only finds
// the end of the object: the caller must check that the text is valid JSON.
func (r *Reader) Object() []byte {
	if r.failed || r.i >= len(r.b) || r.b[r.i] != '{' {
		r.failed = true
		return nil
	}
	b, start, depth := r.b, r.i, 0 // local variables, for speed: callers read every byte of a log with this loop
	for i := start; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
			if depth == 0 {
				r.i = i + 1
				return b[start:r.i]
			}
		case c <= ' ' && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			r.failed = true
			return nil
		}
	}
	r.failed = true
	return nil
}

// Elements estimates the length of an array of objects, for the capacity of a slice. The first element must be next. It reads nothing.
// The estimate is exact if no object has an array or an object, and no string has a bracket or a brace.
func (r *Reader) Elements() int {
	rest := r.b[r.i:]
	return bytes.Count(rest[:max(bytes.IndexByte(rest, ']'), 0)], []byte("{"))
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	if r.Try("true") {
		return true
	}
	r.Raw("false")
	return false
}

// maxDigits is the number of digits that always fit an int64.
const maxDigits = 18

// Int reads a non-negative integer of at most 18 digits.
func (r *Reader) Int() int64 {
	var n int64
	b, i := r.b, r.i
	if r.failed {
		return 0
	}
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	if length := i - r.i; length == 0 || length > maxDigits || length > 1 && b[r.i] == '0' {
		r.failed = true
		return 0
	}
	r.i = i
	return n
}

// Number reads a quoted decimal number, coef × 10^-scale. The reader fails at superfluous leading zeros, at more than 18
// digits and at minus zero.
func (r *Reader) Number() (coef int64, scale int) {
	b, i := r.b, r.i+1
	if r.failed || i >= len(b) || b[i-1] != '"' {
		r.failed = true
		return 0, 0
	}
	negative := b[i] == '-'
	if negative {
		i++
	}
	start, point := i, 0
	for ; i < len(b); i++ {
		if c := b[i] - '0'; c <= 9 {
			coef = coef*10 + int64(c)
		} else if b[i] == '.' && point == 0 {
			point = i
		} else {
			break
		}
	}
	whole, digits := i-start, i-start
	if point != 0 {
		whole, scale, digits = point-start, i-point-1, digits-1
		if scale == 0 {
			whole = 0
		}
	}
	if i == len(b) || b[i] != '"' || whole == 0 || digits > maxDigits || whole > 1 && b[start] == '0' || negative && coef == 0 {
		r.failed = true
		return 0, 0
	}
	if negative {
		coef = -coef
	}
	r.i = i + 1
	return coef, scale
}

// Moment reads a quoted timestamp of 27 bytes. It calls read to parse the text unless it is the same as the last one.
func (r *Reader) Moment(read func([]byte) (int64, bool)) int64 {
	b := r.Fixed(len(r.moment.text))
	if r.failed || r.moment.known && string(b) == string(r.moment.text[:]) {
		return r.moment.value
	}
	v, ok := read(b)
	if !ok {
		r.failed = true
		return 0
	}
	copy(r.moment.text[:], b)
	r.moment.known, r.moment.value = true, v
	return v
}

// Hex decodes lower-case hex digits into to. It reports whether there are exactly two valid digits for each byte.
func Hex(to, digits []byte) bool {
	if len(digits) != 2*len(to) {
		return false
	}
	bad := byte(0)
	for i := range to {
		high, low := nibbles[digits[2*i]], nibbles[digits[2*i+1]]
		bad |= high | low
		to[i] = high<<4 | low
	}
	return bad <= 15
}

// nibbles maps each lower-case hex digit to its value and every other byte to 0xff.
var nibbles = func() (table [256]byte) {
	for c := range table {
		switch {
		case '0' <= c && c <= '9':
			table[c] = byte(c - '0')
		case 'a' <= c && c <= 'f':
			table[c] = byte(c - 'a' + 10)
		default:
			table[c] = 0xff
		}
	}
	return table
}()

// Space skips white space.
func (r *Reader) Space() {
	for r.i < len(r.b) && (r.b[r.i] == ' ' || r.b[r.i] == '\n' || r.b[r.i] == '\r' || r.b[r.i] == '\t') {
		r.i++
	}
}

// Token reads s if the input continues with it after white space, and reports whether it did.
func (r *Reader) Token(s string) bool {
	r.Space()
	return r.Try(s)
}

// Plain reads a string of printable ASCII characters without escapes, a number, a boolean, or null. It returns the
// content of the string, or the number. It does not check the form of the number. The text aliases the reader's input.
func (r *Reader) Plain() (kind jsontext.Kind, text []byte) {
	if r.i < len(r.b) && r.b[r.i] == '"' {
		return '"', r.Quoted()
	}
	switch {
	case r.Try("null"):
		return 'n', nil
	case r.Try("true"):
		return 't', nil
	case r.Try("false"):
		return 'f', nil
	}
	start := r.i
	for r.i < len(r.b) && (r.b[r.i] >= '0' && r.b[r.i] <= '9' || r.b[r.i] == '-' || r.b[r.i] == '+' || r.b[r.i] == '.' || r.b[r.i]|0x20 == 'e') {
		r.i++
	}
	r.failed = r.failed || r.i == start
	return '0', r.b[start:r.i]
}

// Name reads the name of an object's member and the colon after it. The result is the text between the quotes, with its
// escapes, and aliases the reader's input.
func (r *Reader) Name() []byte {
	start := r.i + 1
	if r.skipString(); r.failed {
		return nil
	}
	name := r.b[start : r.i-1]
	r.Raw(":")
	return name
}

// Value reads a value without insignificant space and returns its bytes, which alias the reader's input. It finds the end
// of the value; it does not check that the bytes in between are valid JSON.
func (r *Reader) Value() []byte {
	start := r.i
	if r.failed || start >= len(r.b) {
		r.failed = true
		return nil
	}
	switch r.b[start] {
	case '"':
		r.skipString()
	case '{', '[':
		r.skipNested()
	default:
		for r.i < len(r.b) && r.b[r.i] != ',' && r.b[r.i] != '}' && r.b[r.i] != ']' {
			r.i++
		}
		r.failed = r.i == start
	}
	if r.failed {
		return nil
	}
	return r.b[start:r.i]
}

// skipNested skips an object or an array.
func (r *Reader) skipNested() {
	for depth := 0; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case '"':
			if r.skipString(); r.failed {
				return
			}
			r.i--
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				r.i++
				return
			}
		}
	}
	r.failed = true
}

// skipString skips a string, which may contain escapes.
func (r *Reader) skipString() {
	if r.failed || r.i >= len(r.b) || r.b[r.i] != '"' {
		r.failed = true
		return
	}
	b, i := r.b, r.i+1
	for i < len(b) {
		if i+8 <= len(b) {
			found := quoteOrBackslash(binary.LittleEndian.Uint64(b[i:]))
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8
		}
		switch b[i] {
		case '"':
			r.i = i + 1
			return
		case '\\':
			i++
		}
		i++
	}
	r.failed = true
}

// quoteOrBackslash sets the highest bit of each byte of w that is a quote or a backslash. Only the lowest marked byte is
// reliable.
func quoteOrBackslash(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^'"'*ones, w^'\\'*ones
	return ((quote-ones)&^quote | (backslash-ones)&^backslash) & highs
}

// Word reads a string that usually is one of the known words. It allocates no string for these.
func Word[T ~string](r *Reader, known ...T) T {
	b := r.Quoted()
	for _, w := range known {
		if string(w) == string(b) {
			return w
		}
	}
	return T(b)
}
