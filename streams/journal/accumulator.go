package journal

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The bounds of what a term gathers before it hands it to the producer.
const (
	gatherRecords = 64                   // are enough when nothing is under way
	gatherMost    = 1024                 // are enough in any case
	gatherFor     = 2 * time.Millisecond // is the longest that a record waits for others
)

// accumulator are the records of a term that are decided and not handed to the producer yet. What is decided while a batch
// is under way goes with the next one, once that is acknowledged: a batch costs the brokers about the same whatever it
// holds, a sync of the disk above all. So that this is never more than a small part of a second late, where brokers are
// slow or far, a record waits no longer than gatherFor; several batches may then be under way.
type accumulator struct {
	slots    []*slot
	inFlight int       // records handed over and not acknowledged
	since    time.Time // of the oldest of slots
}

// add takes a record whose time is now.
func (b *accumulator) add(s *slot) {
	if len(b.slots) == 0 {
		b.since = s.at
	}
	b.slots = append(b.slots, s)
}

// ready reports whether to hand over what has gathered; more says that another decision follows at once.
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

// left returns how long what has gathered may still wait, if there is anything.
func (b *accumulator) left() (wait time.Duration, ok bool) {
	return gatherFor - time.Since(b.since), len(b.slots) > 0
}

// flush hands over what has gathered.
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
