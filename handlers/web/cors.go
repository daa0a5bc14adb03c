package web

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// crossOrigin lets pages of other origins call the interfaces: from the origins given, or from any. No cookie means
// anything here, so a page gains nothing that it could not get without the browser of whoever opens it.
func crossOrigin(origins []string) echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins: origins, // none: any
		AllowMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowHeaders: []string{echo.HeaderAuthorization, echo.HeaderContentType, echo.HeaderAccept, "If-None-Match", HeaderIdempotencyKey,
			HeaderMinLogPosition, HeaderRequestID, headerTraceParent, headerTraceState},
		ExposeHeaders: []string{HeaderLogPosition, HeaderRequestID, HeaderCommandID, "ETag", "Retry-After", echo.HeaderWWWAuthenticate,
			headerRateLimitPolicy, headerRateLimit},
		MaxAge: 600,
	})
}

// isForPages reports whether a path is one that pages of other origins may call: the trading interface, the onboarding
// service, the login, and what describes them. The operator's interface is not.
func isForPages(path string) bool {
	for _, prefix := range [...]string{"/v1/", "/api/v1/", "/auth/", "/.well-known/", "/openapi.", "/asyncapi."} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return path == "/orders"
}

// fromPage reports whether an answer has to say who may read it. Nearly all requests come from programs, which name no
// origin: where any may call, their answers say nothing of it.
func (s *Server) fromPage(r *request) bool {
	in := r.Request()
	return (in.Header["Origin"] != nil || len(s.options.CORSOrigins) > 0) && isForPages(in.URL.Path) && !r.IsWebSocket()
}
