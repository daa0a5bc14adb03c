package web

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// Route is one route: who may use it, and what serves it.
type Route struct {
	Method string
	Path   string // parameters as :name
	// Scopes are those of which a token must have one. A route without any is public.
	Scopes  []string
	Handler echo.HandlerFunc
	// Operation is what the handler has answer the request, where that may be asked for without HTTP, too: nil otherwise.
	Operation Operation
}

// Asked is a route for what may be asked for without HTTP, too.
func Asked(method, path string, o Operation, scopes ...string) Route {
	return Route{method, path, scopes, o.Handler, o}
}

// Get is a route for GET, and with it for HEAD.
func Get(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodGet, Path: path, Scopes: scopes, Handler: h}
}

// Post is a route for POST.
func Post(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodPost, Path: path, Scopes: scopes, Handler: h}
}

// Put is a route for PUT.
func Put(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodPut, Path: path, Scopes: scopes, Handler: h}
}

// Patch is a route for PATCH.
func Patch(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodPatch, Path: path, Scopes: scopes, Handler: h}
}

// Delete is a route for DELETE.
func Delete(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{Method: http.MethodDelete, Path: path, Scopes: scopes, Handler: h}
}

// Register adds routes, those with scopes behind Require. A token is not needed for the others, but if a good one is sent the
// answer holds what its user was answered before.
func (a *Auth) Register(e *echo.Echo, routes []Route) {
	for _, r := range routes {
		handler := r.Handler
		if len(r.Scopes) > 0 {
			handler = a.Require(r.Scopes...)(handler) // once; Echo would do so for each request
		} else {
			handler = a.recognize(handler)
		}
		e.Add(r.Method, r.Path, notForOthers(routes, r, handler))
	}
}

// notForOthers keeps a route that ends in a parameter from taking what is another address, which does not take the
// route's method: DELETE …/orders/history is no order with the code "history". Echo looks for the method first, and lets
// the last parameter stand for all that follows, slashes included.
func notForOthers(routes []Route, r Route, handler echo.HandlerFunc) echo.HandlerFunc {
	at := strings.LastIndexByte(r.Path, '/') + 1
	parameter, ends := strings.CutPrefix(r.Path[at:], ":")
	others := make(map[string][]string) // what may stand there instead → the methods of that address
	for _, o := range routes {
		if rest, below := strings.CutPrefix(o.Path, r.Path[:at]); ends && below && !strings.HasPrefix(rest, ":") {
			others[rest] = append(others[rest], o.Method)
		}
	}
	for rest, methods := range others {
		if slices.Contains(methods, r.Method) {
			delete(others, rest) // Echo finds it
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

// fits reports whether the end of a path is of a form, in which parameters stand for one part each.
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
