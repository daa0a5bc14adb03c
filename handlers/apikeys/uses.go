package apikeys

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	// maxWaiting is the capacity of the queue of uses. A use that finds the queue full is dropped; the key's next use
	// queues again.
	maxWaiting = 1024
	// tellWithin is the timeout for recording a use.
	tellWithin = 15 * time.Second
	// pause is how long further uses of a key are ignored after an attempt to record one, even a failed one. Two
	// delays need it: this node must first read the record, and the journal's owner refuses the use while its clock
	// has not reached the day of this node's clock.
	pause = time.Second
)

// Uses writes to the log on which days keys were used: one record per key and day, even if a key is used on several
// nodes. If recording fails, the key's next use tries again. A day may be missed if a node dies between the key's only
// request of that day and its record.
type Uses struct {
	to      submit.Submitter // the owner of the identity journal, on any node
	logger  *slog.Logger
	waiting chan scalar.ID

	mu      sync.Mutex
	pending map[scalar.ID]time.Time // when the next use is accepted; zero while one is queued or being recorded
}

// NewUses returns a recorder of uses. It records nothing before Run is called.
func NewUses(to submit.Submitter, logger *slog.Logger) *Uses {
	return &Uses{to: to, logger: logger, waiting: make(chan scalar.ID, maxWaiting), pending: make(map[scalar.ID]time.Time)}
}

// Note queues a use of a key if the log has no use of it today. It never blocks. It is called for every request with
// the key until this node has read the record of today's first use.
func (u *Uses) Note(k access.APIKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if next, there := u.pending[k.ID]; there && (next.IsZero() || time.Now().Before(next)) {
		return
	}
	select {
	case u.waiting <- k.ID:
		u.pending[k.ID] = time.Time{}
	default:
	}
}

// Run records uses one by one until the context ends, and returns nil.
func (u *Uses) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-u.waiting:
			recorded := u.tell(ctx, id)
			u.passOver(id)
			if recorded {
				continue
			}
			select { // the owner is unreachable and would not accept the next use either
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// passOver ignores further uses of a key for pause. It also removes expired entries if the map has grown large.
func (u *Uses) passOver(id scalar.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.pending[id] = now.Add(pause)
	if len(u.pending) > 2*maxWaiting {
		maps.DeleteFunc(u.pending, func(_ scalar.ID, next time.Time) bool { return !next.IsZero() && !now.Before(next) })
	}
}

// tell submits a use and reports whether the journal's owner answered, either with a record or with a refusal.
func (u *Uses) tell(ctx context.Context, id scalar.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	_, err := u.to.Submit(ctx, identityJournal, decide.Command{ID: operation.NewID(), Type: identity.CommandUseAPIKey,
		Actor: decide.Actor{System: "api_keys"}, Payload: &identity.UseAPIKey{ID: id}})
	var refused *submit.RefusedError
	// Another node was first, the key is revoked, or the owner's clock has another day.
	if err == nil || errors.As(err, &refused) {
		return true
	}
	u.logger.Debug("the use of an API key was not kept; its next one will be", "api_key", id.String(), "error", err)
	return false
}
