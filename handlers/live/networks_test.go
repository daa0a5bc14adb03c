package live_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// behindProxy returns the URL of the hub behind a trusted proxy, whose client has the address.
func (v *venue) behindProxy(address string) string {
	v.t.Helper()
	_, loopback, err := net.ParseCIDR("127.0.0.0/8")
	if err != nil {
		v.t.Fatal(err)
	}
	e, err := rest.New(rest.Options{TrustedProxies: []*net.IPNet{loopback}})
	if err != nil {
		v.t.Fatal(err)
	}
	v.hub.Register(e.Echo)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-Forwarded-For", address)
		e.ServeHTTP(w, r)
	}))
	v.t.Cleanup(server.Close)
	return "ws" + strings.TrimPrefix(server.URL, "http") + live.Path
}

// limitingNetworks gives networks a burst of three requests, and no more while the test runs.
func limitingNetworks(c *live.Config) {
	stopped := time.Now()
	c.Networks = access.NewNetworks(1, 3, func() time.Time { return stopped })
}

// TestConnectionsOfANetwork: a network has a bounded number of connections without a token, and a free one for each that has ended.
func TestConnectionsOfANetwork(t *testing.T) {
	v := newVenue(t, live.Limits{NetworkConnections: 2}, nil, limitingNetworks)
	one, another := v.behindProxy("2001:db8::1"), v.behindProxy("2001:db8::2")
	refused := func(url string) bool {
		t.Helper()
		c, response, err := livetest.TryDial(t, url, "")
		if err == nil {
			c.Close()
			return false
		}
		if response == nil || response.StatusCode != http.StatusTooManyRequests || response.Header.Get("Retry-After") != "1" {
			t.Fatalf("%v %v", response, err)
		}
		return true
	}
	first := livetest.Dial(t, one, "")
	livetest.Dial(t, another, "")
	for _, url := range []string{one, another} {
		if !refused(url) {
			t.Error("one more than the network may have")
		}
	}
	livetest.Dial(t, one, v.reader("alpha"))
	for _, url := range []string{v.url, v.behindProxy("2001:db8:0:1::1")} { // this machine, and another network
		for range 3 {
			livetest.Dial(t, url, v.reader("alpha"))
		}
		livetest.Dial(t, url, "")
	}
	first.Close()
	for deadline := time.Now().Add(livetest.Patience); refused(one); {
		if time.Now().After(deadline) {
			t.Fatal("the connection that has ended still counts")
		}
	}
}

// TestConnectionsWithoutLimits: nothing is bounded where networks are not limited.
func TestConnectionsWithoutLimits(t *testing.T) {
	v := newVenue(t, live.Limits{NetworkConnections: 1}, nil)
	url := v.behindProxy("192.0.2.1")
	for range 3 {
		c := livetest.Dial(t, url, "")
		for range 5 {
			if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": "forged"}}); m.Code != string(live.AuthenticationFailed) {
				t.Errorf("%s", m.Raw)
			}
		}
	}
}

// TestGuessesOverSockets: tokens that are not valid count towards the limit of the network, whichever of its connections they come
// over, and a valid one is accepted all the same.
func TestGuessesOverSockets(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil, limitingNetworks)
	url := v.behindProxy("192.0.2.1")
	clients := []*livetest.Client{livetest.Dial(t, url, ""), livetest.Dial(t, url, "")}
	guess := func(c *livetest.Client, want live.Code) {
		t.Helper()
		if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": "forged"}}); m.Code != string(want) {
			t.Errorf("%s, want %s", m.Raw, want)
		}
	}
	guess(clients[0], live.AuthenticationFailed)
	guess(clients[1], live.AuthenticationFailed)
	guess(clients[0], live.AuthenticationFailed)
	guess(clients[1], live.RateLimited)
	guess(livetest.Dial(t, v.behindProxy("192.0.2.2"), ""), live.AuthenticationFailed)
	clients[1].Authenticate(v.reader("alpha"))
	clients[1].Subscribe("orders")
}
