package onboarding_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document/format/formattest"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	operators "github.com/perpetua-exchange/perpetua/handlers/admin"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// writes are bodies that the routes take which write, of all interfaces; "" for none.
func (f *furnished) writes() map[string]string {
	const customer, because = "/v1/customers/:customer_code", `{"code":"A","reason":"because"}`
	order := `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"64000"}`
	all := map[string]string{
		"POST /v1/customers": `{}`, "POST " + customer + "/orders": order, "DELETE " + customer + "/orders": "",
		"POST " + customer + "/orders/batch": `{"orders":[` + order + `]}`, "DELETE " + customer + "/orders/batch": `{"orders":[{"reference_id":"r"}]}`,
		"PATCH " + customer + "/orders/batch":                       `{"orders":[{"reference_id":"r","amount":"2"}]}`,
		"PATCH " + customer + "/orders/by-reference/:reference_id":  `{"amount":"2"}`,
		"DELETE " + customer + "/orders/by-reference/:reference_id": "", "PATCH " + customer + "/orders/:order_code": `{"amount":"2"}`,
		"DELETE " + customer + "/orders/:order_code": "", "POST " + customer + "/cancel-all-after": `{"timeout_seconds":5}`,
		"PUT " + customer + "/margin-profile/:symbol": `{"leverage":5}`, "DELETE " + customer + "/margin-profile/:symbol": "",
		"PUT " + customer + "/fee-profile/:symbol": `{"maker_fee":"1","taker_fee":"1"}`,
		"POST /v1/api-keys":                        `{"name":"n","scopes":["read"]}`, "DELETE /v1/api-keys/:id": "",

		"POST /admin/v1/brokers": `{"broker":"gamma","name":"g"}`, "POST /admin/v1/users": `{"username":"u","broker":"alpha","scopes":["read"],"password":"a good password"}`,
		"PATCH /admin/v1/users/:username": `{"is_active":true}`, "PATCH /admin/v1/users/:username/api-keys/:id": `{"rate_limit":{"per_second":1,"burst":1}}`,
		"POST /admin/v1/signing-keys": "", "DELETE /admin/v1/signing-keys/:kid": "",
		"POST /admin/v1/instruments":          `{"symbol":"SOLUSDC_PERP","underlying":"SOL","price_tick":"0.1","amount_step":"1","max_amount":"10","init_margin_req":"10","maint_margin_req":"5","max_leverage":10}`,
		"PATCH /admin/v1/instruments/:symbol": `{"status":"post_only"}`, "DELETE /admin/v1/instruments/:symbol": "", "POST /admin/v1/index-prices/:symbol": `{"price":"1"}`,
		"POST /admin/v1/customers/:customer_code/deposits":    `{"currency":"USDC","amount":"1","reference_id":"r"}`,
		"POST /admin/v1/customers/:customer_code/withdrawals": `{"currency":"USDC","amount":"1","reference_id":"r"}`,
		"POST /admin/v1/withdrawals/:code/complete":           "", "POST /admin/v1/withdrawals/:code/cancel": "",
		"PUT /admin/v1/customers/:customer_code/margin-profile":      `{"leverage":5}`,
		"PUT /admin/v1/customers/:customer_code/fee-profile/:symbol": `{"maker_fee":"1","taker_fee":"1"}`,
		"POST /admin/v1/insurance/deposits":                          `{"amount":"1","reference_id":"r"}`,
		"POST /admin/v1/due/:entry/put-back":                         "", "POST /admin/v1/rules/:journal": `{"rules":2}`,
		"PUT /admin/v1/four-eyes/:journal": `{"rules":[]}`, "POST /admin/v1/four-eyes/:journal/proposals/:id/confirm": "",
		"POST /admin/v1/four-eyes/:journal/proposals/:id/reject": "", "POST /admin/v1/four-eyes/:journal/proposals/:id/withdraw": "",
		"POST /admin/v1/commitments/:journal/rotate": "", "POST /admin/v1/commitments/:journal/disclose": `{"from":0,"to":1,"recipient":"Auditors"}`,
		"POST /admin/v1/checkpoint-keys/:journal/rotate": "",
		"POST /admin/v1/imports": `{"type":"perpetua-opening","version":1,"source":"books"}
{"type":"balance","customer_code":"A-1","currency":"USDC","amount":"1"}
{"type":"end","balances":1,"balance_total":"1","positions":0,"position_total":"0","sha256":"8b0ccf5ac9f4baad75df19d885fc58b5b7712f0ee732c70defb97a8c89d59e5b"}`,

		"POST /admin/v1/questionnaires": `{"name":"n","owner_type":"person"}`, "PATCH /admin/v1/questionnaires/:id": `{"name":"n"}`,
		"POST /admin/v1/questionnaires/:id/versions": oneText, "POST /admin/v1/questionnaires/:id/publish": "", "POST /admin/v1/questionnaires/:id/unpublish": "",
		"POST /admin/v1/entitlements": `{"name":"n","owner_type":"person","approval":"manual"}`, "PATCH /admin/v1/entitlements/:id": `{"name":"n"}`,
		"PUT /admin/v1/retention": `{"seconds":5}`, "POST /admin/v1/webhook_deliveries/:id/replay": "",

		"POST /api/v1/webhooks": `{"url":"https://example.org/"}`, "DELETE /api/v1/webhooks/:webhook_id": "", "POST /api/v1/webhooks/:webhook_id/test": "",
		"POST /api/v1/webhooks/:webhook_id/rotate": "", "POST /api/v1/webhooks/:webhook_id/enable": "",
		"POST /api/v1/webhooks/:webhook_id/deliveries/:delivery_id/replay": "",
		"POST /api/v1/persons":    `{"external_id":"n","first_name":"A","last_name":"B"}`,
		"POST /api/v1/corporates": `{"external_id":"n","legal_name":"A"}`,
	}
	for _, action := range []string{"reject", "approve", "block", "release", "fail", "cancel", "terminate", "request_video_identification"} {
		all["POST /admin/v1/entitlement_triggers/:id/"+action] = because
	}
	all["POST /admin/v1/entitlement_triggers/:id/request_information"] = `{"code":"A","reason":"because","questionnaire_ids":["` + nothing + `"]}`
	all["POST /admin/v1/entitlement_triggers/:id/complete_video_identification"] = `{"code":"A","reason":"because","outcome":"passed"}`
	for kind, q := range f.questionnaires {
		one := "/" + kind + "s/:" + kind + "_id"
		all["PATCH /api/v1"+one], all["POST /api/v1"+one+"/documents"] = `{"external_id":"o"}`, ""
		all["POST /api/v1"+one+"/questionnaires/:questionnaire_id/response"] = q.text("x")
		all["POST /api/v1"+one+"/entitlement_triggers"] = `{"entitlement_id":"` + f.entitlements[kind] + `"}`
		for _, end := range []string{"erase", "hold", "release-hold"} {
			all["POST /admin/v1"+one+"/"+end] = `{"reason":"because"}`
		}
		all["PATCH /admin/v1"+one+"/documents/:document_id"] = `{"category":"cv"}`
	}
	return all
}

// furnished is a house with a person and a corporate who have something of everything, by "person" and "corporate".
type furnished struct {
	*house
	sent                           []answered
	owners, entitlements, triggers map[string]string
	questionnaires                 map[string]*asked
	webhook, delivery              string
}

func furnish(t *testing.T) *furnished {
	t.Helper()
	h := newHouse(t)
	f := &furnished{house: h, owners: make(map[string]string), entitlements: make(map[string]string), triggers: make(map[string]string),
		questionnaires: make(map[string]*asked)}
	f.owners["person"], f.owners["corporate"] = h.person("p"), h.corporate("c")
	for kind, path := range f.owners {
		f.questionnaires[kind] = h.questionnaire("KYC", owner.Type(kind), oneText, "")
		f.entitlements[kind] = h.entitlement(owner.Type(kind), `,"approval":"manual"`)
		f.triggers[kind] = h.make("broker-a", path+"/entitlement_triggers", `{"entitlement_id":"`+f.entitlements[kind]+`"}`)
	}
	f.webhook = h.make("broker-a", api+"/webhooks", `{"url":"https://example.org/"}`)
	f.delivery = h.make("broker-a", api+"/webhooks/"+f.webhook+"/test", "")
	return f
}

// path puts something that is there into the parameters of a route that a write is asked for on.
func (f *furnished) path(route string) string {
	kind := "person"
	if strings.Contains(route, "corporate_id") {
		kind = "corporate"
	}
	id := func(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
	trigger := "/entitlement_triggers/" + f.triggers[kind]
	return strings.NewReplacer("/entitlement_triggers/:id", trigger, ":person_id", id(f.owners["person"]), ":corporate_id", id(f.owners["corporate"]),
		":questionnaire_id", f.questionnaires[kind].id, ":customer_code", "A-1", ":symbol", "BTCUSDC_PERP", ":entry", "expiry%2F1", ":journal", "trading",
		":username", "broker-a", ":kid", "test", ":reference_id", "r", ":order_code", nothing, ":code", nothing, ":webhook_id", f.webhook,
		":delivery_id", f.delivery, ":document_id", nothing, ":id", nothing).Replace(route)
}

// user is one who may write at a path.
func user(path string) string {
	if strings.HasPrefix(path, admin) {
		return "operator"
	}
	return "broker-a"
}

// sendKeyed sends a write with an Idempotency-Key.
func (f *furnished) sendKeyed(method, path, body, key string) *tradingtest.Reply {
	if strings.HasSuffix(path, "/documents") {
		return f.send("broker-a", strings.TrimSuffix(path, "/documents"), "a.pdf", formattest.PDF(), "", "Idempotency-Key", key)
	}
	if strings.HasSuffix(path, "/imports") {
		return f.Send(user(path), method, path, body, "Idempotency-Key", key, "Content-Type", "application/x-ndjson")
	}
	return f.Send(user(path), method, path, body, "Idempotency-Key", key)
}

// TestEveryRouteHasKeysOfItsOwn sends every write that there is with one Idempotency-Key, and looks at the command that
// comes of it: no two routes have it remembered as the same, and none has it remembered as the one or the other of two.
func TestEveryRouteHasKeysOfItsOwn(t *testing.T) {
	f := furnish(t)
	f.Nodes = []operators.Node{{Name: "http://a", Rules: map[string]int{"trading": 2}}}
	var made []decide.Command
	f.Fail(func(c decide.Command) error {
		made = append(made, c)
		return &submit.NotAcceptedError{}
	})
	writes, routesOf, scopes := f.writes(), make(map[string][]string), make(map[string]string)
	for _, r := range f.Routes() {
		route := r.Method + " " + r.Path
		body, described := writes[route]
		if delete(writes, route); r.Method == http.MethodGet {
			continue
		}
		path := f.path(r.Path)
		send := func(key string) *tradingtest.Reply {
			made = nil
			return f.sendKeyed(r.Method, path, body, key)
		}
		for _, bad := range []string{"", "a b", "a/b", "a@b", strings.Repeat("k", 65)} {
			if reply := send(bad); len(made) > 0 || !strings.Contains(reply.Body, "Idempotency-Key") || reply.Status != 400 && reply.Status != 422 {
				t.Errorf("%s takes the key %q: %d %s", route, bad, reply.Status, reply.Body)
			}
		}
		reply := send("k")
		if !described || len(made) != 1 {
			t.Errorf("%s makes %d commands of the body %q (described: %t): %d %s", route, len(made), body, described, reply.Status, reply.Body)
			continue
		}
		c := made[0]
		scope, batch := c.Type, strings.HasPrefix(c.Metadata.Key, "k/")
		if !batch {
			routesOf[c.Type] = append(routesOf[c.Type], route)
		}
		switch {
		case batch:
			scope += " in a batch"
		case len(c.Metadata.Fingerprint) == 40:
			scope += " " + c.Metadata.Fingerprint[:8]
		case len(c.Metadata.Fingerprint) != 32:
			t.Errorf("%s: the fingerprint is %q", route, c.Metadata.Fingerprint)
		}
		if other, taken := scopes[scope]; taken {
			t.Errorf("%s and %s have the same keys: %s", route, other, scope)
		}
		scopes[scope] = route
	}
	for route := range writes {
		t.Errorf("%s is not served", route)
	}
	for kind, routes := range routesOf {
		if _, told := scopes[kind]; told == (len(routes) > 1) {
			t.Errorf("%s is made by %q: whether the route is told has to follow from that", kind, routes)
		}
	}
	if len(scopes) < 70 {
		t.Errorf("%d routes write", len(scopes))
	}
}
