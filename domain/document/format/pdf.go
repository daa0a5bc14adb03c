package format

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
)

// pdfTail is how much of the end of a PDF is looked at.
const pdfTail = 2048

var (
	pdfEnd        = regexp.MustCompile(`startxref[ \t\r\n\f\x00]+([0-9]{1,10})[ \t\r\n\f\x00]+%%EOF[ \t\r\n\f\x00]*$`)
	pdfLinearized = regexp.MustCompile(`/Linearized[ \t\r\n\f\x00]`)
	pdfLength     = regexp.MustCompile(`/L[ \t\r\n\f\x00]+([0-9]{1,10})`)
)

// pdf looks at both ends of a file (ISO 32000-1, 7.5): the last lines say where the cross-reference begins, which must be
// in the file, and a linearized file says its length at the beginning. A file that was cut has other last lines.
func (s *source) pdf() error {
	head, err := s.Peek(1024)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.note(0, err)
	}
	declared := int64(0)
	if m := pdfLength.FindSubmatch(head); m != nil && pdfLinearized.Match(head) {
		declared, _ = strconv.ParseInt(string(m[1]), 10, 64)
	}
	tail, err := s.tail(pdfTail)
	if err != nil {
		return err
	}
	if s.at < declared {
		return io.ErrUnexpectedEOF
	}
	m := pdfEnd.FindSubmatch(tail)
	if m == nil {
		return errors.New("it does not end as a whole file does")
	}
	if start, err := strconv.ParseInt(string(m[1]), 10, 64); err != nil || start >= s.at {
		return errors.New("its cross-reference lies behind its end")
	}
	return nil
}

// tail reads to the end and returns the last n bytes.
func (s *source) tail(n int) ([]byte, error) {
	last, block := make([]byte, 0, 2*n), make([]byte, n)
	for {
		read, err := s.Read(block)
		last = append(last, block[:read]...)
		if len(last) > n {
			last = append(last[:0], last[len(last)-n:]...)
		}
		if errors.Is(err, io.EOF) {
			return bytes.Clone(last), nil
		}
		if err != nil {
			return nil, err
		}
	}
}
