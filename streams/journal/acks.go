package journal

import "sync"

// ack is the producer's word on one record.
type ack struct {
	slot   *slot
	offset int64
	err    error
}

// acks are what the producer has said and the term has not read yet. The producer speaks of a whole batch at a time,
// and never waits for the term.
type acks struct {
	some chan struct{} // takes a word without blocking when there are some

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

// take returns everything that was said, in its order. room is used again for what comes next.
func (q *acks) take(room []ack) []ack {
	q.mu.Lock()
	defer q.mu.Unlock()
	said := q.said
	q.said = room[:0]
	return said
}
