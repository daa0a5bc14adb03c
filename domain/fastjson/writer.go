// Package fastjson writes and reads JSON by hand, for the few types that are encoded and decoded most often.
//
// A Writer writes byte for byte what go-json-experiment/json would write, and a Reader accepts that form only. If a
// Reader fails, the caller decodes with the generic decoder, which reports the error or accepts the other form. Tests
// compare the two.
package fastjson

import (
	"encoding"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends JSON to Bytes. Err is the first error.
type Writer struct {
	Bytes []byte
	Err   error
}

// Raw appends s, which must be JSON.
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

// Text appends a quoted value with its AppendText method. The text must not contain bytes that JSON escapes.
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
