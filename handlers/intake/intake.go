// Package intake serves the pages of the onboarding service: at /apply a form for applicants, which is also an example of how
// to build on the service, and at /compliance the queue of cases for operators, with the data and decisions of each case.
//
// The pages are clients of the public REST interface: static files without a build step, some of them shared with the
// console.
package intake

import (
	"embed"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/files"
)

//go:embed apply compliance
var content embed.FS

// policy is the content security policy of the pages, but for what they may show.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// images are those of the page; documents also what the page has read itself, of which it frames PDF.
const (
	images    = "; img-src 'self'"
	documents = "; img-src 'self' blob:; frame-src blob:"
)

// Register adds the pages and their files. They load some of the console's, which have to be served beside them.
func Register(e *echo.Echo) error {
	if err := serve(e, "apply", policy+images); err != nil {
		return err
	}
	return serve(e, "compliance", policy+documents)
}

// serve adds the page of a folder.
func serve(e *echo.Echo, folder, policy string) error {
	page, err := files.Read(content, folder)
	if err != nil {
		return fmt.Errorf("intake: %w", err)
	}
	e.GET("/"+folder, func(c echo.Context) error { return page.Serve(c, "index.html", policy) })
	e.GET("/"+folder+"/:file", func(c echo.Context) error { return page.Serve(c, c.Param("file"), policy) })
	return nil
}
