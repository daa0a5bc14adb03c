package format

import (
	"errors"
	"io"
	"regexp"
	"strconv"
)

// pdfTail is how much of the end of a PDF is looked at.
const pdfTail = 2048

var (
	// Servers put a mark of the encoding or blank lines before a document that they pass on. Readers do not mind.
	pdfBegin      = regexp.MustCompile(`^(\x{feff}|[ \t\r\n\f\x00])*%PDF-[12]\.`)
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
	last, err := s.tail(maxZipEnd)
	if err != nil {
		return err
	}
	if endsAsZip(last) { // it has the other's last lines as its comment
		return errors.New("it is an archive as well")
	}
	tail := last[max(0, len(last)-pdfTail):]
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
	last, block := make([]byte, 0, 2*n), make([]byte, min(n, 8<<10))
	for {
		read, err := s.Read(block)
		if len(last)+read > cap(last) { // seldom, so that little is moved
			last = append(last[:0], last[len(last)-n:]...)
		}
		last = append(last, block[:read]...)
		if errors.Is(err, io.EOF) {
			return last[max(0, len(last)-n):], nil
		}
		if err != nil {
			return nil, err
		}
	}
}
