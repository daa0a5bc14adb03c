package rest

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// limitedServer serves routes of all kinds. Each network may send a burst of three requests, and no more while the test runs.
func limitedServer(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	done := func(c echo.Context) error { return c.String(http.StatusOK, RateLimitOf(c).Policy()) }
	auth := NewAuth(keyHolders())
	auth.Register(s.Echo, []Route{Get("/v1/public", done), Get("/v1/private", done, access.ScopeTrade), Get("/api/v1/private", done, access.ScopeTrade)})
	for _, path := range []string{"/", "/healthz", "/readyz", "/metrics", "/internal/v1/term"} {
		s.GET(path, done)
	}
	stopped := time.Now()
	s.LimitRequests(auth, access.NewNetworks(1, 3, func() time.Time { return stopped }), "/internal/v1/term")
	return s
}

// from asks a server as a client at an address.
func from(e http.Handler, address, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.RemoteAddr = net.JoinHostPort(address, "1")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// TestAnonymousRequestsAreLimited: whatever comes without a valid token counts, wherever it is sent.
func TestAnonymousRequestsAreLimited(t *testing.T) {
	for _, test := range []struct {
		method, path, token string
		status              int
	}{
		{"GET", "/", "", 200},
		{"GET", "/", "x", 200},
		{"HEAD", "/", "", 200},
		{"GET", "/v1/public", "", 200},
		{"GET", "/v1/public", "x", 200},
		{"GET", "/v1/private", "", 401},
		{"GET", "/v1/private", "x", 401},
		{"GET", "/v1/private", access.NewSecret(), 401},
		{"GET", "/v1/nowhere", "", 404},
		{"GET", "/v1/nowhere", "x", 404},
		{"PUT", "/v1/public", "", 405},
	} {
		s := limitedServer(t, Options{})
		var headers []string
		if test.token != "" {
			headers = []string{"Authorization", "Bearer " + test.token}
		}
		for range 3 {
			if w := from(s, "192.0.2.1", test.method, test.path, headers...); w.Code != test.status || w.Header().Get(access.HeaderRateLimit) != "" {
				t.Errorf("%s %s with %q: %d %v", test.method, test.path, test.token, w.Code, w.Header())
			}
		}
		w := from(s, "192.0.2.1", test.method, test.path, headers...)
		if h := w.Header(); w.Code != 429 || h.Get("Retry-After") != "1" || h.Get(access.HeaderRateLimitPolicy) != `"network";q=3;w=3` ||
			h.Get(access.HeaderRateLimit) != `"network";r=0;t=3` || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s with %q: the fourth: %d %v", test.method, test.path, test.token, w.Code, h)
		}
		if w := from(s, "192.0.2.2", test.method, test.path, headers...); w.Code != test.status {
			t.Errorf("%s %s with %q: from another address: %d", test.method, test.path, test.token, w.Code)
		}
	}
}

// TestNotLimited: a valid token is never refused because of its network, and neither are probes, other nodes, and the machine itself.
func TestNotLimited(t *testing.T) {
	s := limitedServer(t, Options{})
	for range 4 {
		from(s, "192.0.2.1", "GET", "/")
	}
	if w := from(s, "192.0.2.1", "GET", "/v1/public"); w.Code != 429 {
		t.Fatalf("%d", w.Code)
	}
	good := []string{"Authorization", "Bearer " + newKey}
	for range 10 {
		for _, path := range []string{"/", "/v1/public", "/v1/private", "/api/v1/private"} {
			if w := from(s, "192.0.2.1", "GET", path, good...); w.Code != 200 {
				t.Errorf("%s with a token: %d", path, w.Code)
			}
			if w := from(s, "192.0.2.3", "GET", path, good...); w.Code != 200 {
				t.Errorf("%s with a token: %d", path, w.Code)
			}
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/internal/v1/term"} {
			if w := from(s, "192.0.2.1", "GET", path); w.Code != 200 {
				t.Errorf("%s: %d", path, w.Code)
			}
		}
		preflight := from(s, "192.0.2.1", "OPTIONS", "/v1/public", "Origin", "https://app.example", "Access-Control-Request-Method", "GET")
		if preflight.Code != 204 {
			t.Errorf("a preflight request: %d", preflight.Code)
		}
		for _, address := range []string{"127.0.0.1", "::1"} {
			if w := from(s, address, "GET", "/"); w.Code != 200 || w.Body.String() != "none" {
				t.Errorf("%s: %d %s", address, w.Code, w.Body)
			}
		}
	}
	if w := from(s, "192.0.2.3", "GET", "/"); w.Code != 200 || w.Body.String() != "network" {
		t.Errorf("after requests with a token only: %d %s", w.Code, w.Body)
	}
}

// TestTheLimitedAddress: a proxy of ours names the client, and nobody else does.
func TestTheLimitedAddress(t *testing.T) {
	_, proxies, err := net.ParseCIDR("10.1.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name       string
		peers      []string // of four requests
		forwarded  []string
		lastStatus int
	}{
		{"a client behind a proxy", []string{"10.1.0.1"}, []string{"203.0.113.9"}, 429},
		{"a client behind two proxies", []string{"10.1.0.1", "10.1.0.2"}, []string{"203.0.113.9"}, 429},
		{"a client that writes the header", []string{"10.1.0.1"}, []string{"1.1.1.1, 203.0.113.9", "1.1.1.2, 203.0.113.9", "1.1.1.3, 203.0.113.9", "1.1.1.4, 203.0.113.9"}, 429},
		{"a client behind a proxy that claims to be this machine", []string{"10.1.0.1"}, []string{"127.0.0.1, 203.0.113.9", "::1, 203.0.113.9"}, 429},
		{"a client behind a proxy that writes no address", []string{"10.1.0.1"}, []string{"127.0.0.1, x, 203.0.113.9"}, 429},
		{"a proxy that writes no address", []string{"10.1.0.1"}, []string{"127.0.0.1, x", "", "203.0.113.9:443"}, 429},
		{"four clients behind a proxy", []string{"10.1.0.1"}, []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"}, 200},
		{"a network behind a proxy", []string{"10.1.0.1"}, []string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"}, 429},
		{"four networks behind a proxy", []string{"10.1.0.1"}, []string{"2001:db8:0:1::", "2001:db8:0:2::", "2001:db8:0:3::", "2001:db8:0:4::"}, 200},
		{"a mapped address", []string{"203.0.113.9", "::ffff:203.0.113.9"}, []string{""}, 429},
		{"no proxy", []string{"203.0.113.9"}, []string{"203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"}, 429},
		{"no proxy that claims to be this machine", []string{"203.0.113.9"}, []string{"127.0.0.1"}, 429},
	} {
		s := limitedServer(t, Options{TrustedProxies: []*net.IPNet{proxies}})
		var last int
		for i := range 4 {
			last = from(s, test.peers[i%len(test.peers)], "GET", "/", "X-Forwarded-For", test.forwarded[i%len(test.forwarded)], "X-Real-Ip", "127.0.0.1").Code
			if i < 3 && last != 200 {
				t.Errorf("%s: request %d: %d", test.name, i, last)
			}
		}
		if last != test.lastStatus {
			t.Errorf("%s: %d, want %d", test.name, last, test.lastStatus)
		}
	}
}

// TestLimitedOverHTTP: in the dialect of each service, readable by pages of other origins, counted, and quiet in the log.
func TestLimitedOverHTTP(t *testing.T) {
	_, loopback, err := net.ParseCIDR("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	metrics := prometheus.NewRegistry()
	server := httptest.NewServer(limitedServer(t, Options{TrustedProxies: []*net.IPNet{loopback}, Metrics: metrics, Logger: slog.New(slog.NewTextHandler(&log, nil))}))
	t.Cleanup(server.Close)
	get := func(path string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		r.Header.Set("Origin", "https://app.example")
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a, string(body)
	}
	for range 3 {
		if a, body := get("/v1/public"); a.StatusCode != 200 || body != "network" {
			t.Fatalf("%d %s", a.StatusCode, body)
		}
	}
	for path, want := range map[string][2]string{"/v1/public": {"application/problem+json", `"code":"RATE_LIMITED"`}, "/api/v1/private": {"application/json", `{"detail":"RATE_LIMITED"}`}} {
		a, body := get(path)
		if a.StatusCode != 429 || a.Header.Get("Content-Type") != want[0] || !strings.Contains(body, want[1]) || a.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %v %s", path, a.StatusCode, a.Header, body)
		}
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP perpetua_http_rate_limited_total Requests refused by a rate limit: of a user, an api_key, or a network.
# TYPE perpetua_http_rate_limited_total counter
perpetua_http_rate_limited_total{policy="api_key"} 0
perpetua_http_rate_limited_total{policy="network"} 2
perpetua_http_rate_limited_total{policy="user"} 0
`), "perpetua_http_rate_limited_total"); err != nil {
		t.Error(err)
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
}

// TestQuietRefusals: of the refusals with 429, only those by the limit of a network are missing in the log, which shows who guesses
// passwords.
func TestQuietRefusals(t *testing.T) {
	var log bytes.Buffer
	s := limitedServer(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.POST("/guess", func(echo.Context) error { return problem.New(http.StatusTooManyRequests, "TOO_MANY_GUESSES", "") })
	for range 5 {
		from(s, "192.0.2.1", "POST", "/guess")
	}
	if got := strings.Count(log.String(), "code=TOO_MANY_GUESSES"); got != 3 || strings.Contains(log.String(), access.CodeRateLimited) {
		t.Errorf("%d refusals are in the log:\n%s", got, &log)
	}
}

// TestLimitOfAStartingNode: a node that cannot verify tokens yet does not say that valid ones are limited. It counts them all the same.
func TestLimitOfAStartingNode(t *testing.T) {
	tokens, starting, stopped := keyHolders(), true, time.Now()
	tokens.MayLack(func() bool { return starting })
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	s.LimitRequests(NewAuth(tokens), access.NewNetworks(1, 1, func() time.Time { return stopped }))
	token := []string{"Authorization", "Bearer " + access.NewSecret()}
	if w := from(s, "192.0.2.1", "GET", "/", token...); w.Code != 204 {
		t.Errorf("the first: %d", w.Code)
	}
	if w := from(s, "192.0.2.1", "GET", "/", token...); w.Code != 503 || w.Header().Get(access.HeaderRateLimit) != "" {
		t.Errorf("the second: %d %v", w.Code, w.Header())
	}
	if w := from(s, "192.0.2.1", "GET", "/"); w.Code != 429 {
		t.Errorf("without a token: %d", w.Code)
	}
	starting = false
	if w := from(s, "192.0.2.1", "GET", "/", token...); w.Code != 429 {
		t.Errorf("after the start: %d", w.Code)
	}
}

// TestOneVerification: the server and the route verify a token once.
func TestOneVerification(t *testing.T) {
	used := 0
	tokens := keyHolders()
	tokens.Used(func(access.APIKey) { used++ })
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	auth := NewAuth(tokens)
	auth.Register(s.Echo, []Route{Get("/v1/private", func(c echo.Context) error { return c.NoContent(204) }, access.ScopeTrade)})
	s.LimitRequests(auth, access.NewNetworks(1, 3, time.Now))
	for n := 1; n <= 3; n++ {
		if w := ask(s, "GET", "/v1/private", "", "Authorization", "Bearer "+newKey); w.Code != 204 || used != n {
			t.Errorf("%d, and the key was used %d times in %d requests", w.Code, used, n)
		}
	}
}

// limitedHolder is keyHolder whose user may send three requests.
type limitedHolder struct{ keyHolder }

func (limitedHolder) Account(name string) (access.Account, bool) {
	a, known := keyHolder{}.Account(name)
	a.RateLimit = access.RateLimit{PerSecond: 1, Burst: 3}
	return a, known
}

// TestTokensCountEverywhere: each request with a valid token counts once towards its user's limit, whatever it asks for and whether
// the limit of networks is in force. Answers that a cache may keep do not tell what remains. The log names the user of a refused
// request. Probes and other nodes do not count.
func TestTokensCountEverywhere(t *testing.T) {
	stopped := time.Now()
	clock := func() time.Time { return stopped }
	for _, networks := range []*access.Networks{nil, access.NewNetworks(1, 1, clock)} {
		for _, test := range []struct {
			method, path string
			status       int
			remaining    string // in the first answer
		}{
			{"GET", "/v1/public", 200, ""},
			{"HEAD", "/v1/public", 200, ""},
			{"OPTIONS", "/v1/public", 204, ""},
			{"POST", "/v1/public", 405, ""},
			{"GET", "/v1/private", 200, `"user";r=2;t=1`},
			{"HEAD", "/v1/private", 200, `"user";r=2;t=1`},
			{"GET", "/v1/forbidden", 403, `"user";r=2;t=1`},
			{"GET", "/v1/own", 200, `"user";r=2;t=1`},
			{"GET", "/page", 200, ""},
			{"GET", "/v1/nowhere", 404, ""},
		} {
			var log bytes.Buffer
			s, err := New(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			done := func(c echo.Context) error { return c.NoContent(http.StatusOK) }
			auth := NewAuth(access.NewTokens(limitedHolder{}, "perpetua", clock))
			auth.Register(s.Echo, []Route{Get("/v1/public", done), Get("/v1/private", done, access.ScopeTrade), Get("/v1/forbidden", done, access.ScopeAuditor), Get("/v1/own", func(c echo.Context) error {
				if _, err := auth.Authenticate(c); err != nil {
					return err
				}
				return done(c)
			})})
			s.GET("/page", done)
			s.GET("/healthz", done)
			s.GET("/internal/v1/term", done)
			s.LimitRequests(auth, networks, "/internal/v1/term")
			send := func(method, path string) *httptest.ResponseRecorder {
				return from(s, "192.0.2.1", method, path, "Authorization", "Bearer "+newKey)
			}
			for n := range 3 {
				w := send(test.method, test.path)
				if w.Code != test.status || n == 0 && w.Header().Get(access.HeaderRateLimit) != test.remaining {
					t.Errorf("%s %s: request %d: %d %v", test.method, test.path, n, w.Code, w.Header())
				}
			}
			log.Reset()
			w := send(test.method, test.path)
			if h := w.Header(); w.Code != 429 || h.Get("Retry-After") != "1" || h.Get(access.HeaderRateLimit) != `"user";r=0;t=3` || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: the fourth: %d %v", test.method, test.path, w.Code, h)
			}
			if line := log.String(); !strings.Contains(line, "code=RATE_LIMITED user=u broker=alpha") {
				t.Errorf("%s %s: the log has %s", test.method, test.path, line)
			}
			for _, path := range []string{"/healthz", "/internal/v1/term"} {
				if w := send("GET", path); w.Code != 200 {
					t.Errorf("%s: %d", path, w.Code)
				}
			}
		}
	}
}

// BenchmarkAnonymous measures what the limit adds to a request that does nothing, over HTTP and without it.
func BenchmarkAnonymous(b *testing.B) {
	_, loopback, err := net.ParseCIDR("127.0.0.0/8")
	if err != nil {
		b.Fatal(err)
	}
	for _, limited := range []bool{false, true} {
		name := "free"
		s, err := New(Options{TrustedProxies: []*net.IPNet{loopback}})
		if err != nil {
			b.Fatal(err)
		}
		s.GET("/", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
		if limited {
			name = "limited"
			s.LimitRequests(NewAuth(keyHolders()), access.NewNetworks(1<<40, 1<<40, time.Now))
		}
		b.Run(name+"/handler", func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			b.ReportAllocs()
			for b.Loop() {
				s.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
		b.Run(name+"/http", func(b *testing.B) {
			server := httptest.NewServer(s)
			defer server.Close()
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("X-Forwarded-For", "203.0.113.9")
			for b.Loop() {
				a, err := http.DefaultClient.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				a.Body.Close()
			}
		})
	}
}
