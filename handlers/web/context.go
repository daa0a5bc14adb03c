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

// request is Echo's context with this package's data of a request. It is reused, so neither it nor its buffers may be
// used after the handler returns.
type request struct {
	echo.Context
	requestScope
}

// requestScope holds the data of a request that Echo does not have.
type requestScope struct {
	id        string // request ID
	principal *Principal
	judged    int64     // sequence of the identity fold before the principal was authorized
	limit     RateLimit // the limit that the request counts towards
	spare     scalar.ID // generated together with the request ID, for a command; zero after use
	command   scalar.ID // ID of the request's command
	address   string    // the client's address, of a call inside the process; otherwise empty
	session   scalar.ID // session at whose end the request's orders are canceled, or zero
	// answered records the position that the request is answered with. It is zero without a valid token or key.
	answered answers
	room     []byte // reusable buffer for the body
	answer   []byte // reusable buffer for the response
	traced   trace.Request
	problems []string // problem codes of the request's parts
	failures []error  // server errors of the request's parts
}

// maxRoom is the maximum size of a buffer that is kept for later requests.
const maxRoom = 16 << 10

// reset clears the request and keeps its buffers.
func (r *request) reset() {
	r.Context = nil
	r.requestScope = requestScope{room: roomOf(r.room), answer: roomOf(r.answer)}
}

// roomOf returns b, or nil if b is too large to keep.
func roomOf(b []byte) []byte {
	if cap(b) > maxRoom {
		return nil
	}
	return b
}

const scopeKey = "web.notes"

// scopeOf returns the scope of a request. A context that bypassed New's middleware gets a new scope.
func scopeOf(c echo.Context) *requestScope {
	if r, ok := c.(*request); ok {
		return &r.requestScope
	}
	n, ok := c.Get(scopeKey).(*requestScope)
	if !ok {
		n = new(requestScope)
		c.Set(scopeKey, n)
	}
	return n
}

// context implements transport.
func (r *request) context() context.Context { return r.Request().Context() }

// route implements transport.
func (r *request) route() (method, path string, parameters []string) {
	return r.Request().Method, r.Path(), r.ParamNames()
}

// parameter implements transport.
func (r *request) parameter(name string) string {
	v := r.Param(name)
	if r.Request().URL.RawPath != "" {
		if s, err := url.PathUnescape(v); err == nil {
			return s
		}
	}
	return v
}

// target implements transport.
func (r *request) target() string { return r.Request().URL.EscapedPath() }

// query implements transport.
func (r *request) query() string { return r.Request().URL.RawQuery }

// keys implements transport.
func (r *request) keys() []string { return r.Request().Header[HeaderIdempotencyKey] }

// peer implements transport.
func (r *request) peer() string { return r.RealIP() }

// header implements transport.
func (r *request) header() http.Header { return r.Response().Header() }

// answerAt implements transport.
func (r *request) answerAt(p record.LogPosition) {
	r.Response().Header()[HeaderLogPosition] = []string{p.String()}
}

// Error writes the error response.
func (r *request) Error(err error) { r.Echo().HTTPErrorHandler(err, r) }

// JSON responds with the generic encoding of a value and its length.
func (r *request) JSON(status int, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return encoding(err)
	}
	return r.JSONBlob(status, b)
}

// shortAnswer is the size below which net/http sets the Content-Length. It would send larger responses in chunks.
const shortAnswer = 2048

// JSONBlob responds with encoded JSON.
func (r *request) JSONBlob(status int, b []byte) error {
	return r.Blob(status, echo.MIMEApplicationJSON, b)
}

// encoding returns the error for a response that cannot be encoded.
func encoding(err error) error { return fmt.Errorf("encode an answer: %w", err) }

// An Appender has a handwritten JSON encoder.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// AnswerWith responds with a value that encodes itself.
func AnswerWith(c echo.Context, status int, v Appender) error {
	n := scopeOf(c)
	b, err := v.AppendJSON(n.answer[:0])
	if err != nil {
		return encoding(err)
	}
	n.answer = b
	return c.JSONBlob(status, b)
}

// serializer encodes responses like the log: maps are sorted, and nil slices are encoded as [].
type serializer struct{}

// Serialize writes the JSON form of v.
func (serializer) Serialize(c echo.Context, v any, _ string) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return encoding(err)
	}
	_, err = c.Response().Write(b)
	return err
}

// Deserialize is not used, because Body parses bodies.
func (serializer) Deserialize(echo.Context, any) error {
	return NewProblem(http.StatusInternalServerError, "INTERNAL", "Bodies are read by web.Body.")
}
