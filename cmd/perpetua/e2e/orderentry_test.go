package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// entered is the answer to order entry over a socket.
type entered struct {
	ID       json.RawMessage
	Status   int
	Position string
	Data     json.RawMessage
}

// text returns a member of the body as text.
func (e entered) text(member string) string { return answer{Body: e.Data}.get(member) }

// sendEntry sends a request for order entry without waiting for its result.
func sendEntry(c *livetest.Client, id, op, data string) {
	c.SendText([]byte(fmt.Sprintf(`{"op":%q,"id":%q,"data":%s}`, op, id, data)))
}

// resultOf waits for the result of a request, whichever results come before it.
func resultOf(t *testing.T, c *livetest.Client, id string) (e entered) {
	t.Helper()
	c.Until("the result of "+id, func(all []livetest.Message) bool {
		for _, m := range all {
			if (m.Op == "result" || m.Op == "error") && m.Fields()["id"] == id {
				if err := json.Unmarshal(m.Raw, &e); err != nil {
					t.Fatalf("%v: %s", err, m.Raw)
				}
				return true
			}
		}
		return false
	})
	return e
}

// ask is both. What a busy venue did not accept is sent again.
func ask(t *testing.T, c *livetest.Client, id, op, data string) (e entered) {
	t.Helper()
	first := id
	for n := range 1000 {
		sendEntry(c, id, op, data)
		if e = resultOf(t, c, id); e.Status != http.StatusServiceUnavailable || e.text("code") != "NOT_ACCEPTED" {
			break
		}
		<-time.After(50 * time.Millisecond)
		id = fmt.Sprint(first, " again ", n)
	}
	return e
}

const limitBuy = `"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.1","limit_price":"64000"`

// TestOrdersOverASocket enters, amends and cancels orders over a socket, one by one and by batch. Each result is what the
// REST route answers: status, body and position, problems included.
func TestOrdersOverASocket(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	c := livetest.Dial(t, v.WebSocket, "")
	if e := ask(t, c, "none", "order.place", `{"customer_code":"ANNA",`+limitBuy+`}`); e.Status != 0 {
		t.Errorf("without a token: %+v", e)
	}
	c.Authenticate(v.token("broker-a"))
	placed := ask(t, c, "1", "order.place", `{"customer_code":"ANNA",`+limitBuy+`,"reference_id":"one","idempotency_key":"k"}`)
	if placed.Status != http.StatusCreated || placed.text("status") != "open" {
		t.Fatalf("%+v %s", placed, placed.Data)
	}
	shown := v.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/orders/"+placed.text("code"), nil, "X-Min-Log-Position", placed.Position)
	if string(shown.Body) != string(placed.Data) {
		t.Errorf("over the socket %s, over REST %s", placed.Data, shown.Body)
	}
	if again := ask(t, c, "2", "order.place", `{"customer_code":"ANNA",`+limitBuy+`,"reference_id":"one","idempotency_key":"k"}`); again.Status != http.StatusCreated || string(again.Data) != string(placed.Data) {
		t.Errorf("the same key again: %+v", again)
	}
	amended := ask(t, c, "3", "order.amend", `{"customer_code":"ANNA","order_code":"`+placed.text("code")+`","limit_price":"63999.5"}`)
	if amended.Status != 200 || amended.text("limit_price") != "63999.5" {
		t.Errorf("amended: %+v %s", amended, amended.Data)
	}
	for id, test := range map[string]struct {
		op, data, code string
		status         int
	}{
		"p1": {"order.place", `{"customer_code":"ANNA","symbol":"BTCUSDC_PERP","action":"up","stop_price":"1"}`, "VALIDATION_FAILED", 400},
		"p2": {"order.place", `{"customer_code":"ANNA",` + limitBuy + `,"reference_id":"one","post_only":true}`, "REFERENCE_ID_REUSED", 409},
		"p3": {"order.place", `{"customer_code":"no/body",` + limitBuy + `}`, "UNKNOWN_CUSTOMER", 404},
		"p4": {"order.place", `{"customer_code":"ANNA","symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1"}`, "NO_LIQUIDITY", 422},
		"p5": {"order.cancel", `{"customer_code":"ANNA","order_code":"not-a-code"}`, "UNKNOWN_ORDER", 404},
		"p6": {"order.place", `{"customer_code":"ANNA",` + limitBuy + `,"idempotency_key":"no good"}`, "VALIDATION_FAILED", 400},
	} {
		e := ask(t, c, id, test.op, test.data)
		if e.Status != test.status || e.text("code") != test.code || e.text("request_id") == "" {
			t.Errorf("%s: %+v %s", id, e, e.Data)
		}
	}
	batch := ask(t, c, "4", "order.place_batch", `{"customer_code":"ANNA","orders":[{`+limitBuy+`,"reference_id":"two"},{`+limitBuy+`},{}]}`)
	var results struct {
		Results []struct {
			Status int
			Order  struct{ Code string }
		}
	}
	if err := json.Unmarshal(batch.Data, &results); err != nil || batch.Status != 200 || len(results.Results) != 3 || results.Results[1].Status != 201 || results.Results[2].Status != 400 {
		t.Fatalf("%+v %s", batch, batch.Data)
	}
	if e := ask(t, c, "5", "order.cancel_batch", `{"customer_code":"ANNA","orders":[{"reference_id":"two"},{"order_code":"`+results.Results[1].Order.Code+`"}]}`); e.Status != 200 {
		t.Errorf("%+v %s", e, e.Data)
	}
	if e := ask(t, c, "6", "order.cancel", `{"customer_code":"ANNA","reference_id":"one"}`); e.Status != 200 || e.text("status") != "canceled" {
		t.Errorf("%+v %s", e, e.Data)
	}
	if e := ask(t, c, "7", "order.cancel_all", `{"customer_code":"ANNA","symbol":"BTCUSDC_PERP"}`); e.Status != 200 || string(e.Data) != `{"canceled":0}` {
		t.Errorf("%+v %s", e, e.Data)
	}
	reader := livetest.Dial(t, v.WebSocket, v.token("auditor"))
	if e := ask(t, reader, "1", "order.place", `{"customer_code":"ANNA",`+limitBuy+`}`); e.Status != 403 {
		t.Errorf("without the scope: %+v", e)
	}
}

// TestSocketOrdersKeepTheirOrder sends orders and their cancels without waiting for anything: each cancel finds its order,
// for it was sent after it.
func TestSocketOrdersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA")
	c := livetest.Dial(t, v.WebSocket, v.token("broker-a"))
	const pairs = 60
	for i := range pairs {
		sendEntry(c, fmt.Sprint("place-", i), "order.place", fmt.Sprintf(`{"customer_code":"ANNA",%s,"reference_id":"r-%d"}`, limitBuy, i))
		sendEntry(c, fmt.Sprint("cancel-", i), "order.cancel", fmt.Sprintf(`{"customer_code":"ANNA","reference_id":"r-%d"}`, i))
	}
	for i := range pairs {
		if e := resultOf(t, c, fmt.Sprint("place-", i)); e.Status != http.StatusCreated {
			t.Fatalf("order %d: %+v %s", i, e, e.Data)
		}
		if e := resultOf(t, c, fmt.Sprint("cancel-", i)); e.Status != http.StatusOK {
			t.Fatalf("cancel %d: %+v %s", i, e, e.Data)
		}
	}
}

// TestSocketOrdersElsewhere enters orders over a node that only has sockets: they are passed on to the owner, in order.
func TestSocketOrdersElsewhere(t *testing.T) {
	t.Parallel()
	cl := startCluster(t, "engine,projector", "api", "live")
	v := cl.node(1)
	v.fund("100000", "ANNA")
	c := livetest.Dial(t, cl.node(2).WebSocket, v.token("broker-a"))
	for i := range 5 {
		sendEntry(c, fmt.Sprint("p", i), "order.place", fmt.Sprintf(`{"customer_code":"ANNA",%s,"reference_id":"r-%d"}`, limitBuy, i))
		sendEntry(c, fmt.Sprint("c", i), "order.cancel", fmt.Sprintf(`{"customer_code":"ANNA","reference_id":"r-%d"}`, i))
	}
	for i := range 5 {
		if e := resultOf(t, c, fmt.Sprint("p", i)); e.Status != http.StatusCreated || e.Position == "" {
			t.Errorf("order %d: %+v %s", i, e, e.Data)
		}
		if e := resultOf(t, c, fmt.Sprint("c", i)); e.Status != http.StatusOK {
			t.Errorf("cancel %d: %+v %s", i, e, e.Data)
		}
	}
	if e := ask(t, c, "b", "order.place_batch", `{"customer_code":"ANNA","orders":[{`+limitBuy+`},{`+limitBuy+`}]}`); e.Status != 200 || e.Position == "" {
		t.Errorf("%+v %s", e, e.Data)
	}
	for i := range 5 {
		enterWithNewKey(t, cl, fmt.Sprint("key-", i))
	}
}

// enterWithNewKey makes a key and enters an order with it as soon as the node that only has sockets knows it: the owner,
// which may not know it yet, takes it all the same.
func enterWithNewKey(t *testing.T, cl *cluster, name string) {
	t.Helper()
	key := cl.node(1).must(201, "broker-a", http.MethodPost, "/v1/api-keys", `{"name":"`+name+`","scopes":["trade"]}`).get("key")
	var c *livetest.Client
	waitFor(t, "the node to know the key", func() (known bool) {
		var err error
		c, _, err = livetest.TryDial(t, cl.node(2).WebSocket, key)
		return err == nil
	})
	if e := ask(t, c, "order", "order.place", `{"customer_code":"ANNA",`+limitBuy+`}`); e.Status != http.StatusCreated {
		t.Errorf("%s: %+v %s", name, e, e.Data)
	}
}

// openNames returns the reference_ids of a customer's open orders.
func (v *venue) openNames(customer string) string {
	v.t.Helper()
	var all []struct {
		Reference string `json:"reference_id"`
	}
	if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/v1/customers/"+customer+"/orders", nil).Body, &all); err != nil {
		v.t.Fatal(err)
	}
	names := ""
	for _, o := range all {
		names += o.Reference + " "
	}
	return names
}

// armed opens a connection whose orders are canceled when it ends, and places some over it.
func armed(t *testing.T, url string, v *venue, placed ...string) *livetest.Client {
	t.Helper()
	c := livetest.Dial(t, url, "")
	c.Send(livetest.Request{Op: "authenticate", Data: map[string]any{"token": v.token("broker-a"), "cancel_on_disconnect": true}})
	c.Next("authenticated", func(m livetest.Message) bool { return m.Op == "authenticated" })
	for _, customer := range placed {
		e := ask(t, c, "over-"+customer, "order.place", `{"customer_code":"`+customer+`",`+limitBuy+`,"reference_id":"over"}`)
		if e.Status != http.StatusCreated {
			t.Fatalf("%+v %s", e, e.Data)
		}
	}
	return c
}

// TestCancelOnDisconnect: when the connection ends, the orders that were placed over it are canceled, and no others; the
// log says by which session. A batch counts as well, and a stop of the venue is an end like any.
func TestCancelOnDisconnect(t *testing.T) {
	t.Parallel()
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders", `{`+limitBuy+`,"reference_id":"rest"}`)
	other := armed(t, v.WebSocket, v)
	if e := ask(t, other, "1", "order.place", `{"customer_code":"ANNA",`+limitBuy+`,"reference_id":"other"}`); e.Status != 201 {
		t.Fatalf("%+v %s", e, e.Data)
	}
	c := armed(t, v.WebSocket, v, "ANNA", "BEN")
	if e := ask(t, c, "batch", "order.place_batch", `{"customer_code":"BEN","orders":[{`+limitBuy+`},{`+limitBuy+`}]}`); e.Status != 200 {
		t.Fatalf("%+v %s", e, e.Data)
	}
	c.Close()
	waitFor(t, "the orders of a connection that has ended to be canceled", func() bool {
		return v.openNames("BEN") == "" && v.openNames("ANNA") == "rest other "
	})
	var ended struct {
		Command struct{ Type string }
		Events  []struct {
			Type string
			Data struct{ Session, Reason string }
		}
	}
	for _, text := range v.records("trading", "--type", "session.ended") {
		if err := json.Unmarshal([]byte(text), &ended); err != nil {
			t.Fatal(err)
		}
	}
	if len(ended.Events) != 5 || ended.Events[0].Data.Session == "" || ended.Events[1].Data.Reason != "disconnect" || ended.Command.Type != "session.end" {
		t.Errorf("%+v", ended)
	}
	v.stop()
	if code, _ := other.Closed(); code != 1001 {
		t.Errorf("closed with %d", code)
	}
	v.start()
	if names := v.openNames("ANNA"); names != "rest " {
		t.Errorf("after a stop ANNA has the orders %s, want the one that was placed over REST", names)
	}
}

// TestTheNodeOfAConnectionDies: nobody says that its connections have ended, so the engine misses it and cancels their
// orders.
func TestTheNodeOfAConnectionDies(t *testing.T) {
	t.Parallel() // for most of its time it waits until the node is missed
	cl := startCluster(t, "engine,projector", "live")
	v := cl.node(0)
	v.fund("100000", "ANNA")
	armed(t, cl.node(1).WebSocket, v, "ANNA")
	waitFor(t, "the order to be seen", func() bool { return v.openNames("ANNA") == "over " })
	cl.node(1).kill()
	waitFor(t, "the orders of a node that died to be canceled", func() bool { return v.openNames("ANNA") == "" })
}
