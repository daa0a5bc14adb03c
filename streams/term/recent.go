package term

import (
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The limits on an owner's recent records.
const (
	recentRecords = 8192
	recentBytes   = 32 << 20
)

// recent holds the latest records of a partition without a gap, to answer repeated commands from memory.
type recent struct {
	entries fifo[record.Entry]
	bytes   int
}

func (r *recent) add(e record.Entry) {
	if all := r.entries.all(); len(all) > 0 && all[len(all)-1].Position.Sequence+1 != e.Position.Sequence {
		*r = recent{}
	}
	r.entries.push(e)
	r.bytes += len(e.Value)
	for r.entries.len() > recentRecords || (r.bytes > recentBytes && r.entries.len() > 1) {
		r.bytes -= len(r.entries.pop().Value)
	}
}

func (r *recent) find(sequence int64) (record.Entry, bool) {
	all := r.entries.all()
	if len(all) == 0 {
		return record.Entry{}, false
	}
	i := sequence - all[0].Position.Sequence
	if i < 0 || i >= int64(len(all)) {
		return record.Entry{}, false
	}
	return all[i], true
}
