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

// maxRecord is how long one record of a CSV file may be, in bytes: the reader holds one whole.
const maxRecord = 1 << 20

const byteOrderMark = "\ufeff"

// csv reads UTF-8 text record by record (RFC 4180); all have one number of fields. Fields are separated by the comma, the
// semicolon or the tab, whichever the first line has most of. Text that begins as markup does is not taken for a table.
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

// separator returns what separates the fields of the first record, in which what stands in quotes does not count.
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

// textReader passes on text and nothing else, and no more at a time than a record may have.
type textReader struct {
	from *source
	left int    // of the record that is being read
	held []byte // the beginning of a character whose rest has not come
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

// check looks at each character; one that is cut by the end of b is looked at with the rest of it.
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

// character returns how many bytes the first character of b has, 0 where some of them have not come. Those that a text does
// not have are errors.
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
