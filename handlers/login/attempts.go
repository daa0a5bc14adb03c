package login

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// These constants configure the delays after failed attempts.
const (
	freeFailures = 5
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
	forgetAfter  = time.Hour
	maxTracked   = 65536
)

// attempts counts failed logins for each pair of account and address. Attempts of the same pair run one after the
// other, so concurrent attempts gain nothing over consecutive ones.
type attempts struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[pair]*list.Element
	recent  *list.List // of *tracked, least recently used first
}

type pair struct{ account, address string }

type tracked struct {
	pair     pair
	failures int
	until    time.Time // earliest time of the next attempt
	seen     time.Time
	users    int           // requests that hold or await the turn
	turn     chan struct{} // capacity 1; full while an attempt is running
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, entries: make(map[pair]*list.Element), recent: list.New()}
}

// begin waits for the pair's turn. If a delay is in force, it returns the remaining wait and no attempt. Otherwise
// the caller must end the attempt with finish.
func (a *attempts) begin(ctx context.Context, p pair) (t *tracked, wait time.Duration, err error) {
	t = a.hold(p)
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		a.release(t)
		return nil, 0, ctx.Err()
	}
	// Check the delay only while holding the turn: a concurrent attempt must see the failures of the one before it.
	a.mu.Lock()
	wait = t.until.Sub(a.now())
	a.mu.Unlock()
	if wait > 0 {
		<-t.turn
		a.release(t)
		return nil, wait, nil
	}
	return t, 0, nil
}

// outcome is the result of an attempt.
type outcome int

const (
	undecided outcome = iota // an error of the server or a disconnect; not counted
	failed
	succeeded
)

// finish ends an attempt and passes the turn on.
func (a *attempts) finish(t *tracked, o outcome) {
	a.mu.Lock()
	switch o {
	case failed:
		t.failures++
		if over := t.failures - freeFailures; over >= 0 {
			t.until = a.now().Add(min(longestDelay, firstDelay<<min(over, 16)))
		}
	case succeeded:
		t.failures = 0
	}
	a.mu.Unlock()
	<-t.turn // after counting; otherwise the next attempt would miss the delay
	a.release(t)
}

func (a *attempts) hold(p pair) *tracked {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.forget(now)
	e, ok := a.entries[p]
	if !ok {
		e = a.recent.PushBack(&tracked{pair: p, turn: make(chan struct{}, 1)})
		a.entries[p] = e
	}
	t := e.Value.(*tracked)
	t.users++
	t.seen = now
	a.recent.MoveToBack(e)
	return t
}

// release ends a request's use of an entry. It removes the entry if no request uses it and no failures are recorded.
func (a *attempts) release(t *tracked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.users--
	if t.users == 0 && t.failures == 0 {
		a.drop(t)
	}
}

// forget removes expired entries and, while the map is too large, the oldest ones.
func (a *attempts) forget(now time.Time) {
	for e := a.recent.Front(); e != nil; {
		t, next := e.Value.(*tracked), e.Next()
		if now.Sub(t.seen) < forgetAfter && len(a.entries) < maxTracked {
			return
		}
		// Keep an entry in use. A new request of the pair would otherwise create a second entry and could run
		// concurrently.
		if t.users == 0 {
			a.drop(t)
		}
		e = next
	}
}

func (a *attempts) drop(t *tracked) {
	if e, ok := a.entries[t.pair]; ok && e.Value == t {
		a.recent.Remove(e)
		delete(a.entries, t.pair)
	}
}
