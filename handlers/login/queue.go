package login

import "sync"

const (
	// maxWaiting limits concurrent logins, most of which wait for a hash slot. Further logins are rejected.
	maxWaiting = 256
	// maxWaitingFrom limits concurrent logins from one address, so that a flood from one address does not block the
	// others.
	maxWaitingFrom = 64
)

// queue counts the running logins by address.
type queue struct {
	mu    sync.Mutex
	total int
	from  map[string]int
}

// enter reports whether a login may start. The caller must call leave after each successful enter.
func (q *queue) enter(address string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total >= maxWaiting || q.from[address] >= maxWaitingFrom {
		return false
	}
	if q.from == nil {
		q.from = make(map[string]int)
	}
	q.total++
	q.from[address]++
	return true
}

func (q *queue) leave(address string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total--
	if q.from[address]--; q.from[address] == 0 {
		delete(q.from, address)
	}
}
