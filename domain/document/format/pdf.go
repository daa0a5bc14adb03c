package format

import (
	"errors"
	"io"
	"regexp"
	"strconv"
)

// pdfTail is the length of the end of a PDF file in which the last lines must be, in bytes.
const pdfTail = 2048

var (
	// Servers may add a byte order mark or blank lines before a document. PDF readers ignore them.
	pdfBegin      = regexp.MustCompile(`^(\x{feff}|[ \t\r\n\f\x00])*%PDF-[12]\.`)
	pdfEnd        = regexp.MustCompile(`startxref[ \t\r\n\f\x00]+([0-9]{1,10})[ \t\r\n\f\x00]+%%EOF[ \t\r\n\f\x00]*$`)
	pdfLinearized = regexp.MustCompile(`/Linearized[ \t\r\n\f\x00]`)
	pdfLength     = regexp.MustCompile(`/L[ \t\r\n\f\x00]+([0-9]{1,10})`)
)

// pdf checks both ends of a file (ISO 32000-1, 7.5). The last lines give the offset of the cross-reference, which must
// be within the file. A linearized file also declares its length at the beginning. A truncated file lacks these last
// lines.
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
	if endsAsZip(last) { // the PDF's last lines are the comment of the archive
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

// tail reads to the end of the stream and returns the last n bytes.
func (s *source) tail(n int) ([]byte, error) {
	last, block := make([]byte, 0, 2*n), make([]byte, min(n, 8<<10))
	for {
		read, err := s.Read(block)
		if len(last)+read > cap(last) { // rare, so that few bytes are copied
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
