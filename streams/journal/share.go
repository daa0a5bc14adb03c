package journal

import (
	"sync"
	"sync/atomic"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// shares keep one user from filling an owner's queue: of each, no more commands wait than there is room left for others. So
// alone a user gets half of the queue, two who want all of it get a third each, and whoever comes next finds room.
type shares struct {
	users sync.Map // of *share, by username: no more than there are users
}

// share is how many commands of a user wait in the queue. A nil share is that of commands which nobody's share bounds.
type share struct{ waiting atomic.Int64 }

// of returns an actor's share. The system's commands are few, and nothing goes on without them.
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

// take counts one more command that waits, unless there is less room than the user would then have waiting.
func (s *share) take(room int) bool {
	if s == nil {
		return true
	}
	// Counted before it is compared: of several that come at once, none is passed over.
	if s.waiting.Add(1) <= int64(room) {
		return true
	}
	s.waiting.Add(-1)
	return false
}

// leave counts one that waits no more.
func (s *share) leave() {
	if s != nil {
		s.waiting.Add(-1)
	}
}
