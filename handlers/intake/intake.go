// Package intake serves the pages of the onboarding service. /apply is an application form, which also serves as an
// example of a client of the service. /compliance shows operators the queue of cases and the data and decisions of
// each.
//
// The pages are static files without a build step and use only the public REST interface. They share some files with
// the console.
package intake

import (
	"embed"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/files"
)

//go:embed apply compliance
var content embed.FS

// policy is the content security policy of both pages. It is completed by images or documents.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// images allows images of this server. documents also allows blob: URLs, because the compliance page displays files
// that it has downloaded, PDFs in a frame.
const (
	images    = "; img-src 'self'"
	documents = "; img-src 'self' blob:; frame-src blob:"
)

// Register adds the pages and their files. The caller must also register the console, because the pages load some of
// its files.
func Register(e *echo.Echo) error {
	if err := serve(e, "apply", policy+images); err != nil {
		return err
	}
	return serve(e, "compliance", policy+documents)
}

// serve adds the page in folder.
func serve(e *echo.Echo, folder, policy string) error {
	page, err := files.Read(content, folder)
	if err != nil {
		return fmt.Errorf("intake: %w", err)
	}
	e.GET("/"+folder, func(c echo.Context) error { return page.Serve(c, "index.html", policy) })
	e.GET("/"+folder+"/:file", func(c echo.Context) error { return page.Serve(c, c.Param("file"), policy) })
	return nil
}
