package web

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// The headers that are ours.
const (
	HeaderRequestID      = "X-Request-Id"
	HeaderLogPosition    = "X-Log-Position"
	HeaderMinLogPosition = "X-Min-Log-Position"
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderCommandID names the command of an OUTCOME_UNKNOWN of the onboarding interface, whose errors have room for a code only.
	HeaderCommandID = "X-Command-Id"
)

// waitLimit is how long a read waits for its source to reach the position that the client names, and rereadAfter is how
// soon rows are read again that turn out to be older.
const (
	waitLimit   = 2 * time.Second
	rereadAfter = 25 * time.Millisecond
)

// header returns what a request says under a name, which must be in the canonical form: http.Header's own methods look
// through the name each time to find out that it is.
func header(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// RequestID returns the id of the request: the client's own X-Request-Id if it is a plain one, else a new one.
func RequestID(c echo.Context) string { return notesOf(c).id }

// identify gives the request an id and the answer the same one.
func (r *request) identify() {
	r.id = header(r.Request(), HeaderRequestID)
	if !isReference(r.id) {
		id, spare := newIDs()
		r.id, r.spare = id.String(), spare
	}
	r.Response().Header()[HeaderRequestID] = []string{r.id}
}

// Key reads the Idempotency-Key. Without one it is empty; a bad one is a problem.
func (a Ask) Key() (string, error) {
	keys := a.way.keys()
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 {
		return "", givenTwice(HeaderIdempotencyKey)
	}
	if code, message := Reference(keys[0]); code != "" {
		return "", Invalid(Fault{Field: HeaderIdempotencyKey, Code: code, Message: message, in: inHeader, path: []any{HeaderIdempotencyKey}})
	}
	return keys[0], nil
}

// Keyed reports whether the request has an Idempotency-Key, good or bad.
func (a Ask) Keyed() bool { return len(a.way.keys()) > 0 }

// givenTwice is the problem of a header that says two things, of which none is better than the other.
func givenTwice(name string) *Problem {
	return Invalid(Fault{Field: name, Code: DuplicateField, Message: "the header is given more than once", in: inHeader, path: []any{name}})
}

// NewCommand makes a command on behalf of the request's principal. It carries the Idempotency-Key if there is one,
// and a fingerprint if there is a key or the body names a reference_id.
func NewCommand(c echo.Context, payload decide.Payload, forms ...*Form) (decide.Command, error) {
	return AskOf(c).NewCommand(payload, forms...)
}

// NewCommand is the function of that name.
func (a Ask) NewCommand(payload decide.Payload, forms ...*Form) (decide.Command, error) {
	cmd, err := a.BareCommand(payload)
	if err != nil {
		return decide.Command{}, err
	}
	named := cmd.Kept.Key != ""
	for _, f := range forms {
		named = named || f.Has("reference_id")
	}
	if named {
		cmd.Kept.Fingerprint = a.fingerprint(forms...)
	}
	return cmd, nil
}

// BareCommand is NewCommand without a fingerprint, for operations that make their own.
func (a Ask) BareCommand(payload decide.Payload) (decide.Command, error) {
	key, err := a.Key()
	if err != nil {
		return decide.Command{}, err
	}
	n := a.notes
	cmd := decide.Command{ID: a.CommandID(), Type: payload.CommandType(), Payload: payload, Kept: decide.Kept{Key: key, Session: n.session}}
	if n.principal != nil {
		cmd.Actor = n.principal.Actor()
	}
	n.forwarded, n.traced.Command, n.spare, n.command = scalar.ID{}, scalar.ID{}, scalar.ID{}, cmd.ID // it is for one command
	return cmd, nil
}

// CommandID returns the id that the request's next command will have. The node that a request is passed on to finds the same,
// so what is named after it has one name, whichever node comes to name it.
func (a Ask) CommandID() scalar.ID {
	n := a.notes
	switch {
	// A request that was passed on keeps the id that it came with, which its node names if the connection breaks. Else the
	// command has the id of its trace, by which its record leads there.
	case !n.forwarded.IsZero():
		return n.forwarded
	case !n.traced.Command.IsZero():
		return n.traced.Command
	case n.spare.IsZero():
		n.spare = NewID()
	}
	return n.spare
}

// IDFor returns an id for what the request's next command makes. It depends on the command's id and on what it is for, and on
// nothing else.
func (a Ask) IDFor(what string) scalar.ID {
	command := a.CommandID()
	sum := sha256.Sum256(append(command[:], what...))
	id := scalar.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

// Part is one command of a request that makes several.
type Part struct {
	Payload     decide.Payload
	Fingerprint string // of the part alone
}

// Commands makes the commands of a request's parts on behalf of its principal. With an Idempotency-Key, each carries it
// together with a fingerprint of the whole request and its own place in it (decide.BatchKey).
func (a Ask) Commands(parts []Part) ([]decide.Command, error) {
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
		if key := cmd.Kept.Key; key != "" {
			cmd.Kept.Key = decide.BatchKey(key, FingerprintText(whole), i)
		}
		cmd.Kept.Fingerprint = p.Fingerprint
		out[i] = cmd
	}
	return out, nil
}

// A Waiter waits until its source has applied the record with a sequence. Folds and projections are waiters.
type Waiter interface {
	Wait(ctx context.Context, sequence int64) error
}

// ReadRows is Await for rows, with the read itself: query reads, and says the sequence that what it read is as of. The
// answer names that sequence.
//
// A waiter believes what it saw last. Rows can be older than that: a crash of Postgres takes its last transactions
// along, and whoever follows them learns of it only when its own connection breaks. So the wait alone proves nothing.
// The read's own sequence is compared, and rows that are too old are read again until the two seconds are over.
//
// As in Await, the positions that this node last answered the user with are waited for as well, but rows that do not
// reach them are returned as they are.
func ReadRows(c echo.Context, name string, rows Waiter, query func(context.Context) (asOf int64, err error)) error {
	named, err := leastSequence(c, name)
	if err != nil {
		return err
	}
	return readRows(c, name, rows, named, query)
}

// ReadRowsOf is ReadRows for one of several journals that a request reads. X-Min-Log-Position names another one, and is
// ignored.
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

// leastSequence returns the sequence that X-Min-Log-Position names in the journal, -1 where there is no such header.
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
		return -1, Invalid(Fault{Field: HeaderMinLogPosition, Code: InvalidValue, in: inHeader, path: []any{HeaderMinLogPosition},
			Message: "the position must have the form journal/partition@sequence"})
	}
	if position.Journal != name || position.Partition != 0 {
		return -1, notReached("This answer follows the journal " + name + ", not the one that the position names.")
	}
	return position.Sequence, nil
}

// await waits for a sequence until the context of the wait ends.
func await(wait context.Context, c echo.Context, source Waiter, sequence int64) error {
	err := source.Wait(wait, sequence)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded), wait.Err() != nil: // a driver may say it in words of its own
		return waited(c)
	}
	return Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}

// waited is the answer where the time to wait is over, or the client gone.
func waited(c echo.Context) error {
	if err := c.Request().Context().Err(); err != nil {
		return err
	}
	return notReached("The position was not reached within two seconds.")
}

func notReached(detail string) *Problem {
	return NewProblem(http.StatusPreconditionFailed, "LOG_POSITION_NOT_REACHED", detail)
}
