// Package console serves a page for people at /: the order book and trades as they happen, a customer's orders,
// positions and balances, order entry, and for operators and auditors the journals with their last records.
//
// The page is a client like any other. It consists of static files that need no build step and nothing from elsewhere,
// and talks to the public REST and WebSocket interface alone; this package gives it nothing else. It keeps the access
// token in the browser's session storage, so nothing outlives the tab. The content security policy lets no script,
// style, image or connection through that is not this server's own.
package console

import (
	"embed"
	"fmt"
	"path"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web"
)

//go:embed static
var static embed.FS

// contentTypes are those of the files. What is not named here is not served.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml",
}

// policy is the content security policy. 'self' covers the WebSocket of the same origin, too.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// file is a static file with what an answer says of it.
type file struct {
	content     []byte
	contentType string
	tag         string
}

// Register adds the page and its files.
func Register(e *echo.Echo) error {
	entries, err := static.ReadDir("static")
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	files := make(map[string]*file)
	for _, entry := range entries {
		name := entry.Name()
		content, err := static.ReadFile("static/" + name)
		if err != nil {
			return fmt.Errorf("console: %w", err)
		}
		files[name] = &file{content, contentTypes[path.Ext(name)], web.TagOf(content)}
	}
	e.GET("/", func(c echo.Context) error { return files["index.html"].serve(c) })
	e.GET("/console/:file", func(c echo.Context) error {
		f := files[c.Param("file")]
		if f == nil || f.contentType == "" {
			return web.NotFound("NOT_FOUND", "There is no such file.")
		}
		return f.serve(c)
	})
	return nil
}

// serve answers with the file, or with 304 to a browser that has it: files carry no version in their names, so a
// browser asks each time, and a new build is seen at once.
func (f *file) serve(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	return web.Tagged(c, f.tag, f.contentType, f.content)
}
