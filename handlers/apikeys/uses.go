package apikeys

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

const (
	// maxWaiting is how many keys' uses wait to be told. One that finds no place is told at its next use.
	maxWaiting = 1024
	// tellWithin is how long a use may take to be told.
	tellWithin = 15 * time.Second
	// pause is what follows one that could not be told.
	pause = time.Second
)

// Uses has the log keep on which days keys were used: one record for each key and day, whichever node sees the key first.
// A use that could not be told is told at the next one, so a last use may be missed where a node dies between a key's
// only request of a day and its record.
type Uses struct {
	to      journal.Submitter // wherever the journal's owner is
	logger  *slog.Logger
	waiting chan scalar.ID

	mu      sync.Mutex
	pending map[scalar.ID]struct{} // in waiting, or on their way
}

// NewUses makes a teller of uses. It tells none before it runs.
func NewUses(to journal.Submitter, logger *slog.Logger) *Uses {
	return &Uses{to: to, logger: logger, waiting: make(chan scalar.ID, maxWaiting), pending: make(map[scalar.ID]struct{})}
}

// Note takes a key of which the log does not tell that it is used today. It never waits. Every request of the key comes
// here until the record of its first use is followed.
func (u *Uses) Note(k web.APIKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, there := u.pending[k.ID]; there {
		return
	}
	select {
	case u.waiting <- k.ID:
		u.pending[k.ID] = struct{}{}
	default:
	}
}

// Run tells uses until the context ends, one after the other, and returns nil.
func (u *Uses) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-u.waiting:
			if !u.tell(ctx, id) {
				select { // whoever uses the key meanwhile would have it told again at once
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
			u.mu.Lock()
			delete(u.pending, id)
			u.mu.Unlock()
		}
	}
}

// tell reports whether the log tells of the use now.
func (u *Uses) tell(ctx context.Context, id scalar.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	_, err := u.to.Submit(ctx, identityJournal, decide.Command{ID: web.NewID(), Type: identity.CommandUseAPIKey,
		Actor: decide.Actor{System: "api_keys"}, Payload: &identity.UseAPIKey{ID: id}})
	var refused *journal.RefusedError
	if err == nil || errors.As(err, &refused) { // another node was first, or the key is revoked
		return true
	}
	u.logger.Debug("the use of an API key was not kept; its next one will be", "api_key", id.String(), "error", err)
	return false
}
