package web

import (
	"context"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// readYourWrites records the latest position of each journal that this node returned to each user. A read by the same user
// waits for that position, so clients see their own writes without sending X-Min-Log-Position. All tokens and API keys of
// a user count as one. A nil readYourWrites records nothing.
//
// It belongs to Auth, so that the requests of all handlers are recorded if they carry a token or a key.
type readYourWrites struct {
	mu     sync.Mutex
	latest map[userJournal]int64
}

// userJournal is the key of a recorded position.
type userJournal struct{ username, journal string }

// maxRecorded bounds the recorded positions. When it is reached some are dropped, and those users read the current state
// without waiting.
const maxRecorded = 32768

func newReadYourWrites() *readYourWrites {
	return &readYourWrites{latest: make(map[userJournal]int64)}
}

// record notes the position that a request is answered with. It is called for every write, so it only stores a number.
func (r *readYourWrites) record(a Ask, p journal.LogPosition) {
	if r == nil || a.principal == nil || p.Partition != 0 {
		return
	}
	k := userJournal{a.principal.Username, p.Journal}
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.latest[k]
	if known && last >= p.Sequence {
		return
	}
	if !known && len(r.latest) >= maxRecorded {
		r.drop(maxRecorded / 4)
	}
	r.latest[k] = p.Sequence
}

// drop forgets n positions. The caller holds the lock.
func (r *readYourWrites) drop(n int) {
	for k := range r.latest {
		if n--; n < 0 {
			return
		}
		delete(r.latest, k)
	}
}

// recordHeaders is record for an answer that came from another node.
func (r *readYourWrites) recordHeaders(a Ask, h http.Header) {
	if r == nil {
		return
	}
	for _, text := range h[HeaderLogPosition] {
		if p, err := journal.ParseLogPosition(text); err == nil {
			r.record(a, p)
		}
	}
}

// last returns the sequence of the journal that the user was last answered with, -1 for none.
func (r *readYourWrites) last(a Ask, journal string) int64 {
	if r == nil || a.principal == nil {
		return -1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if sequence, known := r.latest[userJournal{a.principal.Username, journal}]; known {
		return sequence
	}
	return -1
}

// Await makes a read of a journal wait, up to two seconds, until the source has reached the position in X-Min-Log-Position
// and the one that this node last answered the user with. A named position that is not reached in time is answered 412. If
// only the other one is not reached, the read returns what there is, and names the position that it is as of.
func Await(c echo.Context, name string, source Waiter) error {
	named, err := leastSequence(c, name)
	if err != nil {
		return err
	}
	a := AskOf(c)
	last := a.answered.last(a, name)
	if named < 0 && last < 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), waitLimit)
	defer cancel()
	if named >= 0 {
		if err := await(ctx, c, source, named); err != nil {
			return err
		}
	}
	if last > named {
		_ = source.Wait(ctx, last)
	}
	return nil
}
