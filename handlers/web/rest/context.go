package rest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// request is Echo's context with this package's data of a request. It is reused, so neither it nor its buffers may be
// used after the handler returns.
type request struct {
	echoContext
	scope   operation.Scope
	checked checked
	room    []byte // reusable buffer for the body
	answer  []byte // reusable buffer for the response
}

// echoContext is embedded under another name, since the transport has a method Context.
type echoContext = echo.Context

// maxRoom is the maximum size of a buffer that is kept for later requests.
const maxRoom = 16 << 10

// reset clears the request and keeps its buffers.
func (r *request) reset() {
	*r = request{room: roomOf(r.room), answer: roomOf(r.answer)}
}

// roomOf returns b, or nil if b is too large to keep.
func roomOf(b []byte) []byte {
	if cap(b) > maxRoom {
		return nil
	}
	return b
}

// header returns the first value of a header. name must be canonical; http.Header.Get would verify that on each call.
func header(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// identify sets the ID of the request and the response.
func (r *request) identify() {
	id := header(r.Request(), operation.HeaderRequestID)
	if !form.Reference.Allow(id) {
		made, spare := operation.NewIDs()
		id, r.scope.Spare = made.String(), spare
	}
	r.scope.ID = id
	r.Response().Header()[operation.HeaderRequestID] = []string{id}
}

const scopeKey = "rest.scope"

// RequestOf returns the Request of an HTTP request. A context that bypassed New's middleware gets a new scope.
func RequestOf(c echo.Context) operation.Request {
	if r, ok := c.(*request); ok {
		return operation.NewRequest(&r.scope, r)
	}
	scope, ok := c.Get(scopeKey).(*operation.Scope)
	if !ok {
		scope = new(operation.Scope)
		c.Set(scopeKey, scope)
	}
	return operation.NewRequest(scope, &request{echoContext: c})
}

// Context implements operation.Transport.
func (r *request) Context() context.Context { return r.Request().Context() }

// Route implements operation.Transport.
func (r *request) Route() (method, path string, parameters []string) {
	return r.Request().Method, r.Path(), r.ParamNames()
}

// Parameter implements operation.Transport.
func (r *request) Parameter(name string) string {
	v := r.Param(name)
	if r.Request().URL.RawPath != "" {
		if s, err := url.PathUnescape(v); err == nil {
			return s
		}
	}
	return v
}

// Target implements operation.Transport.
func (r *request) Target() string { return r.Request().URL.EscapedPath() }

// Query implements operation.Transport.
func (r *request) Query() string { return r.Request().URL.RawQuery }

// Keys implements operation.Transport.
func (r *request) Keys() []string { return r.Request().Header[operation.HeaderIdempotencyKey] }

// Least implements operation.Transport.
func (r *request) Least() []string { return r.Request().Header[operation.HeaderMinLogPosition] }

// Peer implements operation.Transport.
func (r *request) Peer() string { return r.RealIP() }

// Header implements operation.Transport.
func (r *request) Header() http.Header { return r.Response().Header() }

// AnswerAt implements operation.Transport.
func (r *request) AnswerAt(p record.LogPosition) {
	r.Response().Header()[operation.HeaderLogPosition] = []string{p.String()}
}

// AnswerAtAll implements operation.Transport.
func (r *request) AnswerAtAll(all []record.LogPosition) {
	r.Response().Header()[operation.HeaderLogPosition] = texts(all)
}

func texts(all []record.LogPosition) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = p.String()
	}
	return out
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

// AnswerWith responds with a value that encodes itself.
func AnswerWith(c echo.Context, status int, v operation.Appender) error {
	r, ok := c.(*request)
	if !ok {
		r = &request{echoContext: c}
	}
	b, err := v.AppendJSON(r.answer[:0])
	if err != nil {
		return encoding(err)
	}
	r.answer = b
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
	return problem.New(http.StatusInternalServerError, "INTERNAL", "Bodies are read by package input.")
}
