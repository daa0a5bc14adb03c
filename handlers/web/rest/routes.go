package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Route is a route with its scopes and handler.
type Route struct {
	Method string
	Path   string // parameters are written :name
	// Scopes lists the scopes of which a token must have at least one. A route without scopes is public.
	Scopes  []string
	Handler echo.HandlerFunc
	// Operation also executes the request as a call inside the process. It is nil if the route accepts HTTP only.
	Operation operation.Operation
}

// OperationRoute returns the route of an operation.
func OperationRoute(method, path string, o operation.Operation, scopes ...string) Route {
	return Route{method, path, scopes, handlerOf(o), o}
}

// handlerOf returns an operation as an HTTP handler.
func handlerOf(o operation.Operation) echo.HandlerFunc {
	return func(c echo.Context) error {
		status, answer, err := o(RequestOf(c))
		if err != nil {
			return err
		}
		return AnswerWith(c, status, answer)
	}
}

// Get returns a route for GET, which also answers HEAD.
func Get(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodGet, Path: path, Scopes: scopes, Handler: h}
}

// Post returns a route for POST.
func Post(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodPost, Path: path, Scopes: scopes, Handler: h}
}

// Put returns a route for PUT.
func Put(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodPut, Path: path, Scopes: scopes, Handler: h}
}

// Patch returns a route for PATCH.
func Patch(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodPatch, Path: path, Scopes: scopes, Handler: h}
}

// Delete returns a route for DELETE.
func Delete(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodDelete, Path: path, Scopes: scopes, Handler: h}
}

// Unconfined returns the routes for HTTP only, with handlers that refuse tokens limited to one trading account. Each route MUST have scopes.
func Unconfined(routes []Route) []Route {
	all := make([]Route, len(routes))
	for i, r := range routes {
		all[i] = Route{Method: r.Method, Path: r.Path, Scopes: r.Scopes, Handler: func(c echo.Context) error {
			if PrincipalOf(c).Customer != "" {
				return problem.Forbidden("The token is confined to one account.")
			}
			return r.Handler(c)
		}}
	}
	return all
}

// Register adds routes and protects those with scopes with Require. The others need no token, but if a valid one is
// sent, the response includes the writes that the user has seen.
func (a *Auth) Register(e *echo.Echo, routes []Route) {
	for _, r := range routes {
		handler := r.Handler
		if len(r.Scopes) > 0 {
			handler = a.Require(r.Scopes...)(handler) // wrap now; Echo would do it for each request
		} else {
			handler = a.recognize(handler)
		}
		e.Add(r.Method, r.Path, notForOthers(routes, r, handler))
	}
}

// notForOthers prevents a route that ends in a parameter from matching the path of another route that does not
// support the method: DELETE …/orders/history must not cancel an order with the code "history". Echo matches the
// method first, and its last parameter matches the rest of the path, including slashes.
func notForOthers(routes []Route, r Route, handler echo.HandlerFunc) echo.HandlerFunc {
	at := strings.LastIndexByte(r.Path, '/') + 1
	parameter, ends := strings.CutPrefix(r.Path[at:], ":")
	others := make(map[string][]string) // other paths below the prefix → their methods
	for _, o := range routes {
		if rest, below := strings.CutPrefix(o.Path, r.Path[:at]); ends && below && !strings.HasPrefix(rest, ":") {
			others[rest] = append(others[rest], o.Method)
		}
	}
	for rest, methods := range others {
		if slices.Contains(methods, r.Method) {
			delete(others, rest) // Echo matches it first
		}
	}
	if !ends {
		return handler
	}
	return func(c echo.Context) error {
		value := c.Param(parameter)
		for rest, methods := range others {
			if fits(rest, value) {
				c.Response().Header().Set(echo.HeaderAllow, strings.Join(methods, ", "))
				return echo.ErrMethodNotAllowed
			}
		}
		if strings.IndexByte(value, '/') >= 0 {
			return echo.ErrNotFound
		}
		return handler(c)
	}
}

// fits reports whether the end of a path matches a form, in which each parameter matches one segment.
func fits(form, end string) bool {
	for {
		want, forms, more := strings.Cut(form, "/")
		got, ends, longer := strings.Cut(end, "/")
		if more != longer || got == "" || got != want && !strings.HasPrefix(want, ":") {
			return false
		}
		if !more {
			return true
		}
		form, end = forms, ends
	}
}
