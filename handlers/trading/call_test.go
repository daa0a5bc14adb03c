package trading_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
)

// called is a request in the form of a call.
type called struct {
	method, route string
	params        []string
	query         url.Values
	body          string
}

const routeOfOrders = "/v1/customers/:customer_code/orders"

// overHTTP sends the request over HTTP.
func (c called) overHTTP(v *tradingtest.Venue, user, key string) *tradingtest.Reply {
	call := rest.Call{Route: c.route, Params: c.params}
	path := call.Path()
	if c.query != nil {
		path += "?" + c.query.Encode()
	}
	var headers []string
	if key != "" {
		headers = []string{"Idempotency-Key", key}
	}
	return v.Send(user, c.method, path, c.body, headers...)
}

// inside sends it as a call.
func (c called) inside(t *testing.T, v *tradingtest.Venue, user, key string) rest.Reply {
	call := rest.Call{Method: c.method, Route: c.route, Params: c.params, Query: c.query, Key: key, Keyed: key != "", Address: "127.0.0.1"}
	if user != "" {
		call.Token = v.Token(user)
	}
	if c.body != "" {
		call.Body = []byte(c.body)
	}
	return v.Server.Do(t.Context(), &call)
}

// TestACallIsTheRequestOverHTTP: with one Idempotency-Key, the second of the two is the first one again, whichever way each
// of them comes: so both mean the same to the engine, and are answered the same.
func TestACallIsTheRequestOverHTTP(t *testing.T) {
	v := funded(t)
	place := func(reference string) string {
		return v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.5","limit_price":"64000","reference_id":"`+reference+`"}`).Want(201).Text("code")
	}
	for i, way := range []string{"HTTP first", "inside first"} {
		name := strings.ReplaceAll(way, " ", "-")
		amended, gone := place("amended-"+name), place("gone-"+name)
		place("named-" + name)
		for n, c := range []called{
			{"POST", routeOfOrders, []string{"A-1"}, nil, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.5","limit_price":"64000"}`},
			{"POST", routeOfOrders, []string{"A-1"}, nil, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.5"}`},
			{"PATCH", routeOfOrders + "/:order_code", []string{"A-1", amended}, nil, `{"limit_price":"63000"}`},
			{"DELETE", routeOfOrders + "/:order_code", []string{"A-1", gone}, nil, ""},
			{"DELETE", routeOfOrders + "/by-reference/:reference_id", []string{"A-1", "named-" + name}, nil, ""},
			{"POST", routeOfOrders + "/batch", []string{"A-1"}, nil, `{"orders":[{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.5","limit_price":"67000","reference_id":"b-` + name + `"},{"symbol":"NO","action":"buy","type":"market","amount":"1"}]}`},
			{"DELETE", routeOfOrders + "/batch", []string{"A-1"}, nil, `{"orders":[{"reference_id":"b-` + name + `"},{"reference_id":"nobody"}]}`},
			{"DELETE", routeOfOrders, []string{"A-1"}, url.Values{"symbol": {"BTCUSDC_PERP"}}, ""},
			{"DELETE", routeOfOrders, []string{"A-1"}, nil, ""},
		} {
			key := name + "-" + string(rune('a'+n))
			var over *tradingtest.Reply
			var in rest.Reply
			if i == 0 {
				over, in = c.overHTTP(v, "broker-a", key), c.inside(t, v, "broker-a", key)
			} else {
				in, over = c.inside(t, v, "broker-a", key), c.overHTTP(v, "broker-a", key)
			}
			if over.Status >= 400 && over.Status != 422 {
				t.Errorf("%s, %s %s: %d %s", way, c.method, c.route, over.Status, over.Body)
			}
			same(t, way+", "+c.method+" "+c.route, over, in)
		}
	}
}

// TestARefusedCallIsRefusedAsOverHTTP: with the same problem, all its faults included.
func TestARefusedCallIsRefusedAsOverHTTP(t *testing.T) {
	v := funded(t)
	const good = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.5","limit_price":"64000"}`
	for name, test := range map[string]struct {
		user, key string
		c         called
		status    int
	}{
		"no token":            {"", "", called{"POST", routeOfOrders, []string{"A-1"}, nil, good}, 401},
		"no scope":            {"auditor", "", called{"POST", routeOfOrders, []string{"A-1"}, nil, good}, 403},
		"another's customer":  {"broker-b", "", called{"POST", routeOfOrders, []string{"A-1"}, nil, good}, 404},
		"an odd customer":     {"broker-a", "", called{"POST", routeOfOrders, []string{"A 1?"}, nil, good}, 404},
		"faults everywhere":   {"broker-a", "no good", called{"POST", routeOfOrders, []string{"A-1"}, nil, `{"symbol":"BTCUSDC_PERP","action":"up","amount":"x","amount":"1"}`}, 400},
		"no JSON":             {"broker-a", "", called{"POST", routeOfOrders, []string{"A-1"}, nil, `{"symbol":`}, 400},
		"too much":            {"broker-a", "", called{"POST", routeOfOrders, []string{"A-1"}, nil, `{"x":"` + strings.Repeat("x", input.MaxBody) + `"}`}, 413},
		"an order of nobody":  {"broker-a", "", called{"DELETE", routeOfOrders + "/:order_code", []string{"A-1", "0190c0de-0000-8000-8000-000000000000"}, nil, ""}, 404},
		"a body that is none": {"broker-a", "", called{"DELETE", routeOfOrders + "/:order_code", []string{"A-1", "x"}, nil, `{"x":1}`}, 400},
		"a query":             {"broker-a", "", called{"DELETE", routeOfOrders, []string{"A-1"}, url.Values{"symbol": {"|"}, "x": {"1"}}, ""}, 400},
		"no query is taken":   {"broker-a", "", called{"POST", routeOfOrders, []string{"A-1"}, url.Values{"x": {"1"}}, good}, 400},
		"a batch of nothing":  {"broker-a", "", called{"POST", routeOfOrders + "/batch", []string{"A-1"}, nil, `{"orders":[]}`}, 400},
		"a batch of another":  {"broker-b", "", called{"POST", routeOfOrders + "/batch", []string{"A-1"}, nil, `{"orders":[` + good + `]}`}, 404},
		"a rejected order":    {"broker-a", "", called{"POST", routeOfOrders, []string{"A-1"}, nil, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"900","limit_price":"64000"}`}, 422},
	} {
		over := test.c.overHTTP(v, test.user, test.key)
		over.Want(test.status)
		in := test.c.inside(t, v, test.user, test.key)
		if test.status == 422 { // an order of its own each
			if in.Status != 422 {
				t.Errorf("%s: %d %s", name, in.Status, in.Body)
			}
			continue
		}
		same(t, name, over, in)
	}
}

// same compares the answers to both, but for the request's id.
func same(t *testing.T, what string, over *tradingtest.Reply, in rest.Reply) {
	t.Helper()
	body := string(in.Body)
	if id := over.Header.Get(operation.HeaderRequestID); strings.Contains(over.Body, `"request_id":"`+id) {
		from := strings.Index(body, `"request_id":"`) + len(`"request_id":"`)
		body = strings.ReplaceAll(body, body[from:from+len(id)], id)
	}
	if in.Status != over.Status || in.Position != over.Header.Get(operation.HeaderLogPosition) || body != over.Body {
		t.Errorf("%s: inside\n%d %s %s\nover HTTP\n%d %s %s", what, in.Status, in.Position, body, over.Status, over.Header.Get(operation.HeaderLogPosition), over.Body)
	}
}
