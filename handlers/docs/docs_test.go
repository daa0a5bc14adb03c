package docs_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/docs"
	"github.com/perpetua-exchange/perpetua/handlers/web/files/filestest"
)

// serve serves the pages and the console, whose icon they show.
func serve(t *testing.T) *echo.Echo {
	t.Helper()
	return filestest.Serve(t, func(e *echo.Echo) error {
		if err := console.Register(e); err != nil {
			return err
		}
		return docs.Register(e)
	})
}

// own tells the pages' own files from those of the viewers.
func own(path string) bool {
	_, err := os.Stat(filepath.Join("static", filepath.Base(path)))
	return err == nil || path == "/docs" || path == "/docs/websocket"
}

// TestPagesAreWhole follows both pages to every file that they load: all are this server's own.
func TestPagesAreWhole(t *testing.T) {
	seen := filestest.Whole(t, serve(t), "/docs/static/", own, "/docs", "/docs/websocket")
	entries, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		if !seen["/docs/static/"+f.Name()] && filepath.Ext(f.Name()) != ".html" {
			t.Errorf("nothing loads %s", f.Name())
		}
	}
}

// TestNoMarkupFromText looks in the pages' own scripts for what text from the network could become markup or code with.
func TestNoMarkupFromText(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|<style|<script>| style="| on[a-z]+="|@import|https?://`)
	entries, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range entries {
		text, err := os.ReadFile(filepath.Join("static", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.FindString(string(text)); m != "" {
			t.Errorf("%s holds %q", f.Name(), m)
		}
	}
}

func TestViewersAreVendored(t *testing.T) { filestest.Vendored(t, "vendored") }

// TestFilesAreKeptAndCompressed: pages, their own files and the viewers, the licences of these among them.
func TestFilesAreKeptAndCompressed(t *testing.T) {
	e := serve(t)
	for _, path := range []string{"/docs", "/docs/websocket", "/docs/static/docs.css", "/docs/static/swagger-ui-bundle.js",
		"/docs/static/asyncapi.js", "/docs/static/asyncapi.css", "/docs/static/asyncapi.LICENSE.txt", "/docs/static/swagger-ui.LICENSE.txt"} {
		filestest.Revalidated(t, e, path)
		filestest.Compressed(t, e, path)
	}
	for _, path := range []string{"/docs/static/README.md", "/docs/static/nothing.js", "/docs/static/", "/docs/static/..%2fdocs.go", "/docs/nothing",
		"/docs/static/asyncapi.js.gz"} {
		if w := filestest.Ask(e, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestAsyncAPIComesAsJSON: the viewer reads the description as JSON, which says the same.
func TestAsyncAPIComesAsJSON(t *testing.T) {
	e := serve(t)
	w := filestest.Ask(e, "/asyncapi.json")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("ETag") == "" ||
		!strings.HasPrefix(w.Body.String(), `{"asyncapi": "3.0.0"`) {
		t.Errorf("%d %v %.80s", w.Code, w.Header(), w.Body)
	}
	if w := filestest.Ask(e, "/asyncapi.yaml"); w.Header().Get("Content-Type") != "application/yaml" || !strings.HasPrefix(w.Body.String(), "asyncapi: 3.0.0") {
		t.Errorf("%d %v %.80s", w.Code, w.Header(), w.Body)
	}
}

// TestOnlyTheWebSocketsPageMayCompile: what its viewer needs is not given to the other page, nor to their files.
func TestOnlyTheWebSocketsPageMayCompile(t *testing.T) {
	e := serve(t)
	for path, may := range map[string]bool{"/docs": false, "/docs/websocket": true, "/docs/static/websocket.html": false, "/docs/static/rest.js": false} {
		if policy := filestest.Ask(e, path).Header().Get("Content-Security-Policy"); strings.Contains(policy, "unsafe-eval") != may {
			t.Errorf("%s: %s", path, policy)
		}
	}
}
