package journal

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The limits on the records that a term gathers before it hands them to the producer.
const (
	gatherRecords = 64                   // flush at this count while no batch is in flight
	gatherMost    = 1024                 // flush at this count in any case
	gatherFor     = 2 * time.Millisecond // flush when the oldest record has waited this long
)

// accumulator collects the records of a term that are decided but not yet handed to the producer. Records decided while
// a batch is in flight form the next batch, which is flushed when the current one is acknowledged: the cost of a batch
// for the brokers, mainly one disk sync, hardly depends on its size. Slow or distant brokers could make that wait long,
// so a record waits at most gatherFor, and several batches may then be in flight.
type accumulator struct {
	slots    []*slot
	inFlight int       // records handed to the producer and not acknowledged
	since    time.Time // when the oldest of slots was added
}

// add appends a record. The record's own time s.at is the current time.
func (b *accumulator) add(s *slot) {
	if len(b.slots) == 0 {
		b.since = s.at
	}
	b.slots = append(b.slots, s)
}

// ready reports whether to flush. more says that another decision follows immediately.
func (b *accumulator) ready(more bool) bool {
	switch n := len(b.slots); {
	case n == 0:
		return false
	case b.inFlight == 0:
		return !more || n >= gatherRecords
	default:
		return n >= gatherMost || time.Since(b.since) >= gatherFor
	}
}

// left returns how much longer the gathered records may wait. ok is false if none are gathered.
func (b *accumulator) left() (wait time.Duration, ok bool) {
	return gatherFor - time.Since(b.since), len(b.slots) > 0
}

// flush hands the gathered records to the producer.
func (t *term) flush() {
	b := &t.gathered
	to := t.o.address(t.id)
	for _, s := range b.slots {
		t.writer.Produce(context.Background(), s.message.fill(to, s.entry.Record, s.entry.Value), func(k *kgo.Record, err error) {
			t.acks.put(ack{slot: s, offset: k.Offset, err: err})
		})
	}
	b.inFlight += len(b.slots)
	clear(b.slots)
	b.slots = b.slots[:0]
}
