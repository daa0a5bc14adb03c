package rest

import (
	"bytes"
	"context"
	"io"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// These functions give a handler with Echo's context the methods of operation.Request.

// BodyOnly parses the JSON object of a request to a route without a query (see operation.Request.OnlyForm). Done reports its errors.
func BodyOnly(c echo.Context) *input.Form {
	a := RequestOf(c)
	return a.OnlyForm(a.Content())
}

// OptionalBody is BodyOnly for a write with an optional body. An absent body counts as {}.
func OptionalBody(c echo.Context) *input.Form {
	r := c.Request()
	raw, err := io.ReadAll(io.LimitReader(r.Body, input.MaxBody+1))
	if err == nil && len(raw) == 0 {
		return RequestOf(c).OnlyForm([]byte("{}"), nil)
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(raw), r.Body))
	return BodyOnly(c)
}

// Query reads the request's query. Unknown and repeated parameters are errors.
func Query(c echo.Context) *input.Form { return RequestOf(c).Query() }

// Path returns a form of the route's parameters (see operation.Request.Path).
func Path(c echo.Context) *input.Form { return RequestOf(c).Path() }

// NoQuery returns an error if the request has query parameters.
func NoQuery(c echo.Context) error { return RequestOf(c).NoQuery() }

// NoBody returns an error unless the request has no query and its body is absent, empty or {}.
func NoBody(c echo.Context) error { return RequestOf(c).NoBody() }

// BodyAbsent is NoBody for a route with a query.
func BodyAbsent(c echo.Context) error { return RequestOf(c).BodyAbsent() }

// Param returns a route parameter, unescaped and sanitized (see operation.Request.Param).
func Param(c echo.Context, name string) string { return RequestOf(c).Param(name) }

// Address returns the client's address.
func Address(c echo.Context) string { return RequestOf(c).Client() }

// PrincipalOf returns the request's principal, or nil on a route that needs no token.
func PrincipalOf(c echo.Context) *access.Principal { return RequestOf(c).Principal() }

// RateLimitOf returns the limit that the request counts towards. It is zero if there is none.
func RateLimitOf(c echo.Context) access.RateLimit { return RequestOf(c).Admission.Limit }

// Execute is operation.Execute.
func Execute[E decide.Event](c echo.Context, j operation.Journal, payload decide.Payload, forms ...*input.Form) (E, error) {
	return operation.Execute[E](RequestOf(c), j, payload, forms...)
}

// Remembers is operation.Remembers.
func Remembers(c echo.Context, f record.Follower, command string) bool {
	return operation.Remembers(RequestOf(c), f, command)
}

// Await is operation.Await.
func Await(c echo.Context, name string, source operation.Waiter) error {
	return operation.Await(RequestOf(c), name, source)
}

// View is operation.View.
func View[S decide.State](c echo.Context, name string, f record.Follower, look func(s S, sequence int64) error) error {
	return operation.View(RequestOf(c), name, f, look)
}

// ViewDecided is operation.ViewDecided.
func ViewDecided[S decide.State](c echo.Context, name string, f record.Follower, look func(s S, sequence int64) error) error {
	return operation.ViewDecided(RequestOf(c), name, f, look)
}

// ViewAll is operation.ViewAll.
func ViewAll(c echo.Context, folds map[string]record.Follower, look func(name string, s decide.State)) error {
	return operation.ViewAll(RequestOf(c), folds, look)
}

// ReadRows is operation.ReadRows.
func ReadRows(c echo.Context, name string, rows operation.Waiter, query func(context.Context) (asOf int64, err error)) error {
	return operation.ReadRows(RequestOf(c), name, rows, query)
}

// ReadRowsOf is operation.ReadRowsOf.
func ReadRowsOf(c echo.Context, name string, rows operation.Waiter, query func(context.Context) (asOf int64, err error)) error {
	return operation.ReadRowsOf(RequestOf(c), name, rows, query)
}

// SetReadPosition sets the log position of the response to a read (see operation.Request.SetReadPosition).
func SetReadPosition(c echo.Context, name string, sequence int64) {
	RequestOf(c).SetReadPosition(name, sequence)
}
