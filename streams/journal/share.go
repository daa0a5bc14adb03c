package journal

import (
	"sync"
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// shares prevents one user from filling an owner's queue. A user may have at most as many queued commands as there are
// free slots. So one user can fill half of the queue and two users a third each, and another user still finds room.
type shares struct {
	users sync.Map // of *share, by username; bounded by the number of users
}

// share counts a user's queued commands. A nil share is unlimited.
type share struct{ waiting atomic.Int64 }

// of returns an actor's share. It returns nil for the system, which sends few commands and must never be blocked.
func (s *shares) of(a decide.Actor) *share {
	if a.System != "" || a.Sub == "" {
		return nil
	}
	if own, known := s.users.Load(a.Sub); known {
		return own.(*share)
	}
	own, _ := s.users.LoadOrStore(a.Sub, new(share))
	return own.(*share)
}

// take counts one more queued command. It returns false if the user would then have more queued commands than room.
func (s *share) take(room int) bool {
	if s == nil {
		return true
	}
	// Count before comparing: concurrent calls then see each other.
	if s.waiting.Add(1) <= int64(room) {
		return true
	}
	s.waiting.Add(-1)
	return false
}

// leave counts a command that has left the queue.
func (s *share) leave() {
	if s != nil {
		s.waiting.Add(-1)
	}
}
