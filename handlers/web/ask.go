package web

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Ask is a request as an operation knows it: who asks, and for what, whichever way it came. It is good until the
// operation returns.
type Ask struct {
	*notes
	way way
}

// way is how a request came: over HTTP (*request), or from inside the process, as those of a socket do (*inside).
type way interface {
	context() context.Context
	// route returns the method, and the route with the names of its parameters.
	route() (method, path string, parameters []string)
	// parameter returns a parameter of the route, unescaped.
	parameter(name string) string
	// target is the path that was asked for, escaped.
	target() string
	// query is what was sent as the query, escaped.
	query() string
	// keys are the Idempotency-Keys, good or bad.
	keys() []string
	// content returns the body. The error is a *Problem. The bytes must not be kept when the handler returns.
	content() ([]byte, error)
	// noContent accepts no body, an empty one or {}.
	noContent() error
	// peer is the address that the request came from.
	peer() string
	// header is that of the answer, nil where it has none.
	header() http.Header
	// answerAt makes the answer say which position it is as of.
	answerAt(p record.LogPosition)
}

// Operation answers what can be asked for in more than one way: with a status and what there is to say, or with an error.
type Operation func(a Ask) (status int, answer Appender, err error)

// Handler is the operation for requests over HTTP.
func (o Operation) Handler(c echo.Context) error {
	status, answer, err := o(AskOf(c))
	if err != nil {
		return err
	}
	return AnswerWith(c, status, answer)
}

// AskOf returns a request over HTTP as operations know it.
func AskOf(c echo.Context) Ask {
	if r, ok := c.(*request); ok {
		return Ask{&r.notes, r}
	}
	return Ask{notesOf(c), &request{Context: c}}
}

// Context returns the context of the request.
func (a Ask) Context() context.Context { return a.way.context() }

// client returns the client's address.
func (a Ask) client() string {
	if a.address != "" {
		return a.address
	}
	return a.way.peer()
}

// Principal returns on whose behalf the request is made, nil on a route that needs no token.
func (a Ask) Principal() *Principal { return a.principal }

// Param returns a parameter of the route, unescaped, as text that does no harm further down.
func (a Ask) Param(name string) string { return harmless(a.way.parameter(name)) }

// Content returns the body, which should be JSON, for operations that read what is well-formed by themselves. The error
// is a *Problem. The bytes must not be kept when the operation returns.
func (a Ask) Content() ([]byte, error) { return a.way.content() }
