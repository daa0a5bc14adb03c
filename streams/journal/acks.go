package journal

import "sync"

// ack is the producer's result for one record.
type ack struct {
	slot   *slot
	offset int64
	err    error
}

// acks queues the producer's results until the term reads them. The producer reports a whole batch together and never
// waits for the term.
type acks struct {
	some chan struct{} // has a buffer of one; signals that said is not empty

	mu   sync.Mutex
	said []ack
}

func newAcks() *acks { return &acks{some: make(chan struct{}, 1)} }

func (q *acks) put(a ack) {
	q.mu.Lock()
	q.said = append(q.said, a)
	first := len(q.said) == 1
	q.mu.Unlock()
	if first {
		select {
		case q.some <- struct{}{}:
		default:
		}
	}
}

// take returns all queued results in order. It reuses room as the buffer for the following ones.
func (q *acks) take(room []ack) []ack {
	q.mu.Lock()
	defer q.mu.Unlock()
	said := q.said
	q.said = room[:0]
	return said
}
