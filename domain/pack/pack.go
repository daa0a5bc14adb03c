// Package pack writes and reads the compact binary encoding of snapshots: numbers of variable length, strings with their
// lengths, and words. A word is a string that is written once and then referred to by number.
//
// The encoding does not store types: values MUST be read in the order in which they were written. A Reader validates its
// input. After the first invalid value it has failed and returns only zero values.
package pack

import (
	"encoding/binary"
	"errors"
	"math"
)

// Writer appends to Bytes. The zero Writer is ready for use.
type Writer struct {
	Bytes []byte
	words map[string]uint64 // text to number; numbers start at 1
	last  [4]word           // the most recent words, by length modulo 4
}

type word struct {
	text   string
	number uint64
}

// Uint appends a non-negative number.
func (w *Writer) Uint(n uint64) { w.Bytes = binary.AppendUvarint(w.Bytes, n) }

// Len appends a length or count.
func (w *Writer) Len(n int) { w.Uint(uint64(n)) }

// Int appends a number. Numbers closer to zero take fewer bytes.
func (w *Writer) Int(n int64) { w.Bytes = binary.AppendVarint(w.Bytes, n) }

// Byte appends a byte.
func (w *Writer) Byte(b byte) { w.Bytes = append(w.Bytes, b) }

// Bool appends a boolean.
func (w *Writer) Bool(b bool) {
	if b {
		w.Byte(1)
	} else {
		w.Byte(0)
	}
}

// Raw appends bytes without their length, which the reader must derive.
func (w *Writer) Raw(b []byte) { w.Bytes = append(w.Bytes, b...) }

// String appends a string.
func (w *Writer) String(s string) {
	w.Len(len(s))
	w.Bytes = append(w.Bytes, s...)
}

// Word appends a string that is likely to occur again.
func (w *Writer) Word(s string) {
	last := &w.last[len(s)%len(w.last)]
	if last.number > 0 && last.text == s {
		w.Uint(last.number)
		return
	}
	n, ok := w.words[s]
	if ok {
		*last = word{s, n}
		w.Uint(n)
		return
	}
	if w.words == nil {
		w.words = make(map[string]uint64)
	}
	*last = word{s, uint64(len(w.words) + 1)}
	w.words[s] = last.number
	w.Uint(0)
	w.String(s)
}

// ErrForm says that the input is truncated, or that a Writer did not write it.
var ErrForm = errors.New("the saved state is cut off or damaged")

// Reader reads the output of a Writer. The values that it returns do not alias its input.
type Reader struct {
	rest  []byte
	err   error
	words []string
}

// NewReader returns a reader of b.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// Err returns the error with which the reader has failed, or nil.
func (r *Reader) Err() error { return r.err }

// Fail makes the reader fail with err, unless it has failed before. Callers use it for invalid values.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err, r.rest = err, nil
	}
}

// Done returns the reader's error, or ErrForm if unread input is left.
func (r *Reader) Done() error {
	if len(r.rest) > 0 {
		r.Fail(ErrForm)
	}
	return r.err
}

// Uint reads a non-negative number.
func (r *Reader) Uint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		n := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.Fail(ErrForm)
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// Int reads a number.
func (r *Reader) Int() int64 {
	n := r.Uint()
	if n&1 != 0 {
		return ^int64(n >> 1)
	}
	return int64(n >> 1)
}

// Len reads the number of the elements that follow, each of at least size bytes. The reader fails if its remaining input
// is too short for them.
func (r *Reader) Len(size int) int {
	n := r.Uint()
	if n > uint64(len(r.rest)/size) {
		r.Fail(ErrForm)
		return 0
	}
	return int(n)
}

// Index reads a non-negative number below limit.
func (r *Reader) Index(limit int) int {
	n := r.Uint()
	if n >= uint64(max(limit, 0)) {
		r.Fail(ErrForm)
		return 0
	}
	return int(n)
}

// Small reads a number that fits an int32.
func (r *Reader) Small() int {
	n := r.Int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.Fail(ErrForm)
		return 0
	}
	return int(n)
}

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail(ErrForm)
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	b := r.Byte()
	if b > 1 {
		r.Fail(ErrForm)
	}
	return b == 1
}

// Raw reads len(b) bytes into b.
func (r *Reader) Raw(b []byte) {
	if len(r.rest) < len(b) {
		r.Fail(ErrForm)
		return
	}
	copy(b, r.rest)
	r.rest = r.rest[len(b):]
}

// String reads a string.
func (r *Reader) String() string {
	n := r.Len(1)
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

// Word reads a word. Equal words share one string in memory.
func (r *Reader) Word() string {
	n := r.Uint()
	if n == 0 {
		s := r.String()
		r.words = append(r.words, s)
		return s
	}
	if n > uint64(len(r.words)) {
		r.Fail(ErrForm)
		return ""
	}
	return r.words[n-1]
}
