package live

import (
	"context"
	"sync"
)

// turns lets subscriptions read the log in turn: so many at once, and fewer of one user, so that nobody keeps all
// others from resuming.
type turns struct {
	all chan struct{} // holds a token for each that reads

	mu    sync.Mutex
	users map[string]*userTurns // who have subscriptions that read or wait
}

type userTurns struct {
	own     chan struct{} // holds a token for each that reads or waits for its turn among all
	present int
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, maxResuming), users: make(map[string]*userTurns)}
}

// take waits for a user's turn. It returns false if the context ends first, and otherwise what ends the turn.
func (t *turns) take(ctx context.Context, user string) (done func(), ok bool) {
	u := t.enter(user)
	// One's own place comes first. Taken the other way round, a user with many subscriptions would hold places among all
	// while it waits for its own, and others would wait for it.
	select {
	case u.own <- struct{}{}:
	case <-ctx.Done():
		t.leave(user, u)
		return nil, false
	}
	select {
	case t.all <- struct{}{}:
	case <-ctx.Done():
		<-u.own
		t.leave(user, u)
		return nil, false
	}
	return func() {
		<-t.all
		<-u.own
		t.leave(user, u)
	}, true
}

func (t *turns) enter(user string) *userTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.users[user]
	if u == nil {
		u = &userTurns{own: make(chan struct{}, maxResumingOfUser)}
		t.users[user] = u
	}
	u.present++
	return u
}

func (t *turns) leave(user string, u *userTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.present--; u.present == 0 {
		delete(t.users, user)
	}
}
