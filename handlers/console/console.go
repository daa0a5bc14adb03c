// Package console serves a page for people at /: the order book and trades as they happen, a customer's orders,
// positions and balances, order entry, and for operators and auditors the journals with their last records.
//
// The page is a client like any other. It consists of static files that need no build step and nothing from elsewhere (the
// library that draws the chart is vendored: see vendored/README.md), and talks to the public REST and WebSocket interface alone; this package gives it nothing else. It keeps the access
// token in the browser's session storage, so nothing outlives the tab. The content security policy lets no script,
// style, image or connection through that is not this server's own.
package console

import (
	"embed"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/files"
)

//go:embed static vendored
var content embed.FS

// policy is the content security policy. 'self' covers the WebSocket of the same origin, too.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Register adds the page and its files.
func Register(e *echo.Echo) error {
	page, err := files.Read(content, "static", "vendored")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	e.GET("/", func(c echo.Context) error { return page.Serve(c, "index.html", policy) })
	e.GET("/console/:file", func(c echo.Context) error { return page.Serve(c, c.Param("file"), policy) })
	return nil
}
