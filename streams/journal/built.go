package journal

import (
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// The bounds of what a process remembers of the records that it has built itself.
const (
	builtRecords = windowRecords // as many as may be on their way to the log and back
	builtBytes   = 16 << 10      // of a value; larger ones are read again
)

// built are the latest records that an owner of this process has made of a partition: what its readers would make of
// the same bytes when they come back from the log. They are recognized by all of their bytes, which say it all: whether
// such a record is valid is none of their business. It is safe for concurrent use, and so are the records, which never
// change.
type built struct {
	records [builtRecords]atomic.Pointer[builtRecord]
}

type builtRecord struct {
	record *Record
	value  []byte
	hash   Hash
}

// add remembers a record, if what it holds is what decoding its value would make, down to the last nil.
func (b *built) add(e Entry) {
	if len(e.Value) > builtBytes {
		return
	}
	for _, v := range e.Record.Events {
		if c, ok := v.(decide.Canonical); !ok || !c.Canonical() {
			return
		}
	}
	b.records[e.Record.Sequence%builtRecords].Store(&builtRecord{e.Record, e.Value, e.Position.Hash})
}

// find returns the record with a sequence, if it is one of these.
func (b *built) find(sequence int64) (*builtRecord, bool) {
	if b == nil || sequence < 0 {
		return nil, false
	}
	r := b.records[sequence%builtRecords].Load()
	return r, r != nil && r.record.Sequence == sequence
}

// built returns what this process has built of a partition.
func (c *Client) built(p place) *built {
	c.sharing.Lock()
	defer c.sharing.Unlock()
	b := c.own[p]
	if b == nil {
		b = new(built)
		c.own[p] = b
	}
	return b
}
