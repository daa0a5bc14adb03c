// Package docs serves the reference of the interfaces for people: at /docs that of REST and at /docs/websocket that of
// the WebSocket, to read and to try out.
//
// Both are drawn in the browser from the two files that describe the interfaces, which this program serves as well; the
// pages add nothing to what those say. The viewers are vendored (see vendored/README.md): nothing comes from elsewhere, and
// the content security policy lets nothing else through. Unlike the console's it lets the viewers write styles into the
// page, and the page of the WebSocket may also turn text into code: its viewer compiles the schemas of AsyncAPI when it is
// loaded. What is tried out is sent to this server and is real.
package docs

import (
	"embed"
	"fmt"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/web/files"
	"github.com/perpetua-exchange/perpetua/schemas"
)

//go:embed static vendored
var content embed.FS

// The content security policies. 'self' covers the WebSocket of the same origin, too. The viewers' icons are data:
// addresses inside their styles.
const (
	restPolicy   = "script-src 'self'; " + policy
	socketPolicy = "script-src 'self' 'unsafe-eval'; " + policy
	policy       = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

// documentAge is how long caches may keep the AsyncAPI file.
const documentAge = time.Minute

// Register adds the pages, their files, and the AsyncAPI file, as it is and as JSON.
func Register(e *echo.Echo) error {
	pages, err := files.Read(content, "static", "vendored")
	if err != nil {
		return fmt.Errorf("docs: %w", err)
	}
	e.GET("/docs", func(c echo.Context) error { return pages.Serve(c, "index.html", restPolicy) })
	e.GET("/docs/websocket", func(c echo.Context) error { return pages.Serve(c, "websocket.html", socketPolicy) })
	e.GET("/docs/static/:file", func(c echo.Context) error { return pages.Serve(c, c.Param("file"), restPolicy) })
	e.GET("/asyncapi.yaml", func(c echo.Context) error {
		return web.Cached(c, documentAge, "application/yaml", schemas.AsyncAPI)
	})
	asJSON := sync.OnceValues(func() ([]byte, error) { return yaml.YAMLToJSON(schemas.AsyncAPI) })
	e.GET("/asyncapi.json", func(c echo.Context) error {
		text, err := asJSON()
		if err != nil {
			return fmt.Errorf("the AsyncAPI file: %w", err)
		}
		return web.Cached(c, documentAge, echo.MIMEApplicationJSON, text)
	})
	return nil
}
