package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

const headKey = "web.head"

// routeHead has a HEAD request answered like the GET that it asks about (RFC 9110, section 9.3.2), whatever the route:
// it is a GET while the route is looked for. After that answerHead makes it a HEAD again, by which the server knows to
// leave the body out.
func routeHead(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r := c.Request(); r.Method == http.MethodHead {
			c.Set(headKey, true)
			r.Method = http.MethodGet
		}
		return next(c)
	}
}

func answerHead(c echo.Context) {
	if c.Get(headKey) != nil {
		c.Request().Method = http.MethodHead
	}
}
