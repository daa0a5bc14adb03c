package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// testIsolation looks at ANNA's and BEN's accounts, of broker alpha, with the eyes of broker beta: there is nothing,
// and nothing can be done.
func testIsolation(t *testing.T, d *desk, a *audience) {
	bens := of("BEN", last(tell(readLog(t, d)).orders, "code"))[0]
	order := bensOrders + "/" + bens["code"]
	for _, path := range []string{
		"/orders", "/orders?status=open", "/orders/history", "/orders/" + bens["code"], "/orders/by-reference/" + bens["reference_id"],
		"/trades", "/trades/history?from=2000-01-01T00:00:00.000000Z&to=2100-01-01T00:00:00.000000Z", "/positions", "/account-summary",
		"/margin-profile", "/transactions", "/fee-profile",
	} {
		missing(t, d.must(404, "broker-b", http.MethodGet, "/v1/customers/BEN"+path, nil), "UNKNOWN_CUSTOMER")
		missing(t, d.must(404, "broker-b", http.MethodGet, "/v1/customers/NOBODY"+path, nil), "UNKNOWN_CUSTOMER")
	}
	missing(t, d.must(404, "broker-b", http.MethodGet, "/v1/customers/CARL/orders/"+bens["code"], nil), "UNKNOWN_ORDER")
	missing(t, d.must(404, "broker-b", http.MethodGet, "/v1/orders?customer_code=BEN", nil), "UNKNOWN_CUSTOMER")
	for _, write := range []struct{ method, path, body string }{
		{http.MethodPost, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.001","limit_price":"60000.0"}`},
		{http.MethodPatch, order, `{"amount":"1"}`}, {http.MethodDelete, order, ""}, {http.MethodDelete, bensOrders, ""},
		{http.MethodPost, "/v1/customers/BEN/cancel-all-after", `{"timeout_seconds":60}`},
		{http.MethodPut, "/v1/customers/BEN/fee-profile/BTCUSDC_PERP", `{"maker_fee":"0","taker_fee":"0"}`},
	} {
		var body any
		if write.body != "" {
			body = write.body
		}
		missing(t, d.must(404, "broker-b", write.method, write.path, body), "UNKNOWN_CUSTOMER")
	}
	for _, path := range []string{"/v1/orders", "/orders"} {
		if open := d.list("broker-b", path); len(open) != 0 {
			t.Errorf("%s of broker-b: %v", path, open)
		}
	}
	if customers := d.pages("broker-b", "/v1/customers?"); len(customers) != 1 || customers[0]["customer_code"] != "CARL" {
		t.Errorf("the customers of broker-b: %v", customers)
	}
	if m := a.brokerB.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}, Data: map[string]string{"customer_code": "BEN"}}); m.Op != "error" {
		t.Errorf("broker-b subscribed to an account of broker-a: %s", m.Raw)
	}
	// A code that is taken is taken for everybody.
	d.answered(t, 409, "broker-b", http.MethodPost, "/v1/customers", `{"customer_code":"ANNA"}`, "code", "CUSTOMER_CODE_TAKEN")

	// CARL trades with ANNA. Each broker is told of its own side alone; the first thing that broker-b's socket hears
	// since it listens is about CARL.
	d.order(t, 201, annasOrders, `{"symbol":"ETHUSDC_PERP","action":"sell","type":"limit","amount":"1","limit_price":"2000.25"}`, "status", "open")
	d.answered(t, 201, "broker-b", http.MethodPost, "/v1/customers/CARL/orders",
		`{"symbol":"ETHUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"2000.25"}`, "status", "filled", "filled_quote", "2000.25")
	for _, side := range []struct {
		client   *livetest.Client
		customer string
	}{{a.brokerA, "ANNA"}, {a.brokerB, "CARL"}} {
		for _, channel := range []string{"orders", "trades", "balance-changes"} {
			waitFor(t, "the trade on "+channel, func() bool {
				told := having(messages(side.client, channel), "symbol", ether)
				return len(told) > 0 && (channel != "orders" || told[len(told)-1]["status"] == "filled")
			})
		}
		for _, channel := range []string{"orders", "trades", "balance-changes"} {
			for _, m := range messages(side.client, channel) {
				if m["customer_code"] != side.customer && (side.customer == "CARL" || m["customer_code"] != "BEN") {
					t.Errorf("%s on %s is about %s", channel, side.customer, m["customer_code"])
				}
			}
		}
	}
	for channel, n := range map[string]int{"orders": 1, "trades": 1, "balance-changes": 1} {
		got := messages(a.brokerB, channel)
		if len(got) != n || len(of("CARL", got)) != n {
			t.Errorf("broker-b was told on %s: %v", channel, got)
		}
	}
	for _, m := range a.brokerB.Messages() {
		if text := string(m.Raw); strings.Contains(text, "ANNA") || strings.Contains(text, `"customer_code":"BEN"`) {
			t.Errorf("broker-b was told %s", text)
		}
	}
}

func missing(t *testing.T, a answer, code string) {
	t.Helper()
	if got := a.get("code"); got != code {
		t.Errorf("the code is %s, want %s", got, code)
	}
}

// testOneAccount uses a token that is for ANNA's account alone.
func testOneAccount(t *testing.T, d *desk, a *audience) {
	for _, path := range []string{"/orders", "/orders/history", "/trades", "/positions", "/account-summary", "/margin-profile", "/transactions", "/fee-profile"} {
		d.must(200, "anna", http.MethodGet, "/v1/customers/ANNA"+path, nil)
		missing(t, d.must(404, "anna", http.MethodGet, "/v1/customers/BEN"+path, nil), "UNKNOWN_CUSTOMER")
	}
	const resting = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.001","limit_price":"60000.0"}`
	hers := d.answered(t, 201, "anna", http.MethodPost, annasOrders, resting, "customer_code", "ANNA")
	bens := d.answered(t, 201, "broker-a", http.MethodPost, bensOrders, resting, "customer_code", "BEN")
	missing(t, d.must(404, "anna", http.MethodPost, bensOrders, resting), "UNKNOWN_CUSTOMER")
	missing(t, d.must(404, "anna", http.MethodDelete, bensOrders+"/"+bens["code"], nil), "UNKNOWN_CUSTOMER")
	missing(t, d.must(404, "anna", http.MethodDelete, bensOrders, nil), "UNKNOWN_CUSTOMER")
	missing(t, d.must(404, "anna", http.MethodDelete, annasOrders+"/"+bens["code"], nil), "UNKNOWN_ORDER")
	missing(t, d.must(404, "anna", http.MethodGet, "/v1/orders?customer_code=BEN", nil), "UNKNOWN_CUSTOMER")
	if open := d.list("anna", "/orders"); len(open) != 1 || open[0]["code"] != hers["code"] {
		t.Errorf("ANNA's open orders: %v", open)
	}
	if open := d.list("broker-a", "/orders"); len(open) != 2 {
		t.Errorf("broker-a's open orders: %v", open)
	}
	if open := d.list("auditor", "/v1/orders"); len(open) != 2 {
		t.Errorf("all open orders: %v", open)
	}
	if customers := d.list("anna", "/v1/customers"+"/ANNA/positions"); len(customers) != 2 {
		t.Errorf("ANNA's positions: %v", customers)
	}
	missing(t, d.must(403, "anna", http.MethodPost, "/v1/customers", `{}`), "FORBIDDEN")
	missing(t, d.must(403, "anna", http.MethodPut, "/v1/customers/ANNA/fee-profile/BTCUSDC_PERP", `{"maker_fee":"0","taker_fee":"0"}`), "FORBIDDEN")
	missing(t, d.must(403, "auditor", http.MethodPost, annasOrders, resting), "FORBIDDEN")
	missing(t, d.must(403, "broker-a", http.MethodGet, "/admin/v1/journals", nil), "FORBIDDEN")
	missing(t, d.must(403, "auditor", http.MethodPost, "/admin/v1/index-prices/"+bitcoin, `{"price":"65000"}`), "FORBIDDEN")

	if m := a.anna.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}, Data: map[string]string{"customer_code": "BEN"}}); m.Op != "error" {
		t.Errorf("ANNA subscribed to BEN's orders: %s", m.Raw)
	}
	public := a.public.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}})
	if public.Code != "AUTHENTICATION_REQUIRED" {
		t.Errorf("subscribing to orders without a token: %s", public.Raw)
	}
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders, nil, "canceled", "1")
	d.answered(t, 200, "anna", http.MethodDelete, annasOrders, nil, "canceled", "1")
	a.anna.Until("ANNA's cancel", func(all []livetest.Message) bool {
		f := all[len(all)-1].Fields()
		return f["code"] == hers["code"] && f["status"] == "canceled"
	})
	for _, channel := range []string{"orders", "trades"} {
		for _, m := range messages(a.anna, channel) {
			if m["customer_code"] != "ANNA" {
				t.Errorf("ANNA was told on %s: %v", channel, m)
			}
		}
	}

	// A user who is not active any more is out at once, with every token.
	d.must(200, "operator", http.MethodPatch, "/admin/v1/users/anna", `{"is_active":false}`)
	waitFor(t, "ANNA's token to be refused", func() bool { return d.do("anna", http.MethodGet, annasOrders, nil).Status == 401 })
	d.must(200, "operator", http.MethodPatch, "/admin/v1/users/anna", `{"is_active":true}`)
	waitFor(t, "ANNA's token to be good again", func() bool { return d.do("anna", http.MethodGet, annasOrders, nil).Status == 200 })
}

// testRepeats sends commands again: with the same Idempotency-Key, and with the same reference_id.
func testRepeats(t *testing.T, d *desk) {
	const resting = `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.002","limit_price":"61000.0"%s}`
	plain, other := strings.ReplaceAll(resting, "%s", ""), strings.ReplaceAll(resting, "%s", `,"post_only":true`)
	first := d.must(201, "broker-a", http.MethodPost, bensOrders, plain, "Idempotency-Key", "key:1")
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders+"/"+first.get("code"), nil, "status", "canceled")
	again := d.must(201, "broker-a", http.MethodPost, bensOrders, plain, "Idempotency-Key", "key:1")
	if string(again.Body) != string(first.Body) || again.Header.Get("X-Log-Position") != first.Header.Get("X-Log-Position") {
		t.Errorf("the repeated key got %s, first %s", again.Body, first.Body)
	}
	d.must(409, "broker-a", http.MethodPost, bensOrders, other, "Idempotency-Key", "key:1")
	d.must(409, "broker-a", http.MethodPost, annasOrders, plain, "Idempotency-Key", "key:1") // another customer, another content
	// The key is another broker's own, and another route's.
	d.must(201, "broker-b", http.MethodPost, "/v1/customers/CARL/orders", plain, "Idempotency-Key", "key:1")
	for range 2 {
		d.answeredWith(t, 200, "broker-b", http.MethodDelete, "/v1/customers/CARL/orders", nil, []string{"Idempotency-Key", "key:1"}, "canceled", "1")
	}
	for range 2 { // a rejection is remembered like anything else
		rejected := d.must(422, "broker-a", http.MethodPost, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"900","limit_price":"61000.0"}`, "Idempotency-Key", "key:2")
		missing(t, rejected, "INSUFFICIENT_MARGIN")
	}

	named := strings.ReplaceAll(resting, "%s", `,"reference_id":"once"`)
	placed := d.must(201, "broker-a", http.MethodPost, bensOrders, named)
	if repeated := d.must(200, "broker-a", http.MethodPost, bensOrders, named); string(repeated.Body) != string(placed.Body) {
		t.Errorf("the repeated reference got %s, first %s", repeated.Body, placed.Body)
	}
	spelled := `{"reference_id":"once","limit_price":"61000","amount":"0.0020","type":"limit","action":"buy","symbol":"BTCUSDC_PERP","time_in_force":"GTC"}`
	d.answered(t, 200, "broker-a", http.MethodPost, bensOrders, spelled, "code", placed.get("code"))
	d.must(409, "broker-a", http.MethodPost, bensOrders, strings.ReplaceAll(named, "0.002", "0.003"))
	changed := d.must(200, "broker-a", http.MethodDelete, bensOrders+"/"+placed.get("code"), nil)
	if repeated := d.must(200, "broker-a", http.MethodPost, bensOrders, named); string(repeated.Body) != string(changed.Body) {
		t.Errorf("the repeated reference got %s, the order is now %s", repeated.Body, changed.Body)
	}
	hers := d.must(201, "broker-a", http.MethodPost, annasOrders, named) // a reference is the customer's own
	d.must(200, "broker-a", http.MethodDelete, annasOrders+"/"+hers.get("code"), nil)
	refused := `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"900","limit_price":"61000.0","reference_id":"never"}`
	one, two := d.must(422, "broker-a", http.MethodPost, bensOrders, refused), d.must(422, "broker-a", http.MethodPost, bensOrders, refused)
	var of1, of2 struct{ Order fields }
	one.decode(t, &of1)
	two.decode(t, &of2)
	of1.Order.has(t, "status", "rejected", "reason", "insufficient_margin", "reference_id", "never")
	same(t, "the rejected order, again", []fields{of2.Order}, []fields{of1.Order})

	const deposits = "/admin/v1/customers/BEN/deposits"
	deposit := d.must(201, "operator", http.MethodPost, deposits, `{"currency":"USDC","amount":"1.5","reference_id":"twice"}`)
	if repeated := d.must(200, "operator", http.MethodPost, deposits, `{"currency":"USDC","amount":"1.50","reference_id":"twice"}`); string(repeated.Body) != string(deposit.Body) {
		t.Errorf("the repeated deposit got %s, first %s", repeated.Body, deposit.Body)
	}
	d.must(409, "operator", http.MethodPost, deposits, `{"currency":"USDC","amount":"1.6","reference_id":"twice"}`)
	d.balance(t, "BEN", "5032.23767642")
}

// testPositions reads with the position of a write, with one that is not reached, and with some that are none.
func testPositions(t *testing.T, d *desk) {
	written := d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+ether, `{"price":"2001.5"}`)
	at := written.Header.Get("X-Log-Position")
	if at == "" || written.get("position") != at {
		t.Errorf("the write is at %q, its answer says %s", at, written.Body)
	}
	for _, path := range []string{"/v1/tickers?symbol=" + ether, "/v1/instruments", "/v1/orderbook/" + ether, "/v1/market-trades"} {
		read := d.must(200, "", http.MethodGet, path, nil, "X-Min-Log-Position", at)
		if read.Header.Get("X-Log-Position") != at {
			t.Errorf("%s is as of %s, want %s", path, read.Header.Get("X-Log-Position"), at)
		}
	}
	d.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/transactions", nil, "X-Min-Log-Position", at)
	begun := time.Now()
	missing(t, d.must(412, "", http.MethodGet, "/v1/tickers", nil, "X-Min-Log-Position", "trading/0@1000000"), "LOG_POSITION_NOT_REACHED")
	if waited := time.Since(begun); waited < time.Second {
		t.Errorf("gave up after %v", waited)
	}
	missing(t, d.must(412, "", http.MethodGet, "/v1/tickers", nil, "X-Min-Log-Position", "identity/0@0"), "LOG_POSITION_NOT_REACHED")
	// A refusal says as of where it was decided, so a client can tell whether it came too early.
	if refused := d.do("broker-a", http.MethodPost, bensOrders+"x", `{}`); refused.Status != 404 && refused.Status != 405 {
		t.Errorf("an address that is not there: %d", refused.Status)
	}
	refused := d.must(404, "broker-a", http.MethodDelete, bensOrders+"/00000000-0000-8000-8000-000000000000", nil)
	if refused.Header.Get("X-Log-Position") == "" {
		t.Error("a refusal does not say where it was decided")
	}
}
