// Package slots limits how many operations of a kind a node runs concurrently, in total and for each user, tenant, or network. A
// user with clients that send or read slowly, or not at all, therefore leaves capacity for the others.
package slots

import (
	"context"
	"sync"
)

// Slots is a limit of concurrent operations. It is safe for concurrent use.
type Slots struct {
	all  chan struct{} // one token for each running operation
	each int           // limit of one user

	mu     sync.Mutex
	shares map[string]*share // of users that hold or await a slot
}

type share struct {
	taken chan struct{} // one token for each operation that runs or waits for all
	users int
}

// New returns a limit of all operations and of each operations of one user.
func New(all, each int) *Slots {
	return &Slots{all: make(chan struct{}, all), each: each, shares: make(map[string]*share)}
}

// Take waits for a slot of the user. It returns a function that frees the slot, or false if the context ends first. A
// slot that is free is taken even if the context has ended.
func (s *Slots) Take(ctx context.Context, user string) (leave func(), ok bool) {
	userShare := s.join(user)
	// Acquire the user's token first. In the other order, a user at the limit would hold tokens of all while waiting for
	// another one, and other users would have to wait.
	if !acquire(ctx, userShare.taken) {
		s.part(user, userShare)
		return nil, false
	}
	if !acquire(ctx, s.all) {
		<-userShare.taken
		s.part(user, userShare)
		return nil, false
	}
	return func() {
		<-s.all
		<-userShare.taken
		s.part(user, userShare)
	}, true
}

// join returns a user's share. The share is removed when all have called part.
func (s *Slots) join(user string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	userShare := s.shares[user]
	if userShare == nil {
		userShare = &share{taken: make(chan struct{}, s.each)}
		s.shares[user] = userShare
	}
	userShare.users++
	return userShare
}

func (s *Slots) part(user string, userShare *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if userShare.users--; userShare.users == 0 {
		delete(s.shares, user)
	}
}

func acquire(ctx context.Context, tokens chan<- struct{}) bool {
	select {
	case tokens <- struct{}{}:
		return true
	default:
	}
	select {
	case tokens <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}
