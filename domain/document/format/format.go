// Package format tells what a file is by its content and whether it is whole. It reads a stream once, from its beginning
// to its end, in bounded memory, and looks at the file's structure only: nothing is drawn, opened or run.
//
// A file is whole if it has all that its own structure says: chunks, boxes, segments and entries of the lengths that they
// name, and the mark at the end. A file that was cut short is refused, and so is one of another kind under this kind's
// name, since names are not looked at.
package format

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Format is a kind of file.
type Format string

// The kinds that can be told.
const (
	PDF  Format = "pdf"
	JPEG Format = "jpeg"
	PNG  Format = "png"
	WebP Format = "webp"
	HEIC Format = "heic"
	CSV  Format = "csv"
	XLSX Format = "xlsx"
)

// MediaType returns the type under which a file of the kind is served.
func (f Format) MediaType() string { return mediaTypes[f] }

var mediaTypes = map[Format]string{PDF: "application/pdf", JPEG: "image/jpeg", PNG: "image/png", WebP: "image/webp", HEIC: "image/heic",
	CSV: "text/csv; charset=utf-8", XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}

// IsTable reports whether the kind holds tables, which only some categories of documents take.
func (f Format) IsTable() bool { return f == CSV || f == XLSX }

// Error says why a file is not taken.
type Error struct {
	Format Format // empty: of no kind that can be told
	Reason string
}

// Error returns the reason, behind the kind.
func (e *Error) Error() string {
	if e.Format == "" {
		return e.Reason
	}
	return string(e.Format) + ": " + e.Reason
}

// Window is how far ahead a file is looked at, in bytes.
const Window = 64 << 10

// Identify reads r to its end and returns what it is. What is no file of the kinds above, or not a whole one, is an
// *Error; every other error is one of r's own. With tables, CSV and XLSX are among the kinds. A *bufio.Reader of at least
// Window bytes is read as it is, others through a buffer.
func Identify(r io.Reader, tables bool) (Format, error) {
	s := &source{r: bufio.NewReaderSize(r, Window)}
	head, err := s.Peek(32)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return "", err
	case len(head) == 0:
		return "", &Error{Reason: "the file is empty"}
	}
	f, check := reader(head, tables)
	if check == nil {
		return "", &Error{Reason: "the content is of no type that is taken here"}
	}
	switch err := check(s); {
	case s.failed != nil:
		return "", s.failed
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", &Error{Format: f, Reason: "the file ends before its own structure does"}
	case err != nil:
		return "", &Error{Format: f, Reason: err.Error()}
	}
	return f, nil
}

// reader returns the kind whose signature a file begins with, and what reads the rest of it.
func reader(head []byte, tables bool) (Format, func(*source) error) {
	at := func(i int, text string) bool { return len(head) >= i+len(text) && string(head[i:i+len(text)]) == text }
	switch {
	case pdfBegin.Match(head):
		return PDF, (*source).pdf
	case at(0, "\xff\xd8\xff"):
		return JPEG, (*source).jpeg
	case at(0, pngSignature):
		return PNG, (*source).png
	case at(0, "RIFF") && at(8, "WEBP"):
		return WebP, (*source).webp
	case at(4, "ftyp") && head[0] == 0: // the length of the box, which a table with a column of that name does not begin with
		return HEIC, (*source).heic
	case at(0, "PK\x03\x04"):
		if tables {
			return XLSX, (*source).xlsx
		}
	case tables:
		return CSV, (*source).csv
	}
	return "", nil
}

// source is a stream that knows how far it was read, and keeps the first error that is not an end.
type source struct {
	r      *bufio.Reader // not embedded: its WriteTo would read without counting
	at     int64
	failed error

	packed io.Reader // what unpacked the last part of a package, to unpack the next
	piece  []byte    // room for a piece of a part
}

// Peek returns the next n bytes without reading them.
func (s *source) Peek(n int) ([]byte, error) { return s.r.Peek(n) }

// note keeps an error of the stream's own, so that it is not taken for a fault of the file.
func (s *source) note(n int, err error) error {
	s.at += int64(n)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && s.failed == nil {
		s.failed = err
	}
	return err
}

// Read implements io.Reader.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	return n, s.note(n, err)
}

// ReadByte implements io.ByteReader. What inflates reads byte by byte, so that it takes none beyond its own.
func (s *source) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err != nil {
		return 0, s.note(0, err)
	}
	s.at++
	return b, nil
}

// next reads n bytes, at most Window. They are valid until the next read.
func (s *source) next(n int) ([]byte, error) {
	b, err := s.Peek(n)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, s.note(0, err)
	}
	d, err := s.r.Discard(n)
	return b, s.note(d, err)
}

// skip passes over n bytes, all of which must be there.
func (s *source) skip(n int64) error { return s.pass(n, func([]byte) {}) }

// pass passes over n bytes, all of which must be there, and shows them as they lie in the buffer.
func (s *source) pass(n int64, show func([]byte)) error {
	if n < 0 {
		return errors.New("a length below zero")
	}
	for n > 0 {
		if _, err := s.Peek(1); err != nil { // and with it the buffer is filled
			return cut(s.note(0, err))
		}
		b, err := s.next(int(min(n, int64(s.r.Buffered()))))
		if err != nil {
			return err
		}
		show(b)
		n -= int64(len(b))
	}
	return nil
}

// ended reports whether the stream is at its end.
func (s *source) ended() bool {
	_, err := s.Peek(1)
	return err != nil && s.note(0, err) != nil
}

func (s *source) end(of string) error {
	if !s.ended() {
		return fmt.Errorf("there is more behind %s", of)
	}
	return nil
}

func be32(b []byte) int64 { return int64(binary.BigEndian.Uint32(b)) }
func le32(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) }
func le16(b []byte) int64 { return int64(binary.LittleEndian.Uint16(b)) }
