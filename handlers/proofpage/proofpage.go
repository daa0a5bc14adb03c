// Package proofpage serves a page at /check that verifies receipts and proofs of liabilities in the browser.
//
// The page is static, has no build step, and sends nothing: its policy allows no connections. Somebody who does not trust the venue
// can save it, or use one of the other programs that verify the same files.
package proofpage

import (
	"embed"
	"fmt"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/files"
)

//go:embed check
var content embed.FS

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Register adds the page and its files. The caller must also register the console, because the page loads some of its files.
func Register(e *echo.Echo) error {
	page, err := files.Read(content, "check")
	if err != nil {
		return fmt.Errorf("proofpage: %w", err)
	}
	e.GET("/check", func(c echo.Context) error { return page.Serve(c, "index.html", policy) })
	e.GET("/check/:file", func(c echo.Context) error { return page.Serve(c, c.Param("file"), policy) })
	return nil
}
