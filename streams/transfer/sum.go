package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Sum is the SHA-256 of records in their order, over all parts that a copy must preserve. Equal sums mean that Differs finds no
// difference. The zero Sum is that of no records. A Sum MUST NOT be copied after the first record.
type Sum struct {
	hash    hash.Hash
	records int64
}

// Add adds the next record.
func (s *Sum) Add(r *kgo.Record) {
	if s.hash == nil {
		s.hash = sha256.New()
	}
	s.records++
	s.number(r.Timestamp.UnixMilli())
	s.bytes(r.Key)
	s.bytes(r.Value)
	s.number(int64(len(r.Headers)))
	for _, h := range r.Headers {
		s.bytes([]byte(h.Key))
		s.bytes(h.Value)
	}
}

// Records returns the number of records.
func (s *Sum) Records() int64 { return s.records }

// Equal reports whether two sums are of the same records.
func (s *Sum) Equal(o *Sum) bool {
	return s.records == o.records && (s.records == 0 || string(s.hash.Sum(nil)) == string(o.hash.Sum(nil)))
}

// bytes adds bytes to the sum, preceded by their length, so that different records never have the same sum.
func (s *Sum) bytes(b []byte) {
	n := int64(len(b))
	if b == nil {
		n = -1
	}
	s.number(n)
	s.hash.Write(b)
}

func (s *Sum) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	s.hash.Write(b[:])
}
