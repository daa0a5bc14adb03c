package rest

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// crossOrigin allows pages of other origins to call the interfaces: pages of the given origins, or of any. Cookies
// carry no authority here, so a page gains nothing that it could not get without the user's browser.
func crossOrigin(origins []string) echo.MiddlewareFunc {
	return middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOrigins: origins, // empty: any
		AllowMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowHeaders: []string{echo.HeaderAuthorization, echo.HeaderContentType, echo.HeaderAccept, "If-None-Match", "If-Range", "Range", operation.HeaderIdempotencyKey,
			operation.HeaderMinLogPosition, operation.HeaderRequestID, headerTraceParent, headerTraceState},
		ExposeHeaders: []string{operation.HeaderLogPosition, operation.HeaderLogPositionFinal, operation.HeaderRequestID, operation.HeaderCommandID, "ETag", "Accept-Ranges", "Content-Range", "Retry-After", echo.HeaderWWWAuthenticate,
			access.HeaderRateLimitPolicy, access.HeaderRateLimit},
		MaxAge: 600,
	})
}

// isForPages reports whether pages of other origins may call a path. They may call the trading interface, the
// onboarding service, the login, the daily files and the interface descriptions, but not the operator's interface.
func isForPages(path string) bool {
	for _, prefix := range [...]string{"/v1/", "/api/v1/", "/auth/", "/.well-known/", "/openapi.", "/asyncapi.", "/data/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return path == "/orders"
}

// fromPage reports whether the response needs CORS headers. Most requests come from programs and have no Origin
// header. Their responses need none if any origin is allowed.
func (s *Server) fromPage(r *request) bool {
	in := r.Request()
	return (in.Header["Origin"] != nil || len(s.options.CORSOrigins) > 0) && isForPages(in.URL.Path) && !r.IsWebSocket()
}
