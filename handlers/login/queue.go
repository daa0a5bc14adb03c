package login

import "sync"

const (
	// maxWaiting bounds how many logins are under way at once, most of them waiting for their hash to be computed;
	// further ones are turned away.
	maxWaiting = 256
	// maxWaitingFrom bounds those from one address, so that one that floods the service keeps nobody else out.
	maxWaitingFrom = 64
)

// queue counts the logins that are under way, by address.
type queue struct {
	mu    sync.Mutex
	total int
	from  map[string]int
}

// enter lets a login in if there is room for it. Each that was let in has to leave.
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
