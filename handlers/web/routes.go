package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// Route is one route: who may use it, and what serves it.
type Route struct {
	Method string
	Path   string // parameters as :name
	// Scopes are those of which a token must have one. A route without any is public.
	Scopes  []string
	Handler echo.HandlerFunc
}

// Get is a route for GET, and with it for HEAD.
func Get(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{http.MethodGet, path, scopes, h}
}

// Post is a route for POST.
func Post(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{http.MethodPost, path, scopes, h}
}

// Put is a route for PUT.
func Put(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{http.MethodPut, path, scopes, h}
}

// Patch is a route for PATCH.
func Patch(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{http.MethodPatch, path, scopes, h}
}

// Delete is a route for DELETE.
func Delete(path string, h echo.HandlerFunc, scopes ...string) Route {
	return Route{http.MethodDelete, path, scopes, h}
}

// Register adds routes, those with scopes behind Require.
func (a *Auth) Register(e *echo.Echo, routes []Route) {
	for _, r := range routes {
		handler := r.Handler
		if len(r.Scopes) > 0 {
			handler = a.Require(r.Scopes...)(handler) // once; Echo would do so for each request
		}
		e.Add(r.Method, r.Path, handler)
	}
}
