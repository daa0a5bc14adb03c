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
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const (
	// maxWaiting is how many keys' uses wait to be told. One that finds no place is told at its next use.
	maxWaiting = 1024
	// tellWithin is how long a use may take to be told.
	tellWithin = 15 * time.Second
	// pause is how long a key's next uses are passed over once one was told, whatever came of it: the record has to be
	// followed first; and where the clock of the journal's owner has not come to the day yet that it is here, it refuses
	// the use until it has.
	pause = time.Second
)

// Uses has the log keep on which days keys were used: one record for each key and day, whichever node sees the key first.
// A use that could not be told is told at the next one, so a last use may be missed where a node dies between a key's
// only request of a day and its record.
type Uses struct {
	to      submit.Submitter // wherever the journal's owner is
	logger  *slog.Logger
	waiting chan scalar.ID

	mu      sync.Mutex
	pending map[scalar.ID]time.Time // when the key's next use counts; zero while one waits or is on its way
}

// NewUses makes a teller of uses. It tells none before it runs.
func NewUses(to submit.Submitter, logger *slog.Logger) *Uses {
	return &Uses{to: to, logger: logger, waiting: make(chan scalar.ID, maxWaiting), pending: make(map[scalar.ID]time.Time)}
}

// Note takes a key of which the log does not tell that it is used today. It never waits. Every request of the key comes
// here until the record of its first use is followed.
func (u *Uses) Note(k web.APIKey) {
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

// Run tells uses until the context ends, one after the other, and returns nil.
func (u *Uses) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-u.waiting:
			told := u.tell(ctx, id)
			u.passOver(id)
			if told {
				continue
			}
			select { // nobody takes it, nor the next one
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// passOver passes over a key's next uses for a while. Keys that are used no more are forgotten on the way.
func (u *Uses) passOver(id scalar.ID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	u.pending[id] = now.Add(pause)
	if len(u.pending) > 2*maxWaiting {
		maps.DeleteFunc(u.pending, func(_ scalar.ID, next time.Time) bool { return !next.IsZero() && !now.Before(next) })
	}
}

// tell reports whether the journal's owner has answered: the log tells of the use now, or it refused to.
func (u *Uses) tell(ctx context.Context, id scalar.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, tellWithin)
	defer cancel()
	_, err := u.to.Submit(ctx, identityJournal, decide.Command{ID: web.NewID(), Type: identity.CommandUseAPIKey,
		Actor: decide.Actor{System: "api_keys"}, Payload: &identity.UseAPIKey{ID: id}})
	var refused *submit.RefusedError
	if err == nil || errors.As(err, &refused) { // another node was first, the key is revoked, or its owner has another day
		return true
	}
	u.logger.Debug("the use of an API key was not kept; its next one will be", "api_key", id.String(), "error", err)
	return false
}
