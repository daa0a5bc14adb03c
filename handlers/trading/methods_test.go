package trading_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestOtherMethods: an address that is there answers 405, and what it takes in Allow, to a method that it does not take,
// with or without a token. Send holds each answer against the description, too.
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
				want := slices.Concat(taken[shape(r.Path)], []string{"OPTIONS"})
				if slices.Contains(want, "GET") {
					want = append(want, "HEAD")
				}
				got := strings.Split(reply.Header.Get("Allow"), ", ")
				slices.Sort(got)
				if slices.Sort(want); !slices.Equal(got, slices.Compact(want)) {
					t.Errorf("%s %s: Allow is %q, want %q", method, r.Path, got, want)
				}
			}
		}
	}
	v.Send("operator", "GET", a1+"/orders/a/b", "").Code(404, "NOT_FOUND")
	v.Send("operator", "GET", "/v1/orderbook/a/b/c", "").Code(404, "NOT_FOUND")
}
