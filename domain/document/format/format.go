// Package format determines the format of a file from its content, and whether the file is complete. It reads a stream
// once from beginning to end in bounded memory. It inspects only the structure of the file: it renders and executes
// nothing.
//
// A file is complete if it contains everything that its structure declares: chunks, boxes, segments and entries of the
// declared lengths, and the end marker. Truncated files are rejected. File names are ignored.
//
// Start reading at Identify. Each format has a check method on source.
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

// The formats that are recognized.
const (
	PDF  Format = "pdf"
	JPEG Format = "jpeg"
	PNG  Format = "png"
	WebP Format = "webp"
	HEIC Format = "heic"
	CSV  Format = "csv"
	XLSX Format = "xlsx"
)

// MediaType returns the media type with which a file of the format is served.
func (f Format) MediaType() string { return mediaTypes[f] }

var mediaTypes = map[Format]string{PDF: "application/pdf", JPEG: "image/jpeg", PNG: "image/png", WebP: "image/webp", HEIC: "image/heic",
	CSV: "text/csv; charset=utf-8", XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}

// IsTable reports whether the format contains tables, which only some document categories accept.
func (f Format) IsTable() bool { return f == CSV || f == XLSX }

// Error says why a file is rejected.
type Error struct {
	Format Format // empty if the format is unknown
	Reason string
}

// Error returns the format and the reason.
func (e *Error) Error() string {
	if e.Format == "" {
		return e.Reason
	}
	return string(e.Format) + ": " + e.Reason
}

// Window is the lookahead within a file, in bytes.
const Window = 64 << 10

// Identify reads r to its end and returns the format. It returns an *Error if the file has none of the formats or is
// incomplete; all other errors are read errors of r. CSV and XLSX are accepted only if tables is true. A *bufio.Reader
// with a buffer of at least Window bytes is used directly.
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

// reader returns the format that matches the signature at the start of the file, and the method that checks the rest.
// The method is nil if no format matches.
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
	case at(4, "ftyp") && head[0] == 0: // part of the box length; no CSV file starts with a zero byte
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

// source is a stream that counts the bytes read and keeps the first read error other than the end of the file.
type source struct {
	r      *bufio.Reader // not embedded: its WriteTo would read without counting
	at     int64
	failed error

	packed io.Reader // the decompressor of the last part of a package, reused for the next
	piece  []byte    // the buffer for decompressed bytes
}

// Peek returns the next n bytes without consuming them.
func (s *source) Peek(n int) ([]byte, error) { return s.r.Peek(n) }

// note counts n consumed bytes and keeps a read error of the stream, so that it is not reported as an error of the file.
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

// ReadByte implements io.ByteReader. The decompressor reads single bytes and therefore consumes nothing after the end of
// its data.
func (s *source) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err != nil {
		return 0, s.note(0, err)
	}
	s.at++
	return b, nil
}

// next consumes and returns n bytes, at most Window. They are valid until the next read.
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

// skip consumes n bytes. It is an error if fewer bytes are left.
func (s *source) skip(n int64) error { return s.pass(n, func([]byte) {}) }

// pass consumes n bytes and calls show with each piece, without copying. It is an error if fewer bytes are left.
func (s *source) pass(n int64, show func([]byte)) error {
	if n < 0 {
		return errors.New("a length below zero")
	}
	for n > 0 {
		if _, err := s.Peek(1); err != nil { // this also fills the buffer
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

// ended reports whether the stream has no more bytes.
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
