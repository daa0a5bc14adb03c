package journal

import (
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/perpetua-exchange/perpetua/streams/term"
)

// acks queues the results of one producer until the owner's goroutine reads them. The producer reports a whole batch
// together and never waits for the owner.
type acks struct {
	ready chan struct{} // has a buffer of one; signals that received is not empty

	mu       sync.Mutex
	received []term.Ack
	decided  []time.Duration // when each record was decided; notCounted for a term record
}

// notCounted is the decision time of a record that the metrics do not count.
const notCounted = -1

func newAcks() *acks { return &acks{ready: make(chan struct{}, 1)} }

func (q *acks) put(sequence, offset int64, err error, decided time.Duration) {
	a := term.Ack{Sequence: sequence, Offset: offset, Err: err, TooLarge: errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)}
	q.mu.Lock()
	q.received, q.decided = append(q.received, a), append(q.decided, decided)
	first := len(q.received) == 1
	q.mu.Unlock()
	if first {
		signal(q.ready)
	}
}

// take returns all queued results in order. It reuses the two slices as buffers for the following ones.
func (q *acks) take(room []term.Ack, times []time.Duration) ([]term.Ack, []time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	received, decided := q.received, q.decided
	q.received, q.decided = room[:0], times[:0]
	return received, decided
}

// signal fills a channel with a buffer of one.
func signal(ready chan<- struct{}) {
	select {
	case ready <- struct{}{}:
	default:
	}
}
