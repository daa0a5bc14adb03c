package trading_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

// TestRoutesAreDescribed holds the registered routes against the OpenAPI file in both directions. What other packages
// serve is held against it where the whole program is wired.
func TestRoutesAreDescribed(t *testing.T) {
	v := tradingtest.New(t)
	var registered []conform.Route
	for _, r := range v.Routes() {
		registered = append(registered, conform.Route{Method: r.Method, Path: r.Path})
	}
	undescribed, unregistered := v.OpenAPI().Compare(registered)
	if len(undescribed) > 0 {
		t.Errorf("registered and not described: %v", undescribed)
	}
	elsewhere := []string{"/auth/jwt/login", "/.well-known/jwks.json", "/v1/ws", "/healthz", "/readyz", "/metrics", "/", "/console/{file}", "/apply", "/apply/{file}", "/check", "/check/{file}", "/compliance", "/compliance/{file}",
		"/docs", "/docs/websocket", "/docs/static/{file}", "/asyncapi.yaml", "/asyncapi.json"}
	for _, r := range unregistered {
		if !slices.Contains(elsewhere, r.Path) && !strings.HasPrefix(r.Path, "/tlog/") && !strings.HasPrefix(r.Path, "/data/") {
			t.Errorf("described and not registered: %v", r)
		}
	}
	if got := len(v.Server.Routes()); got != len(registered) {
		t.Errorf("%d routes at the server, %d in the lists", got, len(registered))
	}
}

// concrete fills in a path's parameters.
func concrete(path string) string {
	return strings.NewReplacer(":customer_code", "A-1", ":order_code", "00000000-0000-8000-8000-000000000001",
		":reference_id", "r-1", ":symbol", btc, ":sequence", "3", ":command_id", "00000000-0000-7000-8000-000000000001",
		":username", "nobody", ":kid", "nothing", ":code", "00000000-0000-8000-8000-000000000001").Replace(path)
}

// TestScopes asks for every route without a token, with a bad one, and with tokens that lack its scopes.
func TestScopes(t *testing.T) {
	v := tradingtest.New(t)
	tokens := map[string][]string{"operator": {"operator", "read"}, "auditor": {"auditor", "read"}, "reader-a": {"read"}, "trader-a": {"trade"}}
	for _, r := range v.Routes() {
		path := concrete(r.Path)
		if len(r.Scopes) == 0 {
			if reply := v.Send("", r.Method, path, ""); reply.Status == http.StatusUnauthorized {
				t.Errorf("%s %s is not public", r.Method, r.Path)
			}
			continue
		}
		refused := func(reply *tradingtest.Reply) { reply.Code(401, "UNAUTHORIZED") }
		if strings.HasPrefix(path, "/api/v1/") {
			refused = func(reply *tradingtest.Reply) { reply.Detail(401, "Unauthorized") }
		}
		refused(v.Send("", r.Method, path, ""))
		refused(v.Send("", r.Method, path, "", "Authorization", "Bearer "+v.Token("operator")+"x"))
		for user, scopes := range tokens {
			allowed := slices.ContainsFunc(r.Scopes, func(s string) bool { return slices.Contains(scopes, s) })
			reply := v.Send(user, r.Method, path, "")
			if forbidden := reply.Status == http.StatusForbidden; forbidden == allowed {
				t.Errorf("%s %s by %s: %d", r.Method, r.Path, user, reply.Status)
			}
			if got := reply.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("%s %s by %s: a cache may keep it (%q)", r.Method, r.Path, user, got)
			}
		}
	}
}

// TestAnotherBrokersCustomer is answered as one that does not exist, on every route that names a customer.
func TestAnotherBrokersCustomer(t *testing.T) {
	v := funded(t)
	bodies := map[string]string{
		"POST /v1/customers/:customer_code/orders":              `{"symbol":"` + btc + `","action":"buy","type":"limit","amount":"1","limit_price":"64000"}`,
		"PATCH /v1/customers/:customer_code/orders/:order_code": `{"amount":"2"}`,
		"POST /v1/customers/:customer_code/orders/batch": `{"orders":[{"symbol":"` + btc + `","action":"buy","type":"limit","amount":"1","limit_price":"64000"},` +
			`{"symbol":"` + btc + `","action":"buy","type":"limit","amount":"2","limit_price":"64000"}]}`,
		"PATCH /v1/customers/:customer_code/orders/batch":                      `{"orders":[{"reference_id":"r-1","amount":"2"}]}`,
		"PATCH /v1/customers/:customer_code/orders/by-reference/:reference_id": `{"amount":"2"}`,
		"DELETE /v1/customers/:customer_code/orders/batch":                     `{"orders":[{"reference_id":"r-1"}]}`,
		"POST /v1/customers/:customer_code/cancel-all-after":                   `{"timeout_seconds":5}`,
		"PUT /v1/customers/:customer_code/fee-profile/:symbol":                 `{"maker_fee":"1","taker_fee":"1"}`,
		"PUT /v1/customers/:customer_code/margin-profile/:symbol":              `{"leverage":5}`,
	}
	for _, r := range v.Routes() {
		if !strings.HasPrefix(r.Path, "/v1/customers/:customer_code/") {
			continue
		}
		path, before := concrete(r.Path), v.Trading.Tip()
		if strings.HasSuffix(path, "/trades/history") {
			path += "?from=2026-01-01T00:00:00.000000Z&to=2027-01-01T00:00:00.000000Z"
		}
		if strings.HasSuffix(path, "/receipt") && !strings.Contains(path, "/orders/") {
			path += "?sequence=1"
		}
		body := bodies[r.Method+" "+r.Path]
		v.Send("broker-b", r.Method, path, body).Code(404, "UNKNOWN_CUSTOMER")
		own := strings.Replace(path, "A-1", "A-2", 1)
		if r.Path != "/v1/customers/:customer_code/fee-profile/:symbol" {
			v.Send("client-a", r.Method, own, body).Code(404, "UNKNOWN_CUSTOMER")
		}
		v.Send("broker-b", r.Method, strings.Replace(path, "A-1", "no-such", 1), body).Code(404, "UNKNOWN_CUSTOMER")
		if r.Method == http.MethodGet && !strings.Contains(r.Path, "/orders/:order_code") && !strings.Contains(r.Path, "by-reference") && !strings.HasSuffix(r.Path, "/receipt") && !strings.HasSuffix(r.Path, "/explain") && !strings.HasSuffix(r.Path, "/liability-proof") {
			v.Send("auditor", r.Method, path, "").Want(200)
			v.Send("operator", r.Method, path, "").Want(200)
			v.Send("client-a", r.Method, path, "").Want(200)
		}
		if v.Trading.Tip() != before {
			t.Errorf("%s %s changed something", r.Method, r.Path)
		}
	}
	for _, list := range []string{"/orders", "/v1/orders", "/v1/trades", "/v1/positions", "/v1/account-summaries", "/v1/transactions"} {
		v.Send("broker-b", "GET", list+"?customer_code=A-1", "").Code(404, "UNKNOWN_CUSTOMER")
		v.Send("client-a", "GET", list+"?customer_code=A-2", "").Code(404, "UNKNOWN_CUSTOMER")
		v.Send("broker-a", "GET", list+"?customer_code=A-1", "").Want(200)
	}
	v.Send("client-a", "POST", "/v1/customers", `{}`).Code(403, "FORBIDDEN")
	v.Send("client-a", "PUT", a1+"/fee-profile/"+btc, `{"maker_fee":"0","taker_fee":"0"}`).Code(403, "FORBIDDEN")
}

// TestRemovedRoutes must not exist, and what they took is refused.
func TestRemovedRoutes(t *testing.T) {
	v := funded(t)
	for _, path := range []string{"/v1/instruments/" + btc, "/v1/instruments/" + btc + "/leverage_brackets",
		a1 + "/margin-requirements/" + btc, a1 + "/risk-limits", "/customers/A-1/risk-limits", a1 + "/leverage", "/customers/A-1/leverage",
		"/v1/candles", "/v1", "/v2/instruments"} {
		v.Send("broker-a", "GET", path, "").Code(404, "NOT_FOUND")
	}
	v.Send("broker-a", "PUT", a1+"/orders", "{}").Code(405, "METHOD_NOT_ALLOWED")
	got := v.Send("", "GET", "/v1/instruments?type=future", "").Code(400, "VALIDATION_FAILED").Faults()
	if !slices.Equal(got, []string{"type UNKNOWN_PARAMETER"}) {
		t.Errorf("type: %v", got)
	}
	order := v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"buy","type":"limit","amount":"1","limit_price":"64000"}`).Want(201).Text("code")
	got = v.Send("broker-a", "PATCH", a1+"/orders/"+order, `{"stop_price":"1"}`).Want(400).Faults()
	if !slices.Contains(got, "stop_price UNKNOWN_FIELD") {
		t.Errorf("stop_price: %v", got)
	}
}
