// Package console serves the console page at /. The page shows the live order book and trades and a customer's
// orders, positions and balances, and accepts orders. To operators and auditors it also shows the proposals that
// wait for a second person, and the journals and their last records.
//
// The page consists of static files. They need no build step and load nothing from other origins; the chart library
// is vendored (see vendored/README.md). The page uses only the public REST and WebSocket interfaces. It stores the
// access token in the browser's session storage, so the token does not outlive the tab. The content security policy
// blocks scripts, styles, images and connections of other origins.
package console

import (
	"embed"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/files"
)

//go:embed static vendored
var content embed.FS

// policy is the content security policy. 'self' includes the WebSocket of the same origin.
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
