package rest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// TestHead asks for the headers of what GET answers, over a real connection, where a body that came all the same would
// be taken for the next answer.
func TestHead(t *testing.T) {
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	e.GET("/thing", func(c echo.Context) error {
		c.Response().Header().Set(operation.HeaderLogPosition, "trading/0@7")
		return c.JSON(http.StatusOK, map[string]string{"name": "thing"})
	})
	e.POST("/order", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
	server := httptest.NewServer(e)
	defer server.Close()
	ask := func(method, path string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a, string(body)
	}
	for _, path := range []string{"/thing", "/nowhere", "/order"} {
		get, body := ask(http.MethodGet, path)
		head, none := ask(http.MethodHead, path)
		if none != "" || body == "" {
			t.Errorf("%s: HEAD has the body %q, GET %q", path, none, body)
		}
		if head.StatusCode != get.StatusCode {
			t.Errorf("%s: HEAD is answered %d, GET %d", path, head.StatusCode, get.StatusCode)
		}
		for _, name := range []string{"Content-Type", "Content-Length", "Allow", operation.HeaderLogPosition} {
			if h, g := head.Header.Get(name), get.Header.Get(name); h != g {
				t.Errorf("%s: %s is %q after HEAD and %q after GET", path, name, h, g)
			}
		}
	}
}
