package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// request is Echo's context with what this package keeps of a request. Like Echo's own it serves later requests too, so
// nobody may hold on to it, or to the bytes in it, when the handler has returned.
type request struct {
	echo.Context
	notes
}

// notes are what is known of a request besides what Echo knows.
type notes struct {
	id        string // the request's
	principal *Principal
	limit     RateLimit // that the request counts towards
	spare     scalar.ID // made together with the request's, for a command; zero once it is used
	command   scalar.ID // that the request became
	forwarded scalar.ID // that another node gave to the command
	address   string    // the client's, if the request did not come from there over HTTP
	session   scalar.ID // at whose end its orders are canceled; zero for none
	counted   bool      // another node passed it on, and has counted it towards its user's rate
	// answered records the position that the request is answered with. It is zero without a good token or key.
	answered answers
	body     []byte // as it was read, for a request that is passed on
	room     []byte // for the body
	answer   []byte // room for the answer
	traced   trace.Request
	problems []string // codes of the problems of its parts
	failures []error  // of the server, in parts of it
}

// maxRoom bounds what is kept of a buffer for later requests.
const maxRoom = 16 << 10

// reset forgets the request and keeps the room.
func (r *request) reset() {
	r.Context = nil
	r.notes = notes{room: roomOf(r.room), answer: roomOf(r.answer)}
}

// roomOf returns a buffer if it is one to keep.
func roomOf(b []byte) []byte {
	if cap(b) > maxRoom {
		return nil
	}
	return b
}

const notesKey = "web.notes"

// notesOf returns what is kept of a request. A context that did not come through New's middleware gets notes of its own.
func notesOf(c echo.Context) *notes {
	if r, ok := c.(*request); ok {
		return &r.notes
	}
	n, ok := c.Get(notesKey).(*notes)
	if !ok {
		n = new(notes)
		c.Set(notesKey, n)
	}
	return n
}

// context implements way.
func (r *request) context() context.Context { return r.Request().Context() }

// route implements way.
func (r *request) route() (method, path string, parameters []string) {
	return r.Request().Method, r.Path(), r.ParamNames()
}

// parameter implements way.
func (r *request) parameter(name string) string {
	v := r.Param(name)
	if r.Request().URL.RawPath != "" {
		if s, err := url.PathUnescape(v); err == nil {
			return s
		}
	}
	return v
}

// target implements way.
func (r *request) target() string { return r.Request().URL.EscapedPath() }

// query implements way.
func (r *request) query() string { return r.Request().URL.RawQuery }

// keys implements way.
func (r *request) keys() []string { return r.Request().Header[HeaderIdempotencyKey] }

// peer implements way.
func (r *request) peer() string { return r.RealIP() }

// header implements way.
func (r *request) header() http.Header { return r.Response().Header() }

// answerAt implements way.
func (r *request) answerAt(p record.LogPosition) {
	r.Response().Header()[HeaderLogPosition] = []string{p.String()}
}

// Error answers with the error.
func (r *request) Error(err error) { r.Echo().HTTPErrorHandler(err, r) }

// JSON answers with what the generic encoder makes of a value, in one piece of a known length.
func (r *request) JSON(status int, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return encoding(err)
	}
	return r.JSONBlob(status, b)
}

// net/http finds the length of a shorter answer by itself, and would send a longer one in chunks.
const shortAnswer = 2048

// JSONBlob answers with JSON.
func (r *request) JSONBlob(status int, b []byte) error {
	return r.Blob(status, echo.MIMEApplicationJSON, b)
}

// encoding is the error of an answer that has no JSON form.
func encoding(err error) error { return fmt.Errorf("encode an answer: %w", err) }

// An Appender writes its JSON form by hand.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// AnswerWith answers with a value that writes itself.
func AnswerWith(c echo.Context, status int, v Appender) error {
	n := notesOf(c)
	b, err := v.AppendJSON(n.answer[:0])
	if err != nil {
		return encoding(err)
	}
	n.answer = b
	return c.JSONBlob(status, b)
}

// serializer writes answers with the same encoder as the log, whose maps are sorted and whose slices are never null.
type serializer struct{}

// Serialize writes an answer.
func (serializer) Serialize(c echo.Context, v any, _ string) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return encoding(err)
	}
	_, err = c.Response().Write(b)
	return err
}

// Deserialize is not used: bodies are read by Body.
func (serializer) Deserialize(echo.Context, any) error {
	return NewProblem(http.StatusInternalServerError, "INTERNAL", "Bodies are read by web.Body.")
}
