package rest

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestUntrustedProxies: the first request with an ignored address and one an hour later are logged, with the peer and the
// setting. Requests of trusted proxies and of clients without a proxy are not.
func TestUntrustedProxies(t *testing.T) {
	_, trusted, err := net.ParseCIDR("10.1.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	now := time.Now()
	p := newProxies(Options{TrustedProxies: []*net.IPNet{trusted}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func() time.Time { return now })
	warnings := func(peer, header string) string {
		log.Reset()
		for range 3 {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = peer
			if header != "" {
				r.Header.Set(header, "203.0.113.9")
			}
			p.check(r)
		}
		return log.String()
	}
	for _, quiet := range [][2]string{{"10.1.2.3:1", "X-Forwarded-For"}, {"10.1.2.3:1", "Forwarded"}, {"10.2.0.1:1", ""}, {"10.2.0.1:1", "X-Real-Ip"}, {"@", "X-Forwarded-For"}} {
		if got := warnings(quiet[0], quiet[1]); got != "" {
			t.Errorf("%v: %s", quiet, got)
		}
	}
	for _, untrusted := range [][3]string{
		{"10.2.0.1:1", "X-Forwarded-For", "peer=10.2.0.1 header=X-Forwarded-For"}, {"127.0.0.1:1", "Forwarded", "peer=127.0.0.1 header=Forwarded"},
		{"[2001:db8::1]:1", "X-Forwarded-For", "peer=2001:db8::1 header=X-Forwarded-For"},
	} {
		got := warnings(untrusted[0], untrusted[1])
		if strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, untrusted[2]) || !strings.Contains(got, "--trusted-proxies") {
			t.Errorf("%v: %s", untrusted, got)
		}
		if now = now.Add(59 * time.Minute); warnings(untrusted[0], untrusted[1]) != "" {
			t.Errorf("%v: another warning within the hour", untrusted)
		}
		now = now.Add(time.Minute)
	}
}

// TestServerWarnsOfProxies: a server without trusted proxies warns once, and answers.
func TestServerWarnsOfProxies(t *testing.T) {
	var log bytes.Buffer
	s := limitedServer(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 3 {
		if w := from(s, "192.0.2.1", "GET", "/", "X-Forwarded-For", "203.0.113.9"); w.Code != 200 {
			t.Errorf("%d", w.Code)
		}
	}
	if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, "peer=192.0.2.1") {
		t.Errorf("the log has %s", got)
	}
}
