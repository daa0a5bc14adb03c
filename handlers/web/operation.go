package web

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Request is a request to an Operation over any transport. It is valid until the operation returns.
type Request struct {
	*requestScope
	transport transport
}

// transport is the transport of a request: HTTP (*request), or a call inside the process (*inProcess), for example from a
// WebSocket.
type transport interface {
	context() context.Context
	// route returns the method, the route and the names of the route's parameters.
	route() (method, path string, parameters []string)
	// parameter returns the unescaped value of a route parameter.
	parameter(name string) string
	// target returns the escaped path of the request.
	target() string
	// query returns the raw query string.
	query() string
	// keys returns the values of the Idempotency-Key headers, valid or not.
	keys() []string
	// content returns the body. Its error is a *Problem. The bytes MUST NOT be used after the handler returns.
	content() ([]byte, error)
	// noContent returns an error unless the body is absent, empty or {}.
	noContent() error
	// peer returns the address of the sender.
	peer() string
	// header returns the response header, or nil if the transport has none.
	header() http.Header
	// answerAt sets the log position of the response.
	answerAt(p record.LogPosition)
}

// Operation executes a request that may arrive over several transports. It returns a status and a response, or an
// error.
type Operation func(a Request) (status int, answer Appender, err error)

// Handler returns the operation as an HTTP handler.
func (o Operation) Handler(c echo.Context) error {
	status, answer, err := o(RequestOf(c))
	if err != nil {
		return err
	}
	return AnswerWith(c, status, answer)
}

// RequestOf returns the Request of an HTTP request.
func RequestOf(c echo.Context) Request {
	if r, ok := c.(*request); ok {
		return Request{&r.requestScope, r}
	}
	return Request{scopeOf(c), &request{Context: c}}
}

// Context returns the request's context.
func (a Request) Context() context.Context { return a.transport.context() }

// client returns the client's address.
func (a Request) client() string {
	if a.address != "" {
		return a.address
	}
	return a.transport.peer()
}

// Address returns the client's address.
func Address(c echo.Context) string { return RequestOf(c).client() }

// Principal returns the authenticated principal, or nil on a route that needs no token.
func (a Request) Principal() *Principal { return a.principal }

// Param returns a route parameter, unescaped and sanitized (see the function Param).
func (a Request) Param(name string) string { return sanitize(a.transport.parameter(name)) }

// Content returns the body, which should be JSON, for operations with their own parser. Its error is a *Problem. The
// bytes MUST NOT be used after the operation returns.
func (a Request) Content() ([]byte, error) { return a.transport.content() }
