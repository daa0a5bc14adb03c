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
type writer struct {
	bytes []byte
	words map[string]uint64 // text to number; numbers start at 1
	last  [4]word           // the most recent words, by length modulo 4
}

type word struct {
	text   string
	number uint64
}

// uint appends a number that is not negative.
func (w *writer) uint(n uint64) {
	for n >= 0x80 {
		w.bytes = append(w.bytes, byte(n)|0x80)
		n >>= 7
	}
	w.bytes = append(w.bytes, byte(n))
}

// Raw appends bytes without their length, which the reader must derive.
func (w *writer) int(n int64) { w.uint(uint64(n)<<1 ^ uint64(n>>63)) }

func (w *writer) byte(b byte) { w.bytes = append(w.bytes, b) }

func (w *writer) raw(b []byte) { w.bytes = append(w.bytes, b...) }

func (w *writer) string(s string) {
	w.uint(uint64(len(s)))
	w.bytes = append(w.bytes, s...)
}

// word appends a string, or its number if it was appended before, and notes it in last.
func (w *writer) word(s string, last *word) {
	n, ok := w.words[s]
	if ok {
		*last = word{s, n}
		w.uint(n)
		return
	}
	if w.words == nil {
		w.words = make(map[string]uint64)
	}
	*last = word{s, uint64(len(w.words) + 1)}
	w.words[s] = last.number
	w.uint(0)
	w.string(s)
}

// ErrForm is the error for bytes that Append did not append, or not all of them.
var ErrForm = errors.New("the saved state is cut off or damaged")

// reader reads what a writer wrote. It refers to nothing of the bytes that it has read. After the first invalid value it
// has failed and returns only zero values.
type reader struct {
	bytes []byte
	at    int // of the next byte
	err   error
	words []string
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.at = err, len(r.bytes)
	}
}

// left returns the number of bytes that were not read.
func (r *reader) left() int { return len(r.bytes) - r.at }

// done returns an error unless everything was read, and without a failure.
func (r *reader) done() error {
	if r.left() > 0 {
		r.fail(ErrForm)
	}
	return r.err
}

// one reads a number of one byte. It returns false, and reads nothing, if the next number is longer.
func (r *reader) one() (n uint8, ok bool) {
	if r.at < len(r.bytes) && r.bytes[r.at] < 0x80 {
		n, ok = r.bytes[r.at], true
		r.at++
	}
	return n, ok
}

func (r *reader) uint() uint64 {
	if n, ok := r.one(); ok {
		return uint64(n)
	}
	n, size := binary.Uvarint(r.bytes[r.at:])
	if size <= 0 {
		r.fail(ErrForm)
		return 0
	}
	r.at += size
	return n
}

func (r *reader) int() int64 {
	n := r.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// len reads the number of the elements that follow, each of at least one byte. The reader fails if its remaining input
// is too short for them.
func (r *reader) len() int {
	n := r.uint()
	if n > uint64(r.left()) {
		r.fail(ErrForm)
		return 0
	}
	return int(n)
}

// Index reads a non-negative number below limit.
func (r *reader) index(limit int) int {
	n := r.uint()
	if n >= uint64(max(limit, 0)) {
		r.fail(ErrForm)
		return 0
	}
	return int(n)
}

// small reads a number that fits an int32.
func (r *reader) small() int {
	n := r.int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.fail(ErrForm)
		return 0
	}
	return int(n)
}

func (r *reader) byte() byte {
	if r.left() == 0 {
		r.fail(ErrForm)
		return 0
	}
	r.at++
	return r.bytes[r.at-1]
}

func (r *reader) bool() bool {
	b := r.byte()
	if b > 1 {
		r.fail(ErrForm)
	}
	return b == 1
}

// Raw reads len(b) bytes into b.
func (r *reader) raw(b []byte) {
	if r.left() < len(b) {
		r.fail(ErrForm)
		return
	}
	r.at += copy(b, r.bytes[r.at:])
}

func (r *reader) string() string {
	n := r.len()
	r.at += n
	return string(r.bytes[r.at-n : r.at])
}

// Word reads a word. Equal words share one string in memory.
func (r *reader) word() string {
	n := r.uint()
	if n == 0 {
		s := r.string()
		r.words = append(r.words, s)
		return s
	}
	if n > uint64(len(r.words)) {
		r.fail(ErrForm)
		return ""
	}
	return r.words[n-1]
}
