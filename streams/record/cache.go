package record

import (
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// maxCached is the size in bytes of the largest value that an EncodedCache keeps.
const maxCached = 16 << 10

// EncodedCache keeps the latest records that an owner in this process has encoded, by their sequences. When the same bytes
// come back from the log, a Chain takes the record from the cache instead of decoding them. It compares all bytes, and the
// cache says nothing about validity. An EncodedCache is safe for concurrent use. A nil EncodedCache is empty.
type EncodedCache struct {
	records []atomic.Pointer[encoded]
}

// encoded is a record with its value and the SHA-256 of the value.
type encoded struct {
	record *Record
	value  []byte
	hash   Hash
}

// NewEncodedCache returns an empty cache with room for n records.
func NewEncodedCache(n int) *EncodedCache {
	return &EncodedCache{records: make([]atomic.Pointer[encoded], n)}
}

// Add adds a record. It ignores records with a large value, and those that decoding the value would not reproduce exactly.
func (c *EncodedCache) Add(e Entry) {
	if len(e.Value) > maxCached {
		return
	}
	for _, v := range e.Record.Events {
		if canonical, ok := v.(decide.Canonical); !ok || !canonical.Canonical() {
			return
		}
	}
	c.records[e.Record.Sequence%int64(len(c.records))].Store(&encoded{e.Record, e.Value, e.Position.Hash})
}

// find returns the record with the given sequence.
func (c *EncodedCache) find(sequence int64) (*encoded, bool) {
	if c == nil || sequence < 0 {
		return nil, false
	}
	r := c.records[sequence%int64(len(c.records))].Load()
	return r, r != nil && r.record.Sequence == sequence
}
