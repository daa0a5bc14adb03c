// Package codec writes and reads JSON by hand, for the few types that are encoded and decoded all the time.
//
// The form is not its own: what a Writer writes is byte for byte what go-json-experiment/json would, and a Reader
// accepts that form and no other. Whoever finds that a Reader failed decodes again with the generic decoder, which
// then says what is wrong, or takes what is merely written in another way. Tests hold both against each other.
package codec

import (
	"encoding"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends JSON to Bytes. The first error stays.
type Writer struct {
	Bytes []byte
	Err   error
}

// Raw appends what is JSON already.
func (w *Writer) Raw(s string) { w.Bytes = append(w.Bytes, s...) }

// String appends a string, quoted.
func (w *Writer) String(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			b, err := jsontext.AppendQuote(w.Bytes, s)
			w.Bytes = b
			w.fail(err)
			return
		}
	}
	w.Bytes = append(w.Bytes, '"')
	w.Bytes = append(w.Bytes, s...)
	w.Bytes = append(w.Bytes, '"')
}

// Bool appends a boolean.
func (w *Writer) Bool(v bool) {
	if v {
		w.Raw("true")
	} else {
		w.Raw("false")
	}
}

// Text appends a value that writes itself, in quotes. It must write nothing that JSON would have to escape.
func Text[T encoding.TextAppender](w *Writer, v T) {
	b, err := v.AppendText(append(w.Bytes, '"'))
	w.Bytes = append(b, '"')
	w.fail(err)
}

func (w *Writer) fail(err error) {
	if w.Err == nil {
		w.Err = err
	}
}

// Reader reads what a Writer wrote. After the first deviation it has failed, and all that it returns is void.
type Reader struct {
	b      []byte
	failed bool
}

// NewReader returns a reader of b, which it does not keep.
func NewReader(b []byte) Reader { return Reader{b: b} }

// Done reports whether everything was read, to the end.
func (r *Reader) Done() bool { return !r.failed && len(r.b) == 0 }

// Failed reports whether there was a deviation.
func (r *Reader) Failed() bool { return r.failed }

// Raw reads what must come next.
func (r *Reader) Raw(s string) {
	if !r.Try(s) {
		r.failed = true
	}
}

// Try reads s if it comes next, and reports whether it did.
func (r *Reader) Try(s string) bool {
	if r.failed || len(r.b) < len(s) || string(r.b[:len(s)]) != s {
		return false
	}
	r.b = r.b[len(s):]
	return true
}

// Quoted reads a string in which nothing is escaped, in ASCII. It returns a part of what is read.
func (r *Reader) Quoted() []byte {
	if r.failed || len(r.b) == 0 || r.b[0] != '"' {
		r.failed = true
		return nil
	}
	for i := 1; i < len(r.b); i++ {
		switch c := r.b[i]; {
		case c == '"':
			text := r.b[1:i]
			r.b = r.b[i+1:]
			return text
		case c < ' ' || c >= 0x7f || c == '\\':
			r.failed = true
			return nil
		}
	}
	r.failed = true
	return nil
}

// String reads a string.
func (r *Reader) String() string { return string(r.Quoted()) }

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	if r.Try("true") {
		return true
	}
	r.Raw("false")
	return false
}

// ReadText reads a value that reads itself.
func ReadText[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](r *Reader, to P) {
	if text := r.Quoted(); !r.failed && to.UnmarshalText(text) != nil {
		r.failed = true
	}
}
