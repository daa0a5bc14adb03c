package console_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

func serve(t *testing.T) *echo.Echo {
	t.Helper()
	e, err := web.New(web.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := console.Register(e); err != nil {
		t.Fatal(err)
	}
	return e
}

func ask(e *echo.Echo, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// TestPageIsWhole follows the page to every file that it and they refer to: all must be there, with their type and the
// policy, and nothing may come from another place.
func TestPageIsWhole(t *testing.T) {
	e := serve(t)
	reference := regexp.MustCompile(`(?:href|src)="([^"#]+)"|from "([^"]+)"`)
	seen, next := map[string]bool{}, []string{"/"}
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if seen[path] || strings.HasSuffix(path, ".yaml") { // the descriptions are another handler's
			continue
		}
		seen[path] = true
		w := ask(e, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") == "" {
			t.Fatalf("%s: %d, %q", path, w.Code, w.Header())
		}
		policy := w.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") {
			t.Errorf("%s: policy %q", path, policy)
		}
		for _, m := range reference.FindAllStringSubmatch(w.Body.String(), -1) {
			to := m[1] + m[2]
			if strings.HasPrefix(to, "./") {
				to = "/console/" + to[2:]
			}
			if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
				t.Errorf("%s refers to %s", path, to)
				continue
			}
			next = append(next, to)
		}
	}
	files, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen["/console/"+f.Name()] && f.Name() != "index.html" {
			t.Errorf("nothing refers to %s", f.Name())
		}
	}
}

// TestPolicyIsKept looks for what the policy would refuse, or what text from the network could become markup with.
func TestPolicyIsKept(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|<style|<script>| style="| on[a-z]+="|@import|url\(`)
	files, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile("static/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.FindString(string(text)); m != "" {
			t.Errorf("%s holds %q", f.Name(), m)
		}
	}
}

func TestFilesAreKeptByBrowsers(t *testing.T) {
	e := serve(t)
	first := ask(e, "/console/app.js")
	tag := first.Header().Get("ETag")
	if tag == "" || first.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("headers %v", first.Header())
	}
	if again := ask(e, "/console/app.js", "If-None-Match", tag); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("again: %d with %d bytes", again.Code, again.Body.Len())
	}
	for _, path := range []string{"/console/nothing.js", "/console/static", "/console/..%2fconsole.go", "/console/"} {
		if w := ask(e, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestFilesAreCompressed: a browser that takes gzip gets each larger file compressed, and the same file.
func TestFilesAreCompressed(t *testing.T) {
	e := serve(t)
	plain, packed := ask(e, "/console/app.js"), ask(e, "/console/app.js", "Accept-Encoding", "gzip, br")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= plain.Body.Len() ||
		packed.Header().Get("Content-Type") != plain.Header().Get("Content-Type") || packed.Header().Get("ETag") != plain.Header().Get("ETag") {
		t.Fatalf("%d bytes of %d, %v", packed.Body.Len(), plain.Body.Len(), packed.Header())
	}
	r, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != plain.Body.String() {
		t.Errorf("unpacked it is another file (%v)", err)
	}
}
