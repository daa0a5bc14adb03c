package format

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxRecord is the greatest length of a CSV record in bytes. The reader holds one whole record in memory.
const maxRecord = 1 << 20

const byteOrderMark = "\ufeff"

// csv checks UTF-8 text record by record (RFC 4180). All records must have the same number of fields. The separator is
// the comma, the semicolon or the tab: the most frequent in the first record. Text that starts with < is markup
// and is rejected.
func (s *source) csv() error {
	if b, err := s.Peek(len(byteOrderMark)); err == nil && string(b) == byteOrderMark {
		if _, err := s.next(len(byteOrderMark)); err != nil {
			return err
		}
	}
	head, err := s.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.note(0, err)
	}
	if first := strings.TrimSpace(string(head)); first == "" || first[0] == '<' {
		return errors.New("it is no table")
	}
	text := &textReader{from: s}
	r := csv.NewReader(text)
	r.Comma, r.ReuseRecord = separator(head), true
	for {
		text.left = maxRecord
		if _, err := r.Read(); errors.Is(err, io.EOF) {
			return text.whole()
		} else if err != nil {
			return err
		}
	}
}

// separator returns the most frequent separator in the first record, outside of quotes.
func separator(head []byte) rune {
	counts, quoted := make(map[rune]int), false
	for _, c := range string(head) {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			break
		}
		if !quoted {
			counts[c]++
		}
	}
	best := ','
	for _, c := range []rune{';', '\t'} {
		if counts[c] > counts[best] {
			best = c
		}
	}
	return best
}

// textReader passes valid text on and limits the length of a record.
type textReader struct {
	from *source
	left int    // bytes that the current record may still have
	held []byte // the first bytes of a character that is split between two reads
}

var errLongRecord = fmt.Errorf("a record has more than %d bytes", maxRecord)

// Read implements io.Reader.
func (t *textReader) Read(b []byte) (int, error) {
	if t.left <= 0 {
		return 0, errLongRecord
	}
	n, err := t.from.Read(b)
	t.left -= n
	if bad := t.check(b[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// check validates each character of b. An incomplete character at the end of b is completed by the next call.
func (t *textReader) check(b []byte) error {
	for len(t.held) > 0 && len(b) > 0 {
		t.held, b = append(t.held, b[0]), b[1:]
		size, err := character(t.held)
		if err != nil {
			return err
		}
		if size > 0 {
			t.held = t.held[:0]
		}
	}
	for len(b) > 0 {
		size, err := character(b)
		if err != nil {
			return err
		}
		if size == 0 {
			t.held = append(t.held[:0], b...)
			return nil
		}
		b = b[size:]
	}
	return nil
}

// character returns the length of the first character of b in bytes, or 0 if b ends within it. Invalid UTF-8 and control
// characters other than line breaks and tabs are errors.
func character(b []byte) (size int, err error) {
	r, size := utf8.DecodeRune(b)
	switch {
	case r == utf8.RuneError && size <= 1:
		if !utf8.FullRune(b) {
			return 0, nil
		}
		return 0, errors.New("it is not UTF-8 text")
	case unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t':
		return 0, errors.New("it has control characters")
	}
	return size, nil
}

func (t *textReader) whole() error {
	if len(t.held) > 0 {
		return io.ErrUnexpectedEOF
	}
	return nil
}
