package archive

import (
	"encoding/binary"
	"errors"
)

var errForm = errors.New("it is not in the form of an archive")

// scanner reads numbers and bytes. After an error all results are zero.
type scanner struct {
	b   []byte
	err error
}

func (s *scanner) fail() {
	if s.err == nil {
		s.err = errForm
	}
	s.b = nil
}

func (s *scanner) take(n int) []byte {
	if n < 0 || n > len(s.b) {
		s.fail()
		return nil
	}
	out := s.b[:n:n]
	s.b = s.b[n:]
	return out
}

func (s *scanner) byte() byte {
	if b := s.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (s *scanner) uvarint() uint64 {
	n, size := binary.Uvarint(s.b)
	if size <= 0 {
		s.fail()
		return 0
	}
	s.b = s.b[size:]
	return n
}

func (s *scanner) varint() int64 {
	n, size := binary.Varint(s.b)
	if size <= 0 {
		s.fail()
		return 0
	}
	s.b = s.b[size:]
	return n
}

// count reads a number that is at most limit.
func (s *scanner) count(limit int) int {
	n := s.uvarint()
	if n > uint64(limit) {
		s.fail()
		return 0
	}
	return int(n)
}

// bytes reads what appendBytes has appended.
func (s *scanner) bytes() []byte {
	n := s.count(len(s.b))
	if n == 0 {
		return nil
	}
	return s.take(n - 1)
}
