package web

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// The headers that are ours.
const (
	HeaderRequestID      = "X-Request-Id"
	HeaderLogPosition    = "X-Log-Position"
	HeaderMinLogPosition = "X-Min-Log-Position"
	HeaderIdempotencyKey = "Idempotency-Key"
)

// waitLimit is how long a read waits for its source to reach the position that the client names.
const waitLimit = 2 * time.Second

// NewID makes a UUIDv7: 48 bits of milliseconds, the rest random.
func NewID() decide.ID {
	var id decide.ID
	rand.Read(id[:]) // never fails
	ms := uint64(time.Now().UnixMilli())
	var t [8]byte
	binary.BigEndian.PutUint64(t[:], ms<<16)
	copy(id[:6], t[:6])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// RequestID returns the id of the request: the client's own X-Request-Id if it is a plain one, else a new one.
func RequestID(c echo.Context) string { return c.Response().Header().Get(HeaderRequestID) }

// requestID gives every request an id and every answer the same one.
func requestID(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		id := c.Request().Header.Get(HeaderRequestID)
		if code, _ := Reference(id); code != "" {
			id = NewID().String()
			c.Request().Header.Set(HeaderRequestID, id) // a node that the request is passed on to uses the same
		}
		c.Response().Header().Set(HeaderRequestID, id)
		return next(c)
	}
}

// IdempotencyKey reads the header. No header is an empty key; a bad one is a problem.
func IdempotencyKey(c echo.Context) (string, error) {
	keys := c.Request().Header.Values(HeaderIdempotencyKey)
	if len(keys) == 0 {
		return "", nil
	}
	code, message := Reference(keys[0])
	if len(keys) > 1 {
		code, message = DuplicateField, "the header is given more than once"
	}
	if code != "" {
		return "", Invalid(Fault{Field: HeaderIdempotencyKey, Code: code, Message: message, path: []any{HeaderIdempotencyKey}})
	}
	return keys[0], nil
}

const commandKey = "web.command"

// NewCommand makes a command on behalf of the request's principal. It carries the Idempotency-Key if there is one,
// and a fingerprint if there is a key or the body names a reference_id. Forms that hold a secret or personal data
// need a SealedFingerprint in its place: set Kept.Fingerprint afterwards.
func NewCommand(c echo.Context, commandType string, ask any, forms ...*Form) (decide.Command, error) {
	key, err := IdempotencyKey(c)
	if err != nil {
		return decide.Command{}, err
	}
	cmd := decide.Command{ID: forwardedCommand(c), Type: commandType, Ask: ask, Kept: decide.Kept{Key: key}}
	if cmd.ID.IsZero() {
		cmd.ID = NewID()
	}
	if p := PrincipalOf(c); p != nil {
		cmd.Actor = p.Actor()
	}
	named := key != ""
	for _, f := range forms {
		named = named || f != nil && f.Has("reference_id")
	}
	if named {
		cmd.Kept.Fingerprint = Fingerprint(c, forms...)
	}
	c.Set(commandKey, cmd.ID)
	return cmd, nil
}

// commandOf returns the id of the command that the request became, or none.
func commandOf(c echo.Context) decide.ID {
	id, _ := c.Get(commandKey).(decide.ID)
	return id
}

// A Waiter waits until its source has applied the record with a sequence. Folds and projections are waiters.
type Waiter interface {
	Wait(ctx context.Context, sequence int64) error
}

// Await makes a read wait for the position in X-Min-Log-Position, if there is one: up to two seconds, else 412. A
// position in another journal than the source's is never reached by it.
func Await(c echo.Context, name string, source Waiter) error {
	text := c.Request().Header.Get(HeaderMinLogPosition)
	if text == "" {
		return nil
	}
	position, err := journal.ParseLogPosition(text)
	if err != nil {
		return Invalid(Fault{Field: HeaderMinLogPosition, Code: InvalidValue, path: []any{HeaderMinLogPosition},
			Message: "the position must have the form journal/partition@sequence"})
	}
	if position.Journal != name || position.Partition != 0 {
		return notReached("This answer follows the journal " + name + ", not the one that the position names.")
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), waitLimit)
	defer cancel()
	err = source.Wait(ctx, position.Sequence)
	switch {
	case err == nil:
		return nil
	case c.Request().Context().Err() != nil:
		return c.Request().Context().Err()
	case errors.Is(err, context.DeadlineExceeded), ctx.Err() != nil:
		return notReached("The position was not reached within two seconds.")
	}
	return Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}

func notReached(detail string) *Problem {
	return NewProblem(http.StatusPreconditionFailed, "LOG_POSITION_NOT_REACHED", detail)
}
