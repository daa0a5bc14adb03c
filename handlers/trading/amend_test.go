package trading_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// TestAmendByReference: the live order with the client's own name is amended as by its code; a final one is 409, and one that
// is not there 404.
func TestAmendByReference(t *testing.T) {
	v := funded(t)
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010", `"reference_id":"mine"`)).Want(201)
	one := a1 + "/orders/by-reference/mine"
	amended := v.Send("broker-a", "PATCH", one, `{"amount":"0.4","limit_price":"65020"}`, "Idempotency-Key", "k").Want(200)
	want(t, amended, "code", placed.Text("code"), "amount", "0.400", "limit_price", "65020.0", "status", "open")
	if again := v.Send("broker-a", "PATCH", one, `{"amount":"0.4","limit_price":"65020"}`, "Idempotency-Key", "k").Want(200); again.Body != amended.Body {
		t.Errorf("again: %s, first %s", again.Body, amended.Body)
	}
	if again := v.Send("broker-a", "PATCH", one, `{"trigger_price":null,"amount":"0.4","limit_price":"65020"}`, "Idempotency-Key", "k").Want(200); again.Body != amended.Body {
		t.Errorf("again with null: %s, first %s", again.Body, amended.Body)
	}
	v.Send("broker-a", "PATCH", one, `{"amount":"0.3"}`, "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	// A key belongs to its route.
	v.Send("broker-a", "PATCH", a1+"/orders/"+placed.Text("code"), `{"amount":"0.3"}`, "Idempotency-Key", "k").Want(200)
	v.Send("broker-a", "PATCH", one, `{}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PATCH", one, `{"stop_price":"1"}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PATCH", a1+"/orders/by-reference/other", `{"amount":"1"}`).Code(404, "UNKNOWN_ORDER")
	v.Send("broker-b", "PATCH", one, `{"amount":"1"}`).Code(404, "UNKNOWN_CUSTOMER")
	v.Send("broker-a", "DELETE", one, "").Want(200)
	v.Send("broker-a", "PATCH", one, `{"amount":"1"}`).Code(409, "ORDER_NOT_LIVE")
}

// TestAmendBatch: each order is amended for itself, named either way, and has a result of its own.
func TestAmendBatch(t *testing.T) {
	v := funded(t)
	code := v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010")).Want(201).Text("code")
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010", `"reference_id":"mine"`)).Want(201)
	body := ordersOf(fmt.Sprintf(`{"order_code":%q,"limit_price":"65011"}`, code), `{"reference_id":"mine","amount":"0.6"}`,
		`{"reference_id":"none","amount":"0.6"}`, `{"reference_id":"mine"}`, `{"amount":"1"}`,
		fmt.Sprintf(`{"order_code":%q,"reference_id":"mine","amount":"1"}`, code), `{"reference_id":"mine","amount":"1","type":"limit"}`, `7`)
	reply := v.Send("broker-a", "PATCH", batchPath, body, "Idempotency-Key", "k").Want(200)
	results := resultsOf(t, reply.Body)
	if got, want := shortly(results), []string{"200 open", "200 open", "404 UNKNOWN_ORDER", "400 VALIDATION_FAILED", "400 VALIDATION_FAILED",
		"400 VALIDATION_FAILED", "400 VALIDATION_FAILED", "400 VALIDATION_FAILED"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	if results[0].Order["limit_price"] != "65011.0" || results[1].Order["amount"] != "0.600" {
		t.Errorf("%s", reply.Body)
	}
	before := v.Trading.Tip()
	if again := resultsOf(t, v.Send("broker-a", "PATCH", batchPath, body, "Idempotency-Key", "k").Want(200).Body); !slices.Equal(shortly(again), shortly(results)) || v.Trading.Tip() != before {
		t.Errorf("again: %q", shortly(again))
	}
	v.Send("broker-a", "PATCH", batchPath, ordersOf(`{"reference_id":"mine","amount":"0.7"}`), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	v.Send("broker-a", "PATCH", batchPath, ordersOf()).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PATCH", batchPath, ordersOf(slices.Repeat([]string{`{"reference_id":"mine","amount":"1"}`}, 51)...)).Code(400, "VALIDATION_FAILED")
	v.Send("broker-b", "PATCH", batchPath, ordersOf(`{"reference_id":"mine","amount":"1"}`)).Code(404, "UNKNOWN_CUSTOMER")
}

// TestTriggered: when a stop fired is in the order, in the answer to what changes it, in the lists and in the state.
func TestTriggered(t *testing.T) {
	v := funded(t)
	stop := v.Send("broker-a", "POST", a1+"/orders",
		`{"symbol":"BTCUSDC_PERP","action":"sell","type":"stop_loss_limit","amount":"0.1","limit_price":"65100","trigger_price":"64990","reference_id":"s"}`).Want(201)
	want(t, stop, "triggered", "", "status", "open")
	v.Advance(1_000_000)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.1", "64990")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.1", "64990")).Want(201)
	v.Trading.Drain()
	fired := v.Send("broker-a", "GET", a1+"/orders/by-reference/s", "").Want(200)
	want(t, fired, "status", "open", "triggered", fired.Text("updated"))
	for _, path := range []string{"/orders", "/orders/history", "/state"} {
		if r := v.Send("broker-a", "GET", a1+path, "").Want(200); !strings.Contains(r.Body, `"triggered":"`+fired.Text("triggered")+`"`) {
			t.Errorf("%s: %s", path, r.Body)
		}
	}
	v.Advance(1_000_000)
	canceled := v.Send("broker-a", "DELETE", a1+"/orders/by-reference/s", "").Want(200)
	want(t, canceled, "status", "canceled", "triggered", fired.Text("triggered"))
	want(t, v.Send("broker-a", "GET", a1+"/orders/by-reference/s", "").Want(200), "triggered", fired.Text("triggered"))
	csv := v.Send("broker-a", "GET", a1+"/orders/history", "", "Accept", "text/csv").Want(200)
	if !strings.Contains(csv.Body, ",triggered,") || !strings.Contains(csv.Body, fired.Text("triggered")) {
		t.Errorf("CSV: %s", csv.Body)
	}
}

// TestAmendBatchNull: null in an amendment of a batch means the same as an absent member, also for the Idempotency-Key.
func TestAmendBatchNull(t *testing.T) {
	v := funded(t)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010", `"reference_id":"mine"`)).Want(201)
	with := ordersOf(`{"order_code":null,"reference_id":"mine","amount":"0.4","limit_price":null}`)
	without := ordersOf(`{"reference_id":"mine","amount":"0.4"}`)
	first := v.Send("broker-a", "PATCH", batchPath, with, "Idempotency-Key", "k").Want(200)
	if got := shortly(resultsOf(t, first.Body)); !slices.Equal(got, []string{"200 open"}) {
		t.Errorf("amended: %v", got)
	}
	amended := v.Trading.Tip()
	for _, body := range []string{with, without} {
		if again := v.Send("broker-a", "PATCH", batchPath, body, "Idempotency-Key", "k").Want(200); again.Body != first.Body || v.Trading.Tip() != amended {
			t.Errorf("%s again: %s, first %s", body, again.Body, first.Body)
		}
	}
	v.Send("broker-a", "PATCH", batchPath, ordersOf(`{"reference_id":"mine","amount":"0.3"}`), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
}

// TestAmendBatchNullBeforeAnUpgrade: an earlier build gave a batch with null another fingerprint, which is in the log.
func TestAmendBatchNullBeforeAnUpgrade(t *testing.T) {
	v := funded(t)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010", `"reference_id":"mine"`)).Want(201)
	v.Fail(func(decide.Command) error { // so that the record has the fingerprint of the earlier build
		v.Fail(nil)
		return &submit.RefusedError{Refusal: decide.KeyReused().(*decide.Refusal)}
	})
	with := ordersOf(`{"reference_id":"mine","amount":"0.4","limit_price":null}`)
	first := v.Send("broker-a", "PATCH", batchPath, with, "Idempotency-Key", "k").Want(200)
	amended := v.Trading.Tip()
	if again := v.Send("broker-a", "PATCH", batchPath, with, "Idempotency-Key", "k").Want(200); again.Body != first.Body || v.Trading.Tip() != amended {
		t.Errorf("again: %s, first %s", again.Body, first.Body)
	}
	v.Send("broker-a", "PATCH", batchPath, strings.Replace(with, "0.4", "0.3", 1), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
}

// TestAmendBatchNotAcceptedBeforeAnUpgrade: the engine did not take the first amendment of such a batch, and knows the key by the second.
func TestAmendBatchNotAcceptedBeforeAnUpgrade(t *testing.T) {
	v := funded(t)
	for _, name := range []string{"one", "two"} {
		v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010", `"reference_id":"`+name+`"`)).Want(201)
	}
	calls := 0
	v.Fail(func(decide.Command) error {
		switch calls++; calls {
		case 1:
			return &submit.NotAcceptedError{Reason: "a test"}
		case 2:
			return &submit.RefusedError{Refusal: decide.KeyReused().(*decide.Refusal)}
		}
		return nil
	})
	body := ordersOf(`{"reference_id":"one","amount":"0.4","limit_price":null}`, `{"reference_id":"two","amount":"0.4"}`)
	got := shortly(sendBatch(t, v, "PATCH", body, "Idempotency-Key", "k"))
	if !slices.Equal(got, []string{"200 open", "200 open"}) {
		t.Errorf("amended: %v", got)
	}
}
