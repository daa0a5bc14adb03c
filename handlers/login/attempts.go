package login

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"
)

// How failed attempts are answered.
const (
	freeFailures = 5
	firstDelay   = time.Second
	longestDelay = 15 * time.Minute
	forgetAfter  = time.Hour
	maxTracked   = 65536
)

// attempts counts the failed logins of an account from an address. The attempts of one such pair take turns, so that a
// volley sent at once gets no further than one sent in a row.
type attempts struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[pair]*list.Element
	recent  *list.List // of *tracked, the least recently used first
}

type pair struct{ account, address string }

type tracked struct {
	pair     pair
	failures int
	until    time.Time // no attempt before
	seen     time.Time
	users    int           // requests that hold or wait for the turn
	turn     chan struct{} // of capacity one: full while an attempt is under way
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, entries: make(map[pair]*list.Element), recent: list.New()}
}

// begin waits for the pair's turn. It returns how long to wait before another attempt, if that is not yet over;
// otherwise the attempt has to end with finish.
func (a *attempts) begin(ctx context.Context, p pair) (t *tracked, wait time.Duration, err error) {
	t = a.hold(p)
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		a.release(t)
		return nil, 0, ctx.Err()
	}
	// Only with the turn in hand: of attempts that come together, each has to wait for what the one before it found.
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

// outcome of an attempt.
type outcome int

const (
	undecided outcome = iota // the server failed: it counts for nothing
	failed
	succeeded
)

// finish ends an attempt and gives up the turn.
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
	<-t.turn // after the count, or the next attempt would not meet the delay
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

// release lets go of an entry, and drops it at once if there is nothing to remember.
func (a *attempts) release(t *tracked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t.users--
	if t.users == 0 && t.failures == 0 {
		a.drop(t)
	}
}

// forget drops what is too old, and the oldest where there is too much.
func (a *attempts) forget(now time.Time) {
	for e := a.recent.Front(); e != nil; {
		t, next := e.Value.(*tracked), e.Next()
		if now.Sub(t.seen) < forgetAfter && len(a.entries) < maxTracked {
			return
		}
		// One in use stays: the next request of the pair would get an entry of its own, and with it a turn beside the other.
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

// network is the part of an address that counts as one place: all of an IPv4 address, the /64 of an IPv6 one, since
// whoever has one address there has all.
func network(address string) string {
	ip := net.ParseIP(address)
	if ip == nil || ip.To4() != nil {
		return address
	}
	return ip.Mask(net.CIDRMask(64, 128)).String()
}
