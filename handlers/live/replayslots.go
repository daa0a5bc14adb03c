package live

import (
	"context"
	"sync"
)

// replaySlots limits the subscriptions that read the log concurrently, in total and for each user, so that one user cannot
// prevent others from resuming.
type replaySlots struct {
	all chan struct{} // one token for each reading subscription

	mu    sync.Mutex
	users map[string]*userTurns // users with subscriptions that read or wait
}

type userTurns struct {
	own     chan struct{} // one token for each subscription that reads or waits for all
	present int
}

func newReplaySlots() *replaySlots {
	return &replaySlots{all: make(chan struct{}, maxResuming), users: make(map[string]*userTurns)}
}

// take waits for a slot of the user. It returns a function that frees the slot, or false if the context ends first.
func (t *replaySlots) take(ctx context.Context, user string) (done func(), ok bool) {
	u := t.enter(user)
	// Acquire the user's token first. In the other order, a user with many subscriptions would hold tokens of all
	// while waiting for their own, and other users would have to wait.
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

func (t *replaySlots) enter(user string) *userTurns {
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

func (t *replaySlots) leave(user string, u *userTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.present--; u.present == 0 {
		delete(t.users, user)
	}
}
