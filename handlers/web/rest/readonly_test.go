package rest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"
)

// TestReadOnlyAllows: the header Allow of a follower names no method that it refuses.
func TestReadOnlyAllows(t *testing.T) {
	answers := func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }
	for name, c := range map[string]struct {
		readOnly               *ReadOnly
		both, write, elsewhere string // Allow of the three paths
	}{
		"a venue":    {nil, "OPTIONS, GET, HEAD, POST, DELETE", "OPTIONS, POST", "OPTIONS, GET, HEAD"},
		"a follower": {&ReadOnly{Elsewhere: func(route string) bool { return strings.HasSuffix(route, "/receipt") }}, "OPTIONS, GET, HEAD", "OPTIONS", "OPTIONS"},
	} {
		s, err := New(Options{ReadOnly: c.readOnly})
		if err != nil {
			t.Fatal(err)
		}
		NewAuth(keyHolders()).Register(s.Echo, []Route{Get("/v1/orders", answers), Post("/v1/orders", answers), Delete("/v1/orders", answers),
			Post("/v1/batch", answers), Get("/v1/orders/:code/receipt", answers)})
		allow := func(method, path string, headers http.Header) string {
			r := httptest.NewRequest(method, path, nil)
			r.Header = headers
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			return w.Header().Get("Allow")
		}
		page := http.Header{"Origin": {"https://a.example"}, "Access-Control-Request-Method": {"POST"}}
		for path, want := range map[string]string{"/v1/orders": c.both, "/v1/batch": c.write, "/v1/orders/A/receipt": c.elsewhere} {
			for _, headers := range []http.Header{{}, page} {
				if got := allow(http.MethodOptions, path, headers); got != want {
					t.Errorf("%s: OPTIONS %s with %v: Allow is %q, want %q", name, path, headers, got, want)
				}
			}
		}
		if got := allow(http.MethodGet, "/v1/batch", http.Header{}); got != c.write {
			t.Errorf("%s: GET /v1/batch: Allow is %q, want %q", name, got, c.write)
		}
	}
}
