package rest

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// HeaderLogStopped is the response header of a node that follows a venue and has found the venue's log to be wrong. It has the
// position of the last record of each journal that proved wrong, and nothing later is shown.
const HeaderLogStopped = "X-Log-Stopped"

// ReadOnly describes a server that follows a venue. It answers GET, HEAD and OPTIONS, and refuses every other request before it
// looks at the token, the path or the body. Where only the venue can answer, it refuses GET and HEAD too.
type ReadOnly struct {
	// Venue is the URL of the interfaces of the venue, which refusals name; "" if it is not known.
	Venue string
	// Elsewhere reports whether only the venue can answer the requests of a route. It may be nil.
	Elsewhere func(route string) bool
	// Stopped returns the last positions of the journals that are followed no further. It may be nil.
	Stopped func() []record.LogPosition
}

// check returns the problem of a request that is not answered here, or nil. It sets the headers that name the venue, and the
// positions at which the journals stopped.
func (ro *ReadOnly) check(c echo.Context) error {
	if ro.Stopped != nil {
		if at := ro.Stopped(); len(at) > 0 {
			c.Response().Header()[HeaderLogStopped] = texts(at)
		}
	}
	refused := ro.refused(c.Request().Method, c.Path())
	if refused != nil && ro.Venue != "" {
		c.Response().Header().Set("Link", "<"+ro.Venue+c.Request().URL.EscapedPath()+`>; rel="alternate"`)
	}
	return refused
}

// refused returns the problem of a request that is not answered here, or nil.
func (ro *ReadOnly) refused(method, route string) error {
	switch {
	case !slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method):
		return problem.ReadOnly(ro.Venue)
	case method != http.MethodOptions && ro.Elsewhere != nil && ro.Elsewhere(route):
		return problem.AskTheVenue(ro.Venue)
	}
	return nil
}
