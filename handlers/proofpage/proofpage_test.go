package proofpage_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/proofpage"
	"github.com/perpetua-exchange/perpetua/handlers/web/files/filestest"
)

// serve serves the page with the console, whose files it loads.
func serve(t *testing.T) *echo.Echo {
	t.Helper()
	return filestest.Serve(t, func(e *echo.Echo) error {
		if err := console.Register(e); err != nil {
			return err
		}
		return proofpage.Register(e)
	})
}

// TestPageIsWhole follows the page to every file that it loads. Its policy allows no connection.
func TestPageIsWhole(t *testing.T) {
	e := serve(t)
	own := func(path string) bool { return path == "/check" || strings.HasPrefix(path, "/check/") }
	seen := filestest.Whole(t, e, "/check/", own, "/check")
	all, err := filepath.Glob("check/*")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|fetch\(|WebSocket|<style|<script>| style="| on[a-z]+="|@import|url\(`)
	for _, file := range all {
		if name := filepath.Base(file); !seen["/check/"+name] && name != "index.html" {
			t.Errorf("nothing loads %s", name)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := bad.FindString(string(text)); m != "" {
			t.Errorf("%s has %q", file, m)
		}
	}
	if policy := filestest.Ask(e, "/check").Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "connect-src") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
	filestest.Revalidated(t, e, "/check")
	filestest.Compressed(t, e, "/check/app.js")
	for _, path := range []string{"/check/nothing.js", "/check/", "/check/..%2fproofpage.go"} {
		if w := filestest.Ask(e, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
