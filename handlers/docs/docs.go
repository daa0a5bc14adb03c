// Package docs serves interactive reference pages: the REST interface at /docs and the WebSocket interface at
// /docs/websocket.
//
// Viewers in the browser render both pages from the OpenAPI and AsyncAPI files, which the program also serves; the
// pages contain nothing else. The viewers are vendored (see vendored/README.md), and the content security policy
// blocks other origins. Unlike the console's policy, it allows inline styles. On the WebSocket page it also allows
// eval, because that viewer compiles the AsyncAPI schemas when it loads. Requests made from these pages go to this
// server and have real effects.
package docs

import (
	"embed"
	"fmt"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/files"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/schemas/bundle"
)

//go:embed static vendored
var content embed.FS

// These are the content security policies. 'self' includes the WebSocket of the same origin. The viewers' styles
// contain their icons as data: URLs.
const (
	restPolicy   = "script-src 'self'; " + policy
	socketPolicy = "script-src 'self' 'unsafe-eval'; " + policy
	policy       = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)

// documentAge is the caching time of the AsyncAPI file.
const documentAge = time.Minute

// Register adds the pages, their files and the AsyncAPI file in YAML and JSON.
func Register(e *echo.Echo) error {
	pages, err := files.Read(content, "static", "vendored")
	if err != nil {
		return fmt.Errorf("docs: %w", err)
	}
	e.GET("/docs", func(c echo.Context) error { return pages.Serve(c, "index.html", restPolicy) })
	e.GET("/docs/websocket", func(c echo.Context) error { return pages.Serve(c, "websocket.html", socketPolicy) })
	e.GET("/docs/static/:file", func(c echo.Context) error { return pages.Serve(c, c.Param("file"), restPolicy) })
	asJSON := sync.OnceValues(func() ([]byte, error) {
		text, err := bundle.AsyncAPI()
		if err != nil {
			return nil, err
		}
		return yaml.YAMLToJSON(text)
	})
	e.GET("/asyncapi.yaml", asyncAPI("application/yaml", bundle.AsyncAPI))
	e.GET("/asyncapi.json", asyncAPI(echo.MIMEApplicationJSON, asJSON))
	return nil
}

// asyncAPI returns the handler of the AsyncAPI file in one form. The first request makes it.
func asyncAPI(contentType string, text func() ([]byte, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		b, err := text()
		if err != nil {
			return fmt.Errorf("the AsyncAPI file: %w", err)
		}
		return rest.Cached(c, documentAge, contentType, b)
	}
}
