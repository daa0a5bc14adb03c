// Package filestest tests pages served by package files: that they are complete, load nothing from other origins, and
// that vendored files match their README.
package filestest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// Serve returns a router with the routes of register.
func Serve(t *testing.T, register func(*echo.Echo) error) *echo.Echo {
	t.Helper()
	e, err := rest.New(rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := register(e.Echo); err != nil {
		t.Fatal(err)
	}
	return e.Echo
}

// Ask sends a GET request with headers, given in pairs.
func Ask(e *echo.Echo, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// loaded matches the references in a page that make a browser load something: a source, a style sheet, an icon, a
// module.
var loaded = regexp.MustCompile(`<(?:script|img|iframe|source)[^>]* src="([^"]+)"|<link[^>]* href="([^"]+)"|\bfrom "([^"]+)"|\bimport "([^"]+)"`)

// outside matches references in a style to other origins.
var outside = regexp.MustCompile(`@import|url\(\s*["']?(https?:)?//`)

// Whole follows the pages to every file that they load. Each file must exist, have a content type and the policy, and
// come from this server. Files for which searched is false are not searched for references, except styles for other
// origins. Whole returns the paths of the files.
func Whole(t *testing.T, e *echo.Echo, folder string, searched func(path string) bool, pages ...string) map[string]bool {
	t.Helper()
	seen, next := map[string]bool{}, pages
	for len(next) > 0 {
		path := next[0]
		next = next[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		w := Ask(e, path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") == "" {
			t.Fatalf("%s: %d, %q", path, w.Code, w.Header())
		}
		policed(t, path, w.Header())
		if m := outside.FindString(w.Body.String()); m != "" && strings.HasSuffix(path, ".css") {
			t.Errorf("%s loads from elsewhere: %s", path, m)
		}
		if !searched(path) {
			continue
		}
		for _, m := range loaded.FindAllStringSubmatch(w.Body.String(), -1) {
			to := m[1] + m[2] + m[3] + m[4]
			if name, ok := strings.CutPrefix(to, "./"); ok {
				to = folder + name
			}
			if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") {
				t.Errorf("%s loads %s", path, to)
				continue
			}
			next = append(next, to)
		}
	}
	return seen
}

// policed checks that the content security policy allows only this server and forbids inline scripts.
func policed(t *testing.T, path string, h http.Header) {
	t.Helper()
	policy := h.Get("Content-Security-Policy")
	for _, directive := range strings.Split(policy, ";") {
		name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
		if name != "style-src" && strings.Contains(sources, "unsafe-inline") || strings.Contains(sources, "http") || strings.Contains(sources, "*") {
			t.Errorf("%s: policy %q", path, directive)
		}
	}
	for _, must := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, must) {
			t.Errorf("%s: the policy %q lacks %s", path, policy, must)
		}
	}
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%s: headers %v", path, h)
	}
}

// Revalidated checks that a file must be revalidated by its tag and that revalidation is answered with 304.
func Revalidated(t *testing.T, e *echo.Echo, path string) {
	t.Helper()
	first := Ask(e, path)
	tag := first.Header().Get("ETag")
	if tag == "" || first.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("%s: headers %v", path, first.Header())
	}
	again := Ask(e, path, "If-None-Match", tag)
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 || again.Header().Get("Vary") == "" {
		t.Errorf("%s: again %d with %d bytes, %v", path, again.Code, again.Body.Len(), again.Header())
	}
}

// Compressed checks that a client that accepts gzip gets the same file compressed.
func Compressed(t *testing.T, e *echo.Echo, path string) {
	t.Helper()
	plain, packed := Ask(e, path), Ask(e, path, "Accept-Encoding", "gzip, br")
	if packed.Header().Get("Content-Encoding") != "gzip" || packed.Body.Len() >= plain.Body.Len() ||
		packed.Header().Get("Content-Type") != plain.Header().Get("Content-Type") || packed.Header().Get("ETag") != plain.Header().Get("ETag") {
		t.Fatalf("%s: %d bytes of %d, %v", path, packed.Body.Len(), plain.Body.Len(), packed.Header())
	}
	if refused := Ask(e, path, "Accept-Encoding", "gzip;q=0"); refused.Header().Get("Content-Encoding") != "" {
		t.Errorf("%s: who refuses gzip gets it", path)
	}
	if text := unpacked(t, packed.Body.Bytes()); !bytes.Equal(text, plain.Body.Bytes()) {
		t.Errorf("%s: unpacked it is another file", path)
	}
}

func unpacked(t *testing.T, packed []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// row matches a row of the README's table: the name by which a file is served, and the hash of the file.
var row = regexp.MustCompile(`(?m)^\| ([^ |]+) \| [^|]+ \| [^|]+ \| ([0-9a-f]{64}) \| ((?:MIT|BSD|Apache-2\.0|MPL-2\.0|ISC)[^|]*) \| ([^|]+) \|$`)

// Vendored compares the vendored files of a folder with its README. Each must have a hash, an allowed license with
// its text in the folder, and a source.
func Vendored(t *testing.T, folder string) {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, m := range row.FindAllStringSubmatch(string(readme), -1) {
		packed, err := os.ReadFile(filepath.Join(folder, m[1]+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(unpacked(t, packed))
		if hex.EncodeToString(sum[:]) != m[2] {
			t.Errorf("%s is another file than the README says", m[1])
		}
		for _, text := range strings.Split(m[3], ", ")[1:] {
			if content, err := os.ReadFile(filepath.Join(folder, strings.TrimSpace(text))); err != nil || len(content) == 0 {
				t.Errorf("%s: %s is missing (%v)", m[1], text, err)
			}
		}
		known[m[1]+".gz"] = true
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".gz") && !known[entry.Name()] {
			t.Errorf("%s is not in the README", entry.Name())
		}
	}
}
