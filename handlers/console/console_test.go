package console_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/web/files/filestest"
)

func serve(t *testing.T) *echo.Echo {
	t.Helper()
	return filestest.Serve(t, console.Register)
}

// own tells the console's own files from those of the chart library.
func own(path string) bool {
	_, err := os.Stat(filepath.Join("static", filepath.Base(path)))
	return err == nil || path == "/"
}

// TestPageIsWhole follows the page to every file that it and they load: all must be there, with their type and the
// policy, and nothing may come from another place.
func TestPageIsWhole(t *testing.T) {
	e := serve(t)
	seen := filestest.Whole(t, e, "/console/", own, "/")
	files, err := os.ReadDir("static")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen["/console/"+f.Name()] && f.Name() != "index.html" {
			t.Errorf("nothing loads %s", f.Name())
		}
	}
	if policy := filestest.Ask(e, "/").Header().Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
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

// TestChartIsAttributed: the chart library's licence asks for its notice on the page, and a link to its maker.
func TestChartIsAttributed(t *testing.T) {
	filestest.Vendored(t, "vendored")
	notice, err := os.ReadFile("vendored/lightweight-charts.NOTICE.txt")
	if err != nil {
		t.Fatal(err)
	}
	page := filestest.Ask(serve(t), "/").Body.String()
	for line := range strings.FieldsFuncSeq(string(notice), func(r rune) bool { return r == '\n' }) {
		if text, _, _ := strings.Cut(line, " https://"); !strings.Contains(page, text) {
			t.Errorf("the page does not show %q", text)
		}
	}
	if !strings.Contains(page, `<a href="https://www.tradingview.com/"`) {
		t.Error("the page has no link to the maker of the chart library")
	}
}

func TestFilesAreKeptAndCompressed(t *testing.T) {
	e := serve(t)
	for _, path := range []string{"/", "/console/app.js", "/console/lightweight-charts.js", "/console/lightweight-charts.LICENSE.txt"} {
		filestest.Revalidated(t, e, path)
		filestest.Compressed(t, e, path)
	}
	for _, path := range []string{"/console/nothing.js", "/console/static", "/console/..%2fconsole.go", "/console/", "/console/README.md"} {
		if w := filestest.Ask(e, path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
