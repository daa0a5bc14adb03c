package trading_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestOtherMethods: an address that is there answers 405, and what it takes in Allow, to a method that it does not take,
// with or without a token. The answer to OPTIONS has the same Allow. Send holds each answer against the description, too.
func TestOtherMethods(t *testing.T) {
	v := tradingtest.New(t)
	taken := map[string][]string{} // path → methods, with the names of parameters left out
	shape := func(path string) string {
		parts := strings.Split(path, "/")
		for i, p := range parts {
			if strings.HasPrefix(p, ":") {
				parts[i] = ":"
			}
		}
		return strings.Join(parts, "/")
	}
	for _, r := range v.Routes() {
		taken[shape(r.Path)] = append(taken[shape(r.Path)], r.Method)
	}
	for _, r := range v.Routes() {
		want := slices.Concat(taken[shape(r.Path)], []string{"OPTIONS"})
		if slices.Contains(want, "GET") {
			want = append(want, "HEAD")
		}
		slices.Sort(want)
		want = slices.Compact(want)
		allows := func(method string, h http.Header) {
			got := strings.Split(h.Get("Allow"), ", ")
			if slices.Sort(got); !slices.Equal(got, want) {
				t.Errorf("%s %s: Allow is %q, want %q", method, r.Path, got, want)
			}
		}
		for _, headers := range []http.Header{{}, {"Origin": {"https://a.example"}}} {
			options := httptest.NewRequest(http.MethodOptions, concrete(r.Path), nil)
			options.Header = headers
			w := httptest.NewRecorder()
			v.Server.ServeHTTP(w, options)
			if w.Code != http.StatusNoContent {
				t.Errorf("OPTIONS %s: %d", r.Path, w.Code)
			}
			allows("OPTIONS", w.Header())
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			if slices.Contains(taken[shape(r.Path)], method) {
				continue
			}
			path := concrete(r.Path)
			for _, user := range []string{"", "operator"} {
				reply := v.Send(user, method, path, "")
				code, named := "METHOD_NOT_ALLOWED", "code"
				if strings.HasPrefix(path, "/api/v1/") {
					code, named = "Method Not Allowed", "detail"
				}
				if reply.Status != http.StatusMethodNotAllowed || reply.Text(named) != code {
					t.Errorf("%s %s by %q: %d %s", method, r.Path, user, reply.Status, reply.Body)
				}
				allows(method, reply.Header)
			}
		}
	}
	v.Send("operator", "GET", a1+"/orders/a/b", "").Code(404, "NOT_FOUND")
	v.Send("operator", "GET", "/v1/orderbook/a/b/c", "").Code(404, "NOT_FOUND")
}
