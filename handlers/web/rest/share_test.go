package rest

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// TestCrossOrigin: pages of any origin may call, or those of the origins that are set. Programs notice nothing of it.
func TestCrossOrigin(t *testing.T) {
	fine := func(c echo.Context) error { return c.JSON(http.StatusOK, map[string]string{}) }
	for _, tt := range []struct {
		name                       string
		allowed                    []string
		method, path, origin, want string
		status                     int
	}{
		{"any origin", nil, "GET", "/v1/things", "https://a.example", "*", 200},
		{"a program", nil, "GET", "/v1/things", "", "", 200},
		{"an answer to a mistake", nil, "GET", "/v1/nothing", "https://a.example", "*", 404},
		{"the login", nil, "POST", "/auth/x", "https://a.example", "*", 200},
		{"onboarding", nil, "GET", "/api/v1/things", "null", "*", 200},
		{"a preflight", nil, "OPTIONS", "/v1/things", "https://a.example", "*", 204},
		{"the operator's interface", nil, "GET", "/admin/v1/things", "https://a.example", "", 404},
		{"an origin that is set", []string{"https://a.example", "https://b.example"}, "GET", "/v1/things", "https://b.example", "https://b.example", 200},
		{"another origin", []string{"https://a.example"}, "GET", "/v1/things", "https://a.example.org", "", 200},
		{"a preflight of another", []string{"https://a.example"}, "OPTIONS", "/v1/things", "https://b.example", "", 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			headers := []string{"Access-Control-operation.Request-Method", "DELETE", "Access-Control-operation.Request-Headers", "idempotency-key"}
			if tt.origin != "" {
				headers = append(headers, "Origin", tt.origin)
			}
			w := ask(serve(t, Options{CORSOrigins: tt.allowed}, fine), tt.method, tt.path, "", headers...)
			h := w.Header()
			if w.Code != tt.status || h.Get("Access-Control-Allow-Origin") != tt.want || h.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%d %v", w.Code, h)
			}
			preflight := tt.method == "OPTIONS" && tt.want != ""
			if preflight != (strings.Contains(h.Get("Access-Control-Allow-Methods"), "DELETE") &&
				strings.Contains(h.Get("Access-Control-Allow-Headers"), operation.HeaderIdempotencyKey)) {
				t.Errorf("a preflight is answered %v", h)
			}
			if tt.want != "" && !preflight && !strings.Contains(h.Get("Access-Control-Expose-Headers"), operation.HeaderLogPosition) {
				t.Errorf("a page may not read %s: %v", operation.HeaderLogPosition, h)
			}
			if len(tt.allowed) > 0 && !slices.Contains(h.Values("Vary"), "Origin") {
				t.Errorf("a cache would mix up origins: %v", h)
			}
		})
	}
}

// TestCompressed: an answer above 1 KiB is compressed for who asks, and no other is.
func TestCompressed(t *testing.T) {
	for _, tt := range []struct {
		asks string
		size int
		want bool
	}{
		{"gzip", 2000, true}, {"br, gzip;q=0.8", 2000, true}, {"GZIP", 100_000, true}, {"gzip", 900, false}, {"", 2000, false},
		{"identity", 2000, false}, {"gzip;q=0", 2000, false}, {"gzip; q=0.0, br", 2000, false}, {"gzipped", 2000, false},
	} {
		text := strings.Repeat("x", tt.size)
		e := serve(t, Options{}, func(c echo.Context) error { return c.JSON(http.StatusOK, text) })
		w := ask(e, "GET", "/v1/things", "", "Accept-Encoding", tt.asks)
		body := io.Reader(w.Body)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != tt.want {
			t.Fatalf("%q for %d bytes: %v", tt.asks, tt.size, w.Header())
		}
		if tt.want {
			unpacked, err := gzip.NewReader(body)
			if err != nil {
				t.Fatal(err)
			}
			body = unpacked
		}
		got, err := io.ReadAll(body)
		if err != nil || string(got) != `"`+text+`"` {
			t.Errorf("%q for %d bytes: %d bytes, %v", tt.asks, tt.size, len(got), err)
		}
		if varies := slices.Contains(w.Header().Values("Vary"), "Accept-Encoding"); varies != (tt.size > 1024) {
			t.Errorf("%q for %d bytes: %v", tt.asks, tt.size, w.Header())
		}
	}
}

// TestCaching: a client that has an answer does not get it again, private answers and problems are kept nowhere.
func TestCaching(t *testing.T) {
	value := "one"
	e := serve(t, Options{}, func(c echo.Context) error {
		if value == "" {
			return problem.NotFound("NOTHING", "Nothing.")
		}
		return CachedJSON(c, 5*time.Second, value)
	})
	first := ask(e, "GET", "/v1/things", "")
	tag := first.Header().Get("ETag")
	if first.Code != 200 || tag == "" || first.Header().Get("Cache-Control") != "public, max-age=5" ||
		!slices.Contains(first.Header().Values("Vary"), operation.HeaderMinLogPosition) {
		t.Fatalf("%d %v", first.Code, first.Header())
	}
	for _, has := range []string{tag, strings.TrimPrefix(tag, "W/"), `"other", ` + tag, "*"} {
		w := ask(e, "GET", "/v1/things", "", "If-None-Match", has)
		if w.Code != 304 || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
			t.Errorf("%s: %d %v %s", has, w.Code, w.Header(), w.Body)
		}
	}
	value = "two"
	if w := ask(e, "GET", "/v1/things", "", "If-None-Match", tag); w.Code != 200 || w.Header().Get("ETag") == tag {
		t.Errorf("another answer: %d %v", w.Code, w.Header())
	}
	value = ""
	if w := ask(e, "GET", "/v1/things", ""); w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a problem: %v", w.Header())
	}
}

// TestCachesTellAnswersApart: what caches may keep says what else the answer depends on, and a 304 the same as the 200:
// without an origin it does not say that a page may read it, and it is packed for some and not for others.
func TestCachesTellAnswersApart(t *testing.T) {
	e := serve(t, Options{}, func(c echo.Context) error { return CachedJSON(c, 5*time.Second, strings.Repeat("x", 2000)) })
	for _, origin := range []string{"", "https://a.example"} {
		var headers []string
		if origin != "" {
			headers = []string{"Origin", origin}
		}
		whole := ask(e, "GET", "/v1/things", "", headers...)
		known := ask(e, "GET", "/v1/things", "", append(headers, "If-None-Match", whole.Header().Get("ETag"))...)
		if whole.Code != 200 || known.Code != 304 {
			t.Fatalf("%d, then %d", whole.Code, known.Code)
		}
		want := []string{"Accept-Encoding", "Origin", operation.HeaderMinLogPosition}
		for _, w := range []http.Header{whole.Header(), known.Header()} {
			if vary := slices.Sorted(slices.Values(w.Values("Vary"))); !slices.Equal(vary, want) {
				t.Errorf("from %q: varies by %v, want %v", origin, vary, want)
			}
		}
	}
}
