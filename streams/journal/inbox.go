package journal

import (
	"sync"

	"github.com/perpetua-exchange/perpetua/streams/term"
)

// inbox passes requests from their clients to the owner's goroutine. Its length is bounded by the number of clients that
// wait: the machine answers those for which its queue has no room.
type inbox struct {
	ready chan struct{} // has a buffer of one; signals that requests is not empty

	mu       sync.Mutex
	open     bool // the owner's goroutine takes what is put in
	requests []*term.Request
}

// put adds requests. It returns false if the inbox is closed, and then adds none.
func (b *inbox) put(requests ...*term.Request) bool {
	b.mu.Lock()
	open := b.open
	first := open && len(b.requests) == 0
	if open {
		b.requests = append(b.requests, requests...)
	}
	b.mu.Unlock()
	if first {
		signal(b.ready)
	}
	return open
}

// take returns all requests in order. It reuses room as the buffer for the following ones.
func (b *inbox) take(room []*term.Request) []*term.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	requests := b.requests
	b.requests = room[:0]
	return requests
}

// set opens or closes the inbox. The requests in it stay.
func (b *inbox) set(open bool) {
	b.mu.Lock()
	b.open = open
	b.mu.Unlock()
}
