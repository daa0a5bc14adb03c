package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// TestRateLimits: what a user's tokens and keys ask for counts together, over REST and sockets alike, each order of a batch
// as one.
func TestRateLimits(t *testing.T) {
	v := startVenue(t)
	v.fund("100000", "ANNA")
	made := v.must(201, "broker-a", http.MethodPost, "/v1/api-keys", `{"name":"k","scopes":["trade","read"]}`)
	caughtUp(t, v, made.Header.Get("X-Log-Position"))
	c := livetest.Dial(t, v.WebSocket, made.get("key"))
	batch := ask(t, c, "before", "order.place_batch", `{"customer_code":"ANNA","orders":[{`+limitBuy+`},{`+limitBuy+`}]}`)
	if batch.Status != 200 {
		t.Fatalf("%+v %s", batch, batch.Data)
	}
	v.must(200, "operator", http.MethodPatch, "/admin/v1/users/broker-a", `{"rate_limit":{"per_second":1,"burst":20}}`)
	waitFor(t, "the limit", func() bool {
		return v.do("broker-a", http.MethodGet, "/v1/limits", nil).Header.Get("RateLimit-Policy") == `"user";q=20;w=20`
	})
	order := "{" + limitBuy + "}"
	orders := order
	for range 49 {
		orders += "," + order
	}
	overdraw(t, c, `{"customer_code":"ANNA","orders":[`+orders+`]}`)
	for i := range 3 {
		if e := ask(t, c, fmt.Sprint("after", i), "order.place", `{"customer_code":"ANNA",`+limitBuy+`}`); e.Status != 429 || e.text("code") != "RATE_LIMITED" {
			t.Errorf("%+v %s", e, e.Data)
		}
	}
	refused := v.do("broker-a", http.MethodGet, "/v1/orders", nil)
	if refused.Status != 429 || refused.get("code") != "RATE_LIMITED" || refused.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", refused.Status, refused.Header, refused.Body)
	}
	v.must(200, "operator", http.MethodPatch, "/admin/v1/users/broker-a", `{"rate_limit":null}`)
}

// overdraw sends a batch that costs more tokens than there are. A busy venue may not accept it, but the tokens are spent, so it is
// not sent again.
func overdraw(t *testing.T, c *livetest.Client, batch string) {
	t.Helper()
	sendEntry(c, "batch", "order.place_batch", batch)
	if e := resultOf(t, c, "batch"); e.Status != http.StatusOK && e.text("code") != "NOT_ACCEPTED" {
		t.Fatalf("%+v %s", e, e.Data)
	}
}

// TestRateLimitsOfAPIKeys: a key with a limit of its own is refused when that is exhausted, over REST and sockets, and told
// how long; its user and the user's other key are not. The limit outlives a restart and ends with the key.
func TestRateLimitsOfAPIKeys(t *testing.T) {
	v := startVenue(t)
	v.fund("100000", "ANNA")
	keys := make(map[string]answer)
	for _, name := range []string{"limited", "free"} {
		keys[name] = v.must(201, "broker-a", http.MethodPost, "/v1/api-keys", `{"name":"`+name+`","scopes":["trade","read"]}`)
		v.tokens[name] = keys[name].get("key") // which is a user's name to the harness from now on
	}
	at := "/admin/v1/users/broker-a/api-keys/" + keys["limited"].get("id")
	set := v.must(200, "operator", http.MethodPatch, at, `{"rate_limit":{"per_second":1,"burst":10}}`)
	caughtUp(t, v, set.Header.Get("X-Log-Position"))

	byLimited, byFree := livetest.Dial(t, v.WebSocket, v.tokens["limited"]), livetest.Dial(t, v.WebSocket, v.tokens["free"])
	const order = `{"customer_code":"ANNA",` + limitBuy + `}`
	batch := `{"customer_code":"ANNA","orders":[{` + limitBuy + `}` + strings.Repeat(`,{`+limitBuy+`}`, 49) + `]}`
	overdraw(t, byLimited, batch) // and 40 tokens are owed
	e := ask(t, byLimited, "order", "order.place", order)
	if wait := e.text("retry_after"); e.Status != 429 || e.text("code") != "RATE_LIMITED" || wait == "" || wait == "0" {
		t.Errorf("%+v %s", e, e.Data)
	}
	refused := v.do("limited", http.MethodGet, "/v1/orders", nil)
	if refused.Status != 429 || refused.get("retry_after") != refused.Header.Get("Retry-After") || refused.Header.Get("RateLimit-Policy") != `"api_key";q=10;w=10` {
		t.Errorf("%d %v %s", refused.Status, refused.Header, refused.Body)
	}
	for i := range 3 {
		if e := ask(t, byFree, fmt.Sprint(i), "order.place", order); e.Status != 201 {
			t.Errorf("another key of the user: %+v %s", e, e.Data)
		}
		for _, who := range []string{"free", "broker-a"} {
			if a := v.must(200, who, http.MethodGet, "/v1/orders", nil); a.Header.Get("RateLimit") != "" {
				t.Errorf("%s: %v", who, a.Header)
			}
		}
	}

	v.stop()
	v.start()
	for name, want := range map[string]string{"limited": "api_key", "free": "none"} {
		v.tokens[name] = keys[name].get("key")
		if a := v.must(200, name, http.MethodGet, "/v1/limits", nil); !strings.Contains(string(a.Body), `"policy":"`+want+`"`) {
			t.Errorf("%s after a restart: %s", name, a.Body)
		}
	}
	gone := v.must(200, "broker-a", http.MethodDelete, "/v1/api-keys/"+keys["limited"].get("id"), nil)
	caughtUp(t, v, gone.Header.Get("X-Log-Position"))
	v.must(401, "limited", http.MethodGet, "/v1/limits", nil)
	v.must(404, "operator", http.MethodPatch, at, `{"rate_limit":null}`)
}

// TestRateLimitsOfNetworks: requests without a valid token are refused when their network has sent too many, over REST and sockets;
// those with one, of other networks, of this machine, and of probes are not.
func TestRateLimitsOfNetworks(t *testing.T) {
	v := startVenue(t, "--public-rate-limit", "1:5", "--trusted-proxies", "127.0.0.0/8")
	const client, neighbor, stranger = "2001:db8::1", "2001:db8::2", "203.0.113.9"
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	exhaust := func(what string, refused func() bool) {
		t.Helper()
		for range 1000 { // one token comes back each second
			if refused() {
				return
			}
		}
		t.Fatalf("%s: nothing is refused", what)
	}
	for _, path := range []string{"/v1/tickers", "/v1/orders", "/api/v1/persons", "/openapi.json"} {
		exhaust(path, func() bool {
			a := v.do("", http.MethodGet, path, nil, from(client)...)
			if a.Status != http.StatusTooManyRequests {
				return false
			}
			if a.code() != "RATE_LIMITED" || a.Header.Get("Retry-After") == "" || !strings.HasPrefix(a.Header.Get("RateLimit-Policy"), `"network";q=5;`) {
				t.Errorf("%s: %v %s", path, a.Header, a.Body)
			}
			return true
		})
	}
	exhaust("a neighbor", func() bool {
		return v.do("", http.MethodGet, "/v1/time", nil, from(neighbor)...).Status == http.StatusTooManyRequests
	})
	v.tokens["guess"] = "pk_" + strings.Repeat("A", 43)
	exhaust("a guessed key", func() bool {
		a := v.do("guess", http.MethodGet, "/v1/orders", nil, from(client)...)
		if a.Status != http.StatusUnauthorized && a.Status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		return a.Status == http.StatusTooManyRequests
	})
	dial := func(user string) int {
		header := http.Header{"X-Forwarded-For": {client}}
		if user != "" {
			header.Set("Authorization", "Bearer "+v.token(user))
		}
		c, response, err := websocket.DefaultDialer.DialContext(t.Context(), v.WebSocket, header)
		if err == nil {
			c.Close()
		} else if response == nil {
			t.Fatal(err)
		}
		return response.StatusCode
	}
	exhaust("a socket", func() bool { return dial("") == http.StatusTooManyRequests })

	if status := dial("broker-a"); status != http.StatusSwitchingProtocols {
		t.Errorf("a socket with a token: %d", status)
	}
	for range 10 {
		v.must(200, "broker-a", http.MethodGet, "/v1/orders", nil, from(client)...)
		v.must(200, "broker-a", http.MethodGet, "/v1/tickers", nil, from(client)...)
		v.must(200, "", http.MethodGet, "/healthz", nil, from(client)...)
		v.must(200, "", http.MethodGet, "/v1/tickers", nil)
	}
	limits := v.must(200, "", http.MethodGet, "/v1/limits", nil, from(stranger)...)
	if !strings.Contains(string(limits.Body), `"rate_limit":{"policy":"network","per_second":1,"burst":5}`) {
		t.Errorf("%s", limits.Body)
	}
	if limits = v.must(200, "broker-a", http.MethodGet, "/v1/limits", nil, from(stranger)...); !strings.Contains(string(limits.Body), `"policy":"none"`) {
		t.Errorf("%s", limits.Body)
	}
	if metrics := v.must(200, "", http.MethodGet, "/metrics", nil); strings.Contains(string(metrics.Body), `perpetua_http_rate_limited_total{policy="network"} 0`) {
		t.Error("the refusals are not counted")
	}
}
