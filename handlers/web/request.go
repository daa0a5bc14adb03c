package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// These are the headers defined by this interface.
const (
	HeaderRequestID      = "X-Request-Id"
	HeaderLogPosition    = "X-Log-Position"
	HeaderMinLogPosition = "X-Min-Log-Position"
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderCommandID is the ID of a command with an unknown outcome, for the onboarding interface, where an error
	// consists of a code only.
	HeaderCommandID = "X-Command-Id"
)

// waitLimit is how long a read waits for its source to reach a position. rereadAfter is the interval at which rows
// that are too old are read again.
const (
	waitLimit   = 2 * time.Second
	rereadAfter = 25 * time.Millisecond
)

// header returns the first value of a header. name must be canonical; http.Header.Get would verify that on each call.
func header(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// identify sets the ID of the request and the response.
func (r *request) identify() {
	r.id = header(r.Request(), HeaderRequestID)
	if !form.Reference.Allow(r.id) {
		id, spare := newIDs()
		r.id, r.spare = id.String(), spare
	}
	r.Response().Header()[HeaderRequestID] = []string{r.id}
}

// Key returns the Idempotency-Key, or "" if there is none. An invalid key is an error.
func (a Request) Key() (string, error) {
	keys := a.transport.keys()
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 {
		return "", givenTwice(HeaderIdempotencyKey)
	}
	if code, message := form.Reference.Rule(keys[0]); code != "" {
		return "", invalidHeader(HeaderIdempotencyKey, code, message)
	}
	return keys[0], nil
}

// Keyed reports whether the request has an Idempotency-Key, valid or not.
func (a Request) Keyed() bool { return len(a.transport.keys()) > 0 }

// givenTwice returns the problem for a header that is given more than once.
func givenTwice(name string) *Problem {
	return invalidHeader(name, validation.DuplicateField, "the header is given more than once")
}

func invalidHeader(name, code, message string) *Problem {
	return Invalid(validation.FieldError{In: validation.InHeader, Path: validation.At(name), Code: code, Message: message})
}

// NewCommand is like the function NewCommand.
func (a Request) NewCommand(payload decide.Payload, forms ...*Form) (decide.Command, error) {
	cmd, err := a.BareCommand(payload)
	if err != nil {
		return decide.Command{}, err
	}
	named := cmd.Metadata.Key != ""
	for _, f := range forms {
		named = named || f.Has("reference_id")
	}
	if named {
		cmd.Metadata.Fingerprint = a.fingerprint(forms...)
	}
	return cmd, nil
}

// BareCommand is NewCommand without a fingerprint, for operations that compute another one.
func (a Request) BareCommand(payload decide.Payload) (decide.Command, error) {
	key, err := a.Key()
	if err != nil {
		return decide.Command{}, err
	}
	n := a.requestScope
	cmd := decide.Command{ID: a.CommandID(), Type: payload.CommandType(), Payload: payload, Metadata: decide.Metadata{Key: key, Session: n.session}}
	if n.principal != nil {
		cmd.Actor = n.principal.Actor()
	}
	n.traced.Command, n.spare, n.command = scalar.ID{}, scalar.ID{}, cmd.ID // use the ID only once
	return cmd, nil
}

// CommandID returns the ID of the request's next command. It is the ID of the request's trace, if there is one, so that
// the record leads to the trace.
func (a Request) CommandID() scalar.ID {
	n := a.requestScope
	switch {
	case !n.traced.Command.IsZero():
		return n.traced.Command
	case n.spare.IsZero():
		n.spare = NewID()
	}
	return n.spare
}

// IDFor returns an ID for an object that the request's next command creates. It is a function of the command's ID and
// of what.
func (a Request) IDFor(what string) scalar.ID {
	command := a.CommandID()
	sum := sha256.Sum256(append(command[:], what...))
	id := scalar.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // UUID version 8
	return id
}

// Part is one command of a request with several.
type Part struct {
	Payload     decide.Payload
	Fingerprint string // of this part only
}

// Commands returns the commands of a request's parts on behalf of the principal. If the request has an
// Idempotency-Key, each command's key combines it with a fingerprint of the whole request and the index of the part
// (decide.BatchKey).
func (a Request) Commands(parts []Part) ([]decide.Command, error) {
	var whole []byte
	for _, p := range parts {
		whole = append(whole, p.Fingerprint...)
	}
	out := make([]decide.Command, len(parts))
	for i, p := range parts {
		cmd, err := a.BareCommand(p.Payload)
		if err != nil {
			return nil, err
		}
		if key := cmd.Metadata.Key; key != "" {
			cmd.Metadata.Key = decide.BatchKey(key, FingerprintText(whole), i)
		}
		cmd.Metadata.Fingerprint = p.Fingerprint
		out[i] = cmd
	}
	return out, nil
}

// A Waiter waits until its source has applied the record with a sequence. Folds and projections implement it.
type Waiter interface {
	Wait(ctx context.Context, sequence int64) error
}

// ReadRows is Await for database rows and also performs the read. query reads rows and returns the sequence at which
// they were read, which becomes the position of the response.
//
// Waiting alone is not sufficient, because a waiter relies on the last position that it saw, and rows may be older:
// after a crash, Postgres may have lost its last transactions, and the waiter notices only when its connection
// breaks. So ReadRows compares the sequence of the read, and reads again until two seconds have passed.
//
// As in Await, it also waits for the positions that this node last returned to the user, but it returns rows that do
// not reach them.
func ReadRows(c echo.Context, name string, rows Waiter, query func(context.Context) (asOf int64, err error)) error {
	named, err := leastSequence(c, name)
	if err != nil {
		return err
	}
	return readRows(c, name, rows, named, query)
}

// ReadRowsOf is ReadRows for one of several journals of a request. It ignores X-Min-Log-Position, which belongs to
// another one.
func ReadRowsOf(c echo.Context, name string, rows Waiter, query func(context.Context) (asOf int64, err error)) error {
	return readRows(c, name, rows, -1, query)
}

func readRows(c echo.Context, name string, rows Waiter, named int64, query func(context.Context) (asOf int64, err error)) error {
	w := wantedBy(c, name, named)
	p, cancel := newPatience(c)
	defer cancel()
	for {
		if err := w.waitNamed(c, p, rows); err != nil {
			return err
		}
		if err := w.waitAnswered(c, p, rows); err != nil {
			return err
		}
		asOf, err := query(c.Request().Context())
		if err != nil {
			return SourceFailed(err)
		}
		if w.satisfied(p, asOf) {
			SetReadPosition(c, name, asOf)
			return nil
		}
		select {
		case <-p.long.Done():
			if asOf < named {
				return waited(c)
			}
		case <-time.After(rereadAfter):
		}
	}
}

// leastSequence returns the sequence of X-Min-Log-Position in the journal, or -1 without the header.
func leastSequence(c echo.Context, name string) (int64, error) {
	if len(c.Request().Header[HeaderMinLogPosition]) > 1 {
		return -1, givenTwice(HeaderMinLogPosition)
	}
	text := header(c.Request(), HeaderMinLogPosition)
	if text == "" {
		return -1, nil
	}
	position, err := record.ParseLogPosition(text)
	if err != nil {
		return -1, invalidHeader(HeaderMinLogPosition, validation.InvalidValue, "the position must have the form journal/partition@sequence")
	}
	if position.Journal != name || position.Partition != 0 {
		return -1, notReached("This answer follows the journal " + name + ", not the one that the position names.")
	}
	return position.Sequence, nil
}

// await waits for a sequence until the context wait ends.
func await(wait context.Context, c echo.Context, source Waiter, sequence int64) error {
	err := source.Wait(wait, sequence)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), wait.Err() != nil: // drivers may return other errors for a timeout
		return waited(c)
	}
	return Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}

// waited returns the error after a timeout, or the context's error if the client has disconnected.
func waited(c echo.Context) error {
	if err := c.Request().Context().Err(); err != nil {
		return err
	}
	return notReached("The position was not reached within two seconds.")
}

func notReached(detail string) *Problem {
	return NewProblem(http.StatusPreconditionFailed, "LOG_POSITION_NOT_REACHED", detail)
}
