package term

import "time"

// The limits on the records that a term gathers before it hands them to the producer.
const (
	batchRecords = 64                   // flush at this count while no batch is in flight
	batchMost    = 1024                 // flush at this count in any case
	batchFor     = 2 * time.Millisecond // flush when the oldest record has waited this long
)

// batch collects the records of a term that are decided but not yet handed to the producer. Records decided while a batch
// is in flight form the next batch, which is flushed when the current one is acknowledged: the cost of a batch for the
// brokers, mainly one disk sync, hardly depends on its size. Slow or distant brokers could make that wait long, so a record
// waits at most batchFor, and several batches may then be in flight.
type batch struct {
	records  []*inflightRecord
	inFlight int // records handed to the producer and not acknowledged
}

// ready reports whether to flush. more says that another decision follows immediately.
func (b *batch) ready(now time.Duration, more bool) bool {
	switch n := len(b.records); {
	case n == 0:
		return false
	case b.inFlight == 0:
		return !more || n >= batchRecords
	default:
		return n >= batchMost || now-b.records[0].at >= batchFor
	}
}

// flush hands the gathered records to the producer.
func (m *Machine) flush() {
	b := &m.t.batch
	for _, s := range b.records {
		m.out.Append = append(m.out.Append, Append{Entry: &s.entry, At: s.at})
	}
	b.inFlight += len(b.records)
	clear(b.records)
	b.records = b.records[:0]
}
