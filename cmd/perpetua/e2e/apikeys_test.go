package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// TestAPIKeysOfACluster makes keys at a node that owns nothing, uses them at others, over REST and sockets, and revokes
// them: that counts at once on every node. Restarts change nothing.
func TestAPIKeysOfACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "engine", "api,live,projector", "api,live")
	first, second := c.node(1), c.node(2)
	first.must(201, "broker-a", http.MethodPost, "/v1/customers", `{"customer_code":"ANNA"}`)

	var at string // of the last of them
	create := func(as, entry string) (secret, id string) {
		t.Helper()
		made := first.must(201, as, http.MethodPost, "/v1/api-keys", entry)
		at = made.Header.Get("X-Log-Position")
		c.tokens[made.get("name")] = made.get("key") // which is a user's name to the harness from now on
		return made.get("key"), made.get("id")
	}
	secret, id := create("broker-a", `{"name":"robot","scopes":["trade","read"]}`)
	_, kept := create("broker-a", `{"name":"here","scopes":["trade","read"],"ip_allow_list":["127.0.0.1"]}`)
	create("broker-a", `{"name":"elsewhere","scopes":["read"],"ip_allow_list":["192.0.2.1"]}`)

	for _, node := range []*venue{first, second} {
		caughtUp(t, node, at)
		node.must(200, "robot", http.MethodGet, "/v1/orders", nil)
		node.must(401, "elsewhere", http.MethodGet, "/v1/orders", nil)
		node.must(403, "robot", http.MethodPost, "/v1/api-keys", `{"name":"another","scopes":["read"]}`)
		node.must(404, "broker-b", http.MethodDelete, "/v1/api-keys/"+id, nil)
	}
	// The owner of the journal is another node: it has to know the client's address, not that of the node between.
	first.must(201, "here", http.MethodPost, "/v1/customers", `{"customer_code":"BEN"}`)

	sockets := make([]*livetest.Client, 0, 4)
	for _, node := range []*venue{first, second} {
		byKey, byToken := livetest.Dial(t, node.WebSocket, secret), livetest.Dial(t, node.WebSocket, "")
		byToken.Authenticate(c.tokens["here"])
		sockets = append(sockets, byKey, byToken)
	}
	for _, s := range sockets {
		s.Subscribe("balance-changes")
	}
	deposit(t, second, "ANNA", "one")
	for _, s := range sockets {
		s.Next("the deposit", func(m livetest.Message) bool { return m.Channel == "balance-changes" && m.Type == "update" })
	}
	waitFor(t, "the days of use", func() bool { return used(t, first)["robot"] && used(t, first)["here"] })
	if used(t, first)["elsewhere"] {
		t.Error("a key counts as used by those who may not use it")
	}

	// Revoked: its sockets end on both nodes, those of another key go on.
	at = second.must(200, "broker-a", http.MethodDelete, "/v1/api-keys/"+id, nil).Header.Get("X-Log-Position")
	for i, s := range sockets {
		if i%2 == 0 {
			if code, reason := s.Closed(); code != websocket.ClosePolicyViolation {
				t.Errorf("a socket of a key that is revoked was closed with %d %s", code, reason)
			}
		}
	}
	for i, node := range []*venue{first, second} {
		caughtUp(t, node, at)
		node.must(401, "robot", http.MethodGet, "/v1/orders", nil)
		if _, response, err := livetest.TryDial(t, node.WebSocket, secret); err == nil || response == nil || response.StatusCode != http.StatusUnauthorized {
			t.Errorf("a socket with a revoked key: %v", err)
		}
		deposit(t, node, "ANNA", "two"+node.REST[len(node.REST)-4:])
		sockets[1].Until("the deposits", func(all []livetest.Message) bool { return len(deposits(all)) == i+2 })
		sockets[3].Until("the deposits", func(all []livetest.Message) bool { return len(deposits(all)) == i+2 })
	}

	before := first.must(200, "broker-a", http.MethodGet, "/v1/api-keys", nil)
	second.stop()
	c.node(0).stop()
	c.again(0)
	c.again(2)
	second = c.node(2)
	after := second.must(200, "broker-a", http.MethodGet, "/v1/api-keys", nil, "X-Min-Log-Position", before.Header.Get("X-Log-Position"))
	if string(after.Body) != string(before.Body) || !strings.Contains(string(after.Body), kept) {
		t.Errorf("after a restart: %s, before %s", after.Body, before.Body)
	}
	second.must(200, "here", http.MethodGet, "/v1/orders", nil)
	second.must(401, "robot", http.MethodGet, "/v1/orders", nil)
	for _, record := range c.records("identity") {
		if strings.Contains(record, secret) {
			t.Errorf("the log holds a secret: %s", record)
		}
	}
}

// TestAUserWhoIsMadeInactive ends the private subscriptions of tokens, and the sockets of keys, on a node that
// does not own the journal.
func TestAUserWhoIsMadeInactive(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "engine,api,live,projector", "api,live")
	here, there := c.node(0), c.node(1)
	here.must(201, "broker-a", http.MethodPost, "/v1/customers", `{"customer_code":"ANNA"}`)
	made := here.must(201, "operator", http.MethodPost, "/admin/v1/users", `{"username":"desk","password":"a good password","broker":"alpha","scopes":["read"]}`)
	c.tokens["desk"] = here.login("desk", "a good password", made)
	caughtUp(t, there, made.Header.Get("X-Log-Position"))
	key := there.must(201, "desk", http.MethodPost, "/v1/api-keys", `{"name":"robot","scopes":["read"]}`)
	caughtUp(t, there, key.Header.Get("X-Log-Position"))
	byToken, byKey := livetest.Dial(t, there.WebSocket, c.tokens["desk"]), livetest.Dial(t, there.WebSocket, key.get("key"))
	byToken.Subscribe("balance-changes", "market-trades:BTCUSDC_PERP")
	byKey.Subscribe("balance-changes")

	here.must(200, "operator", http.MethodPatch, "/admin/v1/users/desk", `{"is_active":false}`)
	m := byToken.Next("the end", func(m livetest.Message) bool { return m.Op == "error" })
	if m.Code != "AUTHENTICATION_REQUIRED" || m.Args[0] != "balance-changes" {
		t.Errorf("%s", m.Raw)
	}
	for _, socket := range []*livetest.Client{byToken, byKey} {
		if code, reason := socket.Closed(); code != websocket.ClosePolicyViolation {
			t.Errorf("closed with %d %s", code, reason)
		}
	}
	there.must(401, "desk", http.MethodGet, "/v1/orders", nil)
}

// caughtUp waits until a node's fold of the identity journal has reached a position: what it lets in follows from that. The
// lists of the operator come from the rows, which may be ahead of it.
func caughtUp(t *testing.T, node *venue, position string) {
	t.Helper()
	node.must(200, "operator", http.MethodGet, "/v1/api-keys", nil, "X-Min-Log-Position", position)
}

func deposit(t *testing.T, node *venue, customer, reference string) {
	t.Helper()
	node.must(201, "operator", http.MethodPost, "/admin/v1/customers/"+customer+"/deposits",
		map[string]string{"currency": "USDC", "amount": "10", "reference_id": reference})
}

func deposits(all []livetest.Message) (found []livetest.Message) {
	for _, m := range all {
		if m.Channel == "balance-changes" && m.Type == "update" {
			found = append(found, m)
		}
	}
	return found
}

// used returns the names of broker-a's keys that were ever used.
func used(t *testing.T, node *venue) map[string]bool {
	t.Helper()
	var keys []struct {
		Name     string  `json:"name"`
		LastUsed *string `json:"last_used"`
	}
	if err := json.Unmarshal(node.must(200, "broker-a", http.MethodGet, "/v1/api-keys", nil).Body, &keys); err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, k := range keys {
		if k.LastUsed != nil {
			names[k.Name] = true
		}
	}
	return names
}
