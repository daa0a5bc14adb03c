package trading_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

const batchPath = a1 + "/orders/batch"

// ordersOf is the body of a batch.
func ordersOf(items ...string) string { return `{"orders":[` + strings.Join(items, ",") + `]}` }

// result is one result of a batch.
type result struct {
	Status  int
	Order   map[string]any
	Problem *struct {
		Code   string
		Status int
		Errors []struct{ Field, Code string }
		Order  map[string]any
	}
}

// resultsOf reads the answer to a batch.
func resultsOf(t *testing.T, body string) []result {
	t.Helper()
	var all struct{ Results []result }
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for i, r := range all.Results {
		if (r.Order == nil) == (r.Problem == nil) || r.Problem != nil && r.Problem.Status != r.Status {
			t.Errorf("result %d has an order or a problem with its status: %s", i, body)
		}
	}
	return all.Results
}

// shortly shows results as "201 open" or "422 POST_ONLY_WOULD_CROSS".
func shortly(results []result) []string {
	var out []string
	for _, r := range results {
		if r.Problem != nil {
			out = append(out, fmt.Sprint(r.Status, " ", r.Problem.Code))
		} else {
			out = append(out, fmt.Sprint(r.Status, " ", r.Order["status"]))
		}
	}
	return out
}

// sendBatch sends a batch whose orders need not be as described, and reads the results.
func sendBatch(t *testing.T, v *tradingtest.Venue, method, body string, headers ...string) []result {
	t.Helper()
	r := httptest.NewRequest(method, batchPath, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+v.Token("broker-a"))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	v.Server.ServeHTTP(w, r)
	if err := v.OpenAPI().Response(method, batchPath, w.Code, w.Header(), w.Body.Bytes()); err != nil {
		t.Errorf("%s %s: %v\n%s", method, body, err, w.Body)
	}
	if w.Code != 200 {
		t.Fatalf("%s %s: %d %s", method, body, w.Code, w.Body)
	}
	return resultsOf(t, w.Body.String())
}

// TestBatch enters several orders at once: each has its own outcome, its own record and the answer that it would have had
// alone, in the order of the request; and cancels them again by code and by name.
func TestBatch(t *testing.T) {
	v := funded(t)
	before := v.Trading.Tip().Sequence
	reply := v.Send("broker-a", "POST", batchPath, ordersOf(
		entry("sell", "0.5", "65010", `"reference_id":"ask"`),
		entry("buy", "0.5", "64990"),
		entry("buy", "0.1", "65010", `"post_only":true`),
		entry("sell", "0.5", "65010", `"reference_id":"ask"`),
		entry("sell", "0.6", "65010", `"reference_id":"ask"`),
		`{"symbol":"NONE_PERP","action":"buy","type":"limit","amount":"1","limit_price":"1"}`,
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.2"}`,
	)).Want(200)
	results := resultsOf(t, reply.Body)
	if got, want := shortly(results), []string{"201 open", "201 open", "422 POST_ONLY_WOULD_CROSS", "200 open", "409 REFERENCE_ID_REUSED",
		"400 UNKNOWN_SYMBOL", "422 NO_LIQUIDITY"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if results[2].Problem.Order["status"] != "rejected" {
		t.Errorf("the rejected order: %s", reply.Body)
	}
	if at := v.Trading.Tip().String(); reply.Header.Get("X-Log-Position") != at {
		t.Errorf("as of %s, the log is at %s", reply.Header.Get("X-Log-Position"), at)
	}
	if records := v.Trading.Tip().Sequence - before; records != 4 {
		t.Errorf("two orders that rest and two that are rejected are in %d records", records)
	}
	alone := v.Send("broker-a", "GET", a1+"/orders/"+results[0].Order["code"].(string), "").Fields()
	if fmt.Sprint(alone) != fmt.Sprint(results[0].Order) {
		t.Errorf("in the batch %v, alone %v", results[0].Order, alone)
	}

	code := results[1].Order["code"].(string)
	reply = v.Send("broker-a", "DELETE", batchPath, ordersOf(`{"reference_id":"ask"}`, `{"order_code":"`+code+`"}`, `{"order_code":"`+code+`"}`,
		`{"order_code":"00000000-0000-8000-8000-000000000009"}`, `{ "reference_id" : "no-such" }`)).Want(200)
	if got, want := shortly(resultsOf(t, reply.Body)), []string{"200 canceled", "200 canceled", "409 ORDER_NOT_LIVE", "404 UNKNOWN_ORDER", "404 UNKNOWN_ORDER"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if list := v.Send("broker-a", "GET", a1+"/orders", "").Want(200).Body; list != "[]" {
		t.Errorf("open orders: %s", list)
	}
}

// TestBatchIsStrict: what is wrong with an order is its own result, with all its faults; what is wrong with the batch
// refuses it.
func TestBatchIsStrict(t *testing.T) {
	v := funded(t)
	good := entry("buy", "1", "64000")
	results := sendBatch(t, v, "POST", ordersOf(good, `{"symbol":"BTCUSDC_PERP","action":"up","type":"limit","amount":1,"stop_price":"1"}`, `7`, good))
	if got, want := shortly(results), []string{"201 open", "400 VALIDATION_FAILED", "400 VALIDATION_FAILED", "201 open"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	var faults []string
	for _, f := range results[1].Problem.Errors {
		faults = append(faults, f.Field+" "+f.Code)
	}
	alone := v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"BTCUSDC_PERP","action":"up","type":"limit","amount":1,"stop_price":"1"}`).Want(400).Faults()
	if !slices.Equal(faults, alone) {
		t.Errorf("in the batch %v, alone %v", faults, alone)
	}
	results = sendBatch(t, v, "DELETE", ordersOf(`{}`, `{"order_code":"x"}`, `{"reference_id":"a","order_code":"00000000-0000-8000-8000-000000000009"}`, `{"code":"a"}`))
	if got := shortly(results); strings.Count(strings.Join(got, ","), "400 VALIDATION_FAILED") != 4 {
		t.Errorf("names: %v", got)
	}
	before := v.Trading.Tip()
	for body, want := range map[string]string{
		`{}`: "orders REQUIRED", `{"orders":[]}`: "orders OUT_OF_RANGE", `{"orders":{}}`: "orders WRONG_TYPE", `[]`: "WRONG_TYPE",
		`{"orders":[` + good + `],"orders":[]}`: "orders DUPLICATE_FIELD", `{"orders":[` + good + `],"x":1}`: "x UNKNOWN_FIELD",
		`{"orders":[` + good + `]} 1`: "TRAILING_DATA", `{"orders":[` + good + `,]}`: "MALFORMED_JSON", `{"orders":null}`: "orders NULL_NOT_ALLOWED",
		ordersOf(slices.Repeat([]string{good}, 51)...): "orders OUT_OF_RANGE",
	} {
		for _, method := range []string{"POST", "DELETE"} {
			if got := v.Send("broker-a", method, batchPath, body).Code(400, "VALIDATION_FAILED").Faults(); !slices.Equal(got, []string{want}) {
				t.Errorf("%s %.60s: %v, want %s", method, body, got, want)
			}
		}
	}
	v.Send("broker-a", "POST", batchPath+"?symbol="+btc, ordersOf(good)).Code(400, "VALIDATION_FAILED")
	if v.Trading.Tip() != before {
		t.Error("a refused batch changed something")
	}
}

// TestBatchKey: the same batch again gets the first results; what was not accepted is decided then; another batch with
// the key is refused as a whole, longer ones included; and the key means nothing to the route for one order.
func TestBatchKey(t *testing.T) {
	v := funded(t)
	body := ordersOf(entry("buy", "0.1", "64000"), entry("buy", "0.2", "64000"), entry("buy", "0.3", "64000"), entry("buy", "600", "64000"))
	calls := 0
	v.Fail(func(decide.Command) error {
		if calls++; calls == 2 {
			return &submit.NotAcceptedError{Reason: "a test"}
		}
		return nil
	})
	first := sendBatch(t, v, "POST", body, "Idempotency-Key", "k")
	v.Fail(nil)
	if got, want := shortly(first), []string{"201 open", "503 NOT_ACCEPTED", "201 open", "422 INSUFFICIENT_MARGIN"}; !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	second := resultsOf(t, v.Send("broker-a", "POST", batchPath, body, "Idempotency-Key", "k").Want(200).Body)
	if got, want := shortly(second), []string{"201 open", "201 open", "201 open", "422 INSUFFICIENT_MARGIN"}; !slices.Equal(got, want) {
		t.Errorf("again: %v, want %v", got, want)
	}
	for _, i := range []int{0, 2} {
		if fmt.Sprint(first[i].Order) != fmt.Sprint(second[i].Order) {
			t.Errorf("order %d first %v, then %v", i, first[i].Order, second[i].Order)
		}
	}
	before := v.Trading.Tip()
	for _, other := range []string{
		ordersOf(entry("buy", "0.1", "64000")), ordersOf(entry("buy", "0.1", "64001"), entry("buy", "0.2", "64000"), entry("buy", "0.3", "64000")),
		strings.Replace(body, "]}", ","+entry("buy", "0.5", "64000")+"]}", 1),
	} {
		v.Send("broker-a", "POST", batchPath, other, "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	}
	if v.Trading.Tip() != before {
		t.Error("a batch with a key that was used changed something")
	}
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "64000"), "Idempotency-Key", "k").Want(201)
	names := ordersOf(`{"order_code":"` + first[0].Order["code"].(string) + `"}`)
	for range 2 {
		if got := shortly(resultsOf(t, v.Send("broker-a", "DELETE", batchPath, names, "Idempotency-Key", "k").Want(200).Body)); !slices.Equal(got, []string{"200 canceled"}) {
			t.Errorf("canceled with the key: %v", got)
		}
	}
	v.Send("broker-a", "POST", batchPath, body, "Idempotency-Key", "no good").Code(400, "VALIDATION_FAILED")
	for _, method := range []string{"POST", "PATCH", "DELETE"} { // without a valid item, too
		v.Send("broker-a", method, batchPath, ordersOf(`{}`), "Idempotency-Key", "no good").Code(400, "VALIDATION_FAILED")
	}
}

// TestBatchOfUnknownOutcomes: an order of which nobody knows says so in its own result, and so does a fault of the server.
func TestBatchOfUnknownOutcomes(t *testing.T) {
	v := funded(t)
	calls := 0
	v.Fail(func(c decide.Command) error {
		switch calls++; calls {
		case 1:
			return &submit.OutcomeUnknownError{CommandID: c.ID}
		case 2:
			return &submit.DecideError{CommandID: c.ID}
		}
		return nil
	})
	results := sendBatch(t, v, "POST", ordersOf(entry("buy", "0.1", "64000"), entry("buy", "0.1", "64000"), entry("buy", "0.1", "64000")))
	if got, want := shortly(results), []string{"503 OUTCOME_UNKNOWN", "500 INTERNAL", "201 open"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
