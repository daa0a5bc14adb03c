package intake_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/console"
	"github.com/perpetua-exchange/perpetua/handlers/intake"
	"github.com/perpetua-exchange/perpetua/handlers/web/files/filestest"
)

// pages are the pages, each in a folder of its name.
var pages = []string{"apply", "compliance"}

// serve serves the pages beside the console, whose files they load.
func serve(t *testing.T) *echo.Echo {
	t.Helper()
	return filestest.Serve(t, func(e *echo.Echo) error {
		if err := console.Register(e); err != nil {
			return err
		}
		return intake.Register(e)
	})
}

// own tells a page's own files from those of the others.
func own(page string) func(path string) bool {
	return func(path string) bool { return path == "/"+page || strings.HasPrefix(path, "/"+page+"/") }
}

// TestPagesAreWhole follows each page to every file that it and they load: all must be there, with their type and the policy,
// and nothing may come from another place.
func TestPagesAreWhole(t *testing.T) {
	e := serve(t)
	for _, page := range pages {
		seen := filestest.Whole(t, e, "/"+page+"/", own(page), "/"+page)
		for _, f := range folder(t, page) {
			if name := filepath.Base(f); !seen["/"+page+"/"+name] && name != "index.html" {
				t.Errorf("nothing loads %s of %s", name, page)
			}
		}
		if policy := filestest.Ask(e, "/"+page).Header().Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", page, policy)
		}
		filestest.Revalidated(t, e, "/"+page)
		filestest.Compressed(t, e, "/"+page+"/app.js")
		for _, path := range []string{"/" + page + "/nothing.js", "/" + page + "/", "/" + page + "/..%2fintake.go"} {
			if w := filestest.Ask(e, path); w.Code != http.StatusNotFound {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
	}
}

func folder(t *testing.T, page string) []string {
	t.Helper()
	all, err := filepath.Glob(page + "/*")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}

// TestPolicyIsKept looks for what the policy would refuse, or what text from the network could become markup with.
func TestPolicyIsKept(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|<style|<script>| style="| on[a-z]+="|@import|url\(`)
	for _, page := range pages {
		for _, f := range folder(t, page) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if m := bad.FindString(string(text)); m != "" {
				t.Errorf("%s holds %q", f, m)
			}
		}
	}
}

// TestCountriesAreThoseOfTheService: each country that the service takes can be chosen, and no other.
func TestCountriesAreThoseOfTheService(t *testing.T) {
	text, err := os.ReadFile("apply/countries.js")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`\b([A-Z]{3})[A-Z]{2}\b`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	letters := strings.Split("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "")
	for _, a := range letters {
		for _, b := range letters {
			for _, c := range letters {
				if code := a + b + c; owner.IsCountry(code) != slices.Contains(listed, code) {
					t.Errorf("%s: the service says %t", code, owner.IsCountry(code))
				}
			}
		}
	}
}

// TestCategoriesAreThoseOfTheService: a file can be said to be whatever the service takes, and nothing else.
func TestCategoriesAreThoseOfTheService(t *testing.T) {
	text, err := os.ReadFile("apply/documents.js")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "const categories = (")
	list, _, _ = strings.Cut(list, ").split")
	listed := regexp.MustCompile(`[a-z_]+`).FindAllString(list, -1)
	spec, err := os.ReadFile("../../schemas/openapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`DocumentCategory:\n\s+type: string\n\s+enum: \[([^]]*)\]`).FindSubmatch(spec)
	if enum == nil {
		t.Fatal("the description has no DocumentCategory")
	}
	taken := strings.Split(string(enum[1]), ", ")
	slices.Sort(taken)
	slices.Sort(listed)
	if !slices.Equal(taken, listed) {
		t.Errorf("the page has %v, the service %v", listed, taken)
	}
}
