package columns

import (
	"encoding/binary"
	"errors"
)

// stream is a sequence of bytes, written or read from its beginning.
type stream struct {
	b        []byte
	repeated int // if > 0, the only byte in b is read that many times
	i        int
}

func (s *stream) byte(c byte)      { s.b = append(s.b, c) }
func (s *stream) uvarint(n uint64) { s.b = binary.AppendUvarint(s.b, n) }
func (s *stream) varint(n int64)   { s.b = binary.AppendVarint(s.b, n) }

var (
	errShort = errors.New("a stream ends too early")
	errLeft  = errors.New("a stream is longer than the values")
	errRange = errors.New("a number is out of range")
)

func (s *stream) readByte() (byte, error) {
	if s.repeated > 0 {
		if s.i >= s.repeated {
			return 0, errShort
		}
		s.i++
		return s.b[0], nil
	}
	if s.i >= len(s.b) {
		return 0, errShort
	}
	s.i++
	return s.b[s.i-1], nil
}

func (s *stream) readUvarint() (uint64, error) {
	if s.repeated == 0 && s.i < len(s.b) && s.b[s.i] < 0x80 {
		s.i++
		return uint64(s.b[s.i-1]), nil
	}
	var n uint64
	for shift := 0; ; shift += 7 {
		c, err := s.readByte()
		if err != nil {
			return 0, err
		}
		if shift == 63 && c > 1 {
			return 0, errRange
		}
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return n, nil
		}
	}
}

func (s *stream) readVarint() (int64, error) {
	u, err := s.readUvarint()
	return int64(u>>1) ^ -int64(u&1), err
}

func (s *stream) take(n int) ([]byte, error) {
	if s.repeated > 0 {
		out := make([]byte, 0, min(n, s.repeated))
		for range n {
			c, err := s.readByte()
			if err != nil {
				return nil, err
			}
			out = append(out, c)
		}
		return out, nil
	}
	if n < 0 || n > len(s.b)-s.i {
		return nil, errShort
	}
	s.i += n
	return s.b[s.i-n : s.i], nil
}

// done reports whether all bytes were read.
func (s *stream) done() bool {
	if s.repeated > 0 {
		return s.i == s.repeated
	}
	return s.i == len(s.b)
}
