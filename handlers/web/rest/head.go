package rest

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

const headKey = "web.head"

// routeHead makes every GET route answer HEAD (RFC 9110, section 9.3.2). It changes the method to GET for the
// router. answerHead changes it back, so that the server omits the body.
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
