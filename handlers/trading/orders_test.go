package trading_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// entry is the body of a limit order, with more fields if there are any.
func entry(action, amount, price string, more ...string) string {
	fields := append([]string{fmt.Sprintf(`"symbol":%q,"action":%q,"type":"limit","amount":%q,"limit_price":%q`, btc, action, amount, price)}, more...)
	return "{" + strings.Join(fields, ",") + "}"
}

// want compares members of an object, given in pairs of name and text.
func want(t *testing.T, r *tradingtest.Reply, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := r.Text(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s is %q, want %q: %s", pairs[i], got, pairs[i+1], r.Body)
		}
	}
}

// TestOrderLifecycle walks one path through order entry: rest, partial fill, amend, cancel; and reads all of it again.
func TestOrderLifecycle(t *testing.T) {
	v := funded(t)
	resting := v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65010", `"reference_id":"r-1"`)).Want(201)
	want(t, resting, "status", "open", "amount", "0.500", "filled_amount", "0.000", "filled_quote", "0", "limit_price", "65010.0",
		"average_fill_price", "", "time_in_force", "GTC", "reference_id", "r-1", "reason", "", "type", "limit")
	code := resting.Text("code")
	if strings.Contains(resting.Body, "cash_amount") || strings.Contains(resting.Body, "trigger_price_type") ||
		!strings.Contains(resting.Body, `"trigger_price":null`) || !strings.Contains(resting.Body, `"reason":null`) {
		t.Errorf("what is absent and what is null: %s", resting.Body)
	}

	taker := v.Send("broker-b", "POST", b1+"/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.2","leverage":"5"}`).Want(201)
	want(t, taker, "status", "filled", "filled_amount", "0.200", "filled_quote", "13002", "average_fill_price", "65010.0",
		"limit_price", "", "time_in_force", "IOC", "reference_id", taker.Text("code"))

	now := v.Send("broker-a", "GET", a1+"/orders/"+code, "").Want(200)
	want(t, now, "status", "partially_filled", "filled_amount", "0.200", "average_fill_price", "65010.0")
	same := v.Send("broker-a", "GET", a1+"/orders/by-reference/r-1", "").Want(200)
	if same.Body != now.Body {
		t.Errorf("by reference %s, by code %s", same.Body, now.Body)
	}
	v.Advance(scalar.Second)
	amended := v.Send("broker-a", "PATCH", a1+"/orders/"+code, `{"amount":"0.4","limit_price":"65020"}`).Want(200)
	want(t, amended, "status", "partially_filled", "amount", "0.400", "limit_price", "65020.0", "filled_amount", "0.200", "code", code)
	if amended.Text("updated") <= now.Text("updated") || amended.Text("created") != resting.Text("created") {
		t.Errorf("times: %s", amended.Body)
	}
	v.Send("broker-a", "PATCH", a1+"/orders/"+code, `{"amount":"0.2"}`).Want(400)
	v.Send("broker-a", "PATCH", a1+"/orders/"+code, `{}`).Want(400)
	v.Send("broker-a", "PATCH", a1+"/orders/not-a-code", `{"amount":"1"}`).Code(404, "UNKNOWN_ORDER")

	if list := v.Send("broker-a", "GET", a1+"/orders?status=partially_filled&symbol="+btc, "").Want(200).Body; list != "["+amended.Body+"]" {
		t.Errorf("open orders: %s", list)
	}
	for _, path := range []string{"/orders", "/v1/orders", "/orders?customer_code=A-1", a1 + "/orders?status=open%7Cpartially_filled"} {
		if list := v.Send("broker-a", "GET", path, "").Want(200).Body; list != "["+amended.Body+"]" {
			t.Errorf("%s: %s", path, list)
		}
	}
	if list := v.Send("broker-b", "GET", "/orders", "").Want(200).Body; list != "[]" {
		t.Errorf("another broker sees %s", list)
	}
	canceled := v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Want(200)
	want(t, canceled, "status", "canceled", "reason", "user_request", "filled_amount", "0.200", "filled_quote", "13002")
	v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Code(409, "ORDER_NOT_LIVE")
	v.Send("broker-a", "PATCH", a1+"/orders/"+code, `{"amount":"1"}`).Code(409, "ORDER_NOT_LIVE")
	v.Send("broker-a", "DELETE", a1+"/orders/00000000-0000-8000-8000-000000000009", "").Code(404, "UNKNOWN_ORDER")
	if got := v.Send("broker-a", "GET", a1+"/orders/"+code, "").Want(200); got.Body != canceled.Body {
		t.Errorf("%s, want %s", got.Body, canceled.Body)
	}
	if list := v.Send("broker-a", "GET", a1+"/orders", "").Want(200).Body; list != "[]" {
		t.Errorf("open orders at the end: %s", list)
	}
}

// TestRejectedOrder is kept, shown with the problem, and the same again.
func TestRejectedOrder(t *testing.T) {
	v := funded(t)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "65000")).Want(201)
	for _, tt := range []struct{ body, code string }{
		{entry("buy", "1", "65000", `"post_only":true`, `"reference_id":"p"`), "POST_ONLY_WOULD_CROSS"},
		{entry("buy", "500", "64000", `"reference_id":"m"`), "INSUFFICIENT_MARGIN"},
		{entry("buy", "1", "64000", `"reduce_only":true`, `"reference_id":"o"`), "REDUCE_ONLY_INVALID"},
		{entry("buy", "1", "80000", `"reference_id":"b"`), "PRICE_OUT_OF_BAND"},
		{`{"symbol":"BTCUSDC_PERP","action":"sell","type":"market","amount":"1","reference_id":"l"}`, "NO_LIQUIDITY"},
		{`{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","cash_amount":"10","reference_id":"c"}`, "CASH_AMOUNT_TOO_SMALL"},
		{`{"symbol":"ETHUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"1","time_in_force":"IOC","reference_id":"h"}`, "INSTRUMENT_HALTED"},
	} {
		first := v.Send("broker-a", "POST", a1+"/orders", tt.body).Code(422, tt.code)
		order, ok := first.Fields()["order"].(map[string]any)
		if !ok || order["status"] != "rejected" || order["reason"] != strings.ToLower(tt.code) {
			t.Errorf("%s: %s", tt.code, first.Body)
			continue
		}
		again := v.Send("broker-a", "POST", a1+"/orders", tt.body).Code(422, tt.code)
		if fmt.Sprint(again.Fields()["order"]) != fmt.Sprint(order) {
			t.Errorf("%s again: %s, first %s", tt.code, again.Body, first.Body)
		}
		v.Send("broker-a", "GET", a1+"/orders/"+order["code"].(string), "").Want(200)
	}
	if list := v.Send("broker-a", "GET", a1+"/orders/history?status=rejected", "").Want(200); strings.Count(list.Body, `"rejected"`) != 7 {
		t.Errorf("rejected orders: %s", list.Body)
	}
}

// TestTheSameOrderTwice by reference_id is the order as it is now; by Idempotency-Key it is the first answer.
func TestTheSameOrderTwice(t *testing.T) {
	v := funded(t)
	body := entry("sell", "1", "65010", `"reference_id":"r-1"`)
	first := v.Send("broker-a", "POST", a1+"/orders", body, "Idempotency-Key", "k-1").Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.25", "65010")).Want(201)
	before := v.Trading.Tip()

	current := v.Send("broker-a", "POST", a1+"/orders", body).Want(200)
	want(t, current, "status", "partially_filled", "filled_amount", "0.250", "code", first.Text("code"))
	same := entry("sell", "1.000", "65010.0", `"reference_id":"r-1"`, `"time_in_force":"GTC"`, `"post_only":false`, `"leverage":null`)
	if other := v.Send("broker-a", "POST", a1+"/orders", same).Want(200); other.Body != current.Body {
		t.Errorf("the same order in other words: %s", other.Body)
	}
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "2", "65010", `"reference_id":"r-1"`)).Code(409, "REFERENCE_ID_REUSED")
	v.Send("broker-a", "POST", "/v1/customers/A-2/orders", body).Want(201) // another customer's names are its own

	again := v.Send("broker-a", "POST", a1+"/orders", body, "Idempotency-Key", "k-1").Want(201)
	if again.Body != first.Body {
		t.Errorf("the same key: %s, first %s", again.Body, first.Body)
	}
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "3", "65010"), "Idempotency-Key", "k-1").Code(409, "IDEMPOTENCY_KEY_REUSED")
	v.Send("broker-a", "POST", "/v1/customers/A-2/orders", body, "Idempotency-Key", "k-1").Code(409, "IDEMPOTENCY_KEY_REUSED")
	if got := v.Trading.Tip().Sequence; got != before.Sequence+1 {
		t.Errorf("%d records more, want one", got-before.Sequence)
	}

	canceled := v.Send("broker-a", "DELETE", a1+"/orders/"+first.Text("code"), "", "Idempotency-Key", "k-1").Want(200)
	if again := v.Send("broker-a", "DELETE", a1+"/orders/"+first.Text("code"), "", "Idempotency-Key", "k-1").Want(200); again.Body != canceled.Body {
		t.Errorf("canceled again: %s", again.Body)
	}
	final := v.Send("broker-a", "POST", a1+"/orders", body).Want(200)
	want(t, final, "status", "canceled")
}

// TestOutcomesOfEntry are 201 whatever became of the order, unless it was rejected.
func TestOutcomesOfEntry(t *testing.T) {
	v := funded(t)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "65000")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "65100")).Want(201)
	fok := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "3", "65100", `"time_in_force":"FOK"`)).Want(201)
	want(t, fok, "status", "canceled", "reason", "fok_not_fillable", "filled_amount", "0.000")
	cash := v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","cash_amount":"6500.5"}`).Want(201)
	want(t, cash, "status", "filled", "cash_amount", "6500.5", "amount", "0.100", "filled_amount", "0.100", "filled_quote", "6500", "time_in_force", "IOC")
	ioc := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "65050", `"time_in_force":"IOC"`)).Want(201)
	want(t, ioc, "status", "canceled", "reason", "ioc_remainder", "filled_amount", "0.900")
	gtd := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "64000", `"time_in_force":"GTD"`, `"expire_time":"2026-03-31T09:00:00.000000Z"`, `"post_only":true`)).Want(201)
	want(t, gtd, "status", "open", "expire_time", "2026-03-31T09:00:00.000000Z", "post_only", "true")
	v.Send("broker-b", "PATCH", b1+"/orders/"+v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", "65200", `"post_only":true`)).Want(201).Text("code"),
		`{"limit_price":"64000"}`).Code(422, "POST_ONLY_WOULD_CROSS")
}

// TestMassCancel answers after its last step, with the number of all that were canceled.
func TestMassCancel(t *testing.T) {
	v := funded(t)
	for i := range 150 {
		v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.001", fmt.Sprint(60000+i))).Want(201)
	}
	other := v.Send("broker-a", "POST", "/v1/customers/A-2/orders", entry("buy", "0.001", "60000")).Want(201)
	want(t, v.Send("broker-a", "DELETE", a1+"/orders?symbol=ETHUSDC_PERP", "").Want(200), "canceled", "0")
	v.Send("broker-a", "DELETE", a1+"/orders?symbol=NOPE", "").Code(400, "UNKNOWN_SYMBOL")
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.001", "60000")).Want(201)
	want(t, v.Send("broker-b", "DELETE", b1+"/orders?symbol=btcusdc_perp", "").Want(200), "canceled", "1")
	first := v.Send("broker-a", "DELETE", a1+"/orders", "", "Idempotency-Key", "all").Want(200)
	want(t, first, "canceled", "150")
	want(t, v.Send("broker-a", "DELETE", a1+"/orders", "", "Idempotency-Key", "all").Want(200), "canceled", "150")
	want(t, v.Send("broker-a", "DELETE", a1+"/orders", "").Want(200), "canceled", "0")
	if list := v.Send("broker-a", "GET", "/orders", "").Want(200).Body; list != "["+other.Body+"]" {
		t.Errorf("left: %s", list)
	}
}

// TestLongSweep answers after its last step with the whole order.
func TestLongSweep(t *testing.T) {
	v := funded(t)
	for i := range 130 {
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.001", fmt.Sprintf("%d.%d", 65000+i/10, i%10))).Want(201)
	}
	body := entry("buy", "0.2", "65100")
	swept := v.Send("broker-a", "POST", a1+"/orders", body, "Idempotency-Key", "sweep").Want(201)
	want(t, swept, "status", "partially_filled", "filled_amount", "0.130")
	again := v.Send("broker-a", "POST", a1+"/orders", body, "Idempotency-Key", "sweep").Want(201)
	if again.Body != swept.Body {
		t.Errorf("again %s, first %s", again.Body, swept.Body)
	}
}

func TestCancelAllAfter(t *testing.T) {
	v := funded(t)
	order := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "64000")).Want(201).Text("code")
	armed := v.Send("broker-a", "POST", a1+"/cancel-all-after", `{"timeout_seconds":30}`).Want(200)
	want(t, armed, "timeout_seconds", "30", "expires_at", "2026-03-31T08:00:30.000000Z")
	v.Advance(10 * scalar.Second)
	want(t, v.Send("broker-a", "POST", a1+"/cancel-all-after", `{"timeout_seconds":0}`).Want(200), "timeout_seconds", "0", "expires_at", "")
	v.Send("broker-a", "POST", a1+"/cancel-all-after", `{"timeout_seconds":5}`).Want(200)
	v.Advance(6 * scalar.Second)
	v.Send("broker-b", "POST", b1+"/cancel-all-after", `{"timeout_seconds":0}`).Want(200) // whatever comes next drains what is due
	want(t, v.Send("broker-a", "GET", a1+"/orders/"+order, "").Want(200), "status", "canceled", "reason", "cancel_all_after")
}

// TestNoAnswerFromTheJournal is a 503 that says whether the command may still take effect, and names it if so.
func TestNoAnswerFromTheJournal(t *testing.T) {
	v := funded(t)
	before := v.Trading.Tip()
	var id scalar.ID
	for _, tt := range []struct {
		fault func(c decide.Command) error
		code  string
	}{
		{func(decide.Command) error {
			return &submit.NotAcceptedError{RetryAfter: 3 * time.Second, Reason: "full"}
		}, "NOT_ACCEPTED"},
		{func(c decide.Command) error { id = c.ID; return &submit.OutcomeUnknownError{CommandID: c.ID} }, "OUTCOME_UNKNOWN"},
		{func(decide.Command) error {
			return &record.DivergedError{Journal: "trading", Have: record.Before, Found: record.Before}
		}, "LOG_DIVERGED"},
	} {
		v.Fail(tt.fault)
		for _, r := range []struct{ method, path, body string }{
			{"POST", a1 + "/orders", entry("buy", "1", "64000")},
			{"DELETE", a1 + "/orders", ""},
			{"DELETE", a1 + "/orders/00000000-0000-8000-8000-000000000001", ""},
			{"PUT", a1 + "/fee-profile/" + btc, `{"maker_fee":"1","taker_fee":"1"}`},
		} {
			reply := v.Send("broker-a", r.method, r.path, r.body)
			if reply.Status != 503 || reply.Text("code") != tt.code {
				t.Errorf("%s: %d %s", tt.code, reply.Status, reply.Body)
			}
			if waits := reply.Header.Get("Retry-After") != ""; waits == (tt.code == "LOG_DIVERGED") {
				t.Errorf("%s: Retry-After is %q", tt.code, reply.Header.Get("Retry-After"))
			}
			if tt.code == "OUTCOME_UNKNOWN" && reply.Text("command_id") != id.String() {
				t.Errorf("command %s is named %s", id, reply.Text("command_id"))
			}
		}
	}
	v.Fail(nil)
	if v.Trading.Tip() != before {
		t.Error("a record was written")
	}
}

// TestOrderFinishedLongAgo is a conflict although the engine has forgotten it, as it does after a while.
func TestOrderFinishedLongAgo(t *testing.T) {
	v := funded(t)
	code := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64000")).Want(201).Text("code")
	v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Want(200)
	v.Send("broker-a", "GET", a1+"/orders/"+code, "").Want(200) // the read models have it now
	v.Fail(func(decide.Command) error {
		return &submit.RefusedError{Refusal: decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "there is no such order"), AsOf: v.Trading.Tip()}
	})
	v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Code(409, "ORDER_NOT_LIVE")
	v.Send("broker-a", "PATCH", a1+"/orders/"+code, `{"amount":"2"}`).Code(409, "ORDER_NOT_LIVE")
	v.Send("broker-a", "DELETE", "/v1/customers/A-2/orders/"+code, "").Code(404, "UNKNOWN_ORDER")
	v.Send("broker-b", "DELETE", a1+"/orders/"+code, "").Code(404, "UNKNOWN_ORDER")
}

// TestOrderOfWhichTheRowsDoNotTell: a change of an order that the engine does not know is not answered with 404 while the rows cannot
// tell whether the order ever existed.
func TestOrderOfWhichTheRowsDoNotTell(t *testing.T) {
	at := projectiontest.VenueURL(t)
	read := projectiontest.Open(t, at)
	v := tradingtest.On(t, read, projectiontest.Open(t, at))
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("operator", "POST", "/admin/v1/customers/A-1/deposits", `{"currency":"USDC","amount":"100000","reference_id":"d"}`).Want(201)
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000"}`).Want(200)
	live := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64000")).Want(201).Text("code")
	v.Send("broker-a", "GET", a1+"/orders/"+live, "").Want(200) // its row is live until release
	release := v.HoldRows()
	absent := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64000")).Want(201).Text("code")
	v.Send("broker-a", "DELETE", a1+"/orders", "").Want(200)
	v.Fail(func(decide.Command) error {
		return &submit.RefusedError{Refusal: decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "there is no such order"), AsOf: v.Trading.Tip()}
	})
	change := func(status int, problem string) {
		t.Helper()
		for _, code := range []string{live, absent} {
			v.Send("broker-a", "DELETE", a1+"/orders/"+code, "").Code(status, problem)
			r := v.Send("broker-a", "DELETE", batchPath, ordersOf(`{"order_code":"`+code+`"}`)).Want(200)
			if got, want := shortly(resultsOf(t, r.Body)), []string{fmt.Sprint(status, " ", problem)}; !slices.Equal(got, want) {
				t.Errorf("in a batch: %v, want %v", got, want)
			}
		}
	}
	change(503, "SOURCE_UNAVAILABLE") // the rows are behind
	release()
	change(409, "ORDER_NOT_LIVE")
	read.Close()
	change(503, "SOURCE_UNAVAILABLE") // there are no rows
}

// TestAnOrderThatHasNoRowYet: an order that the engine has accepted is not answered with 404 while the rows are behind.
func TestAnOrderThatHasNoRowYet(t *testing.T) {
	v := funded(t)
	releaseRows := v.HoldRows()
	code := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64000", `"reference_id":"r"`)).Want(201).Text("code")
	paths := []string{a1 + "/orders/" + code, a1 + "/orders/by-reference/r", a1 + "/orders/" + code + "/receipt"}
	for _, path := range paths {
		v.Send("client-a", "GET", path, "", atOnce()...).Code(503, "SOURCE_UNAVAILABLE")
	}
	// A node whose fold is behind, too, knows that it has answered the user with a later record.
	releaseFold := v.Trading.HoldFold()
	later := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64001")).Want(201).Text("code")
	v.Send("broker-a", "GET", a1+"/orders/"+later, "", atOnce()...).Code(503, "SOURCE_UNAVAILABLE")
	releaseFold()
	releaseRows()
	for _, path := range append(paths, a1+"/orders/"+later) {
		v.Send("client-a", "GET", path, "").Want(200)
	}
	v.Send("client-a", "GET", a1+"/orders/by-reference/none", "").Code(404, "UNKNOWN_ORDER")
}

// TestCancelByReference: the live order with the client's own name is canceled, also one whose name is its code; a final
// one is 409, however long ago it became so, and an unknown name 404.
func TestCancelByReference(t *testing.T) {
	v := funded(t)
	const entry = `{"symbol":"` + btc + `","action":"buy","type":"limit","amount":"0.1","limit_price":"64000"`
	path := func(name string) string { return a1 + "/orders/by-reference/" + name }
	v.Send("broker-a", "POST", a1+"/orders", entry+`,"reference_id":"r-1"}`).Want(201)
	v.Send("broker-b", "DELETE", path("r-1"), "").Code(404, "UNKNOWN_CUSTOMER")
	v.Send("broker-a", "DELETE", path("r-2"), "").Code(404, "UNKNOWN_ORDER")
	first := v.Send("broker-a", "DELETE", path("r-1"), "", "Idempotency-Key", "k").Want(200)
	if first.Text("status") != "canceled" || first.Text("reference_id") != "r-1" {
		t.Errorf("%s", first.Body)
	}
	if again := v.Send("broker-a", "DELETE", path("r-1"), "", "Idempotency-Key", "k").Want(200); again.Body != first.Body {
		t.Errorf("the same key: %s", again.Body)
	}
	v.Send("broker-a", "DELETE", path("r-1"), "").Code(409, "ORDER_NOT_LIVE")
	v.Advance(25 * 3600 * 1_000_000)
	v.Send("broker-a", "GET", path("r-1"), "").Want(200) // so that the rows are there
	v.Send("broker-a", "DELETE", path("r-1"), "").Code(409, "ORDER_NOT_LIVE")

	code := v.Send("broker-a", "POST", a1+"/orders", entry+`}`).Want(201).Text("code")
	if got := v.Send("broker-a", "DELETE", path(code), "").Want(200); got.Text("code") != code {
		t.Errorf("an unnamed order: %s", got.Body)
	}
	code = v.Send("broker-a", "POST", a1+"/orders", entry+`,"reference_id":"r-3"}`).Want(201).Text("code")
	v.Send("broker-a", "DELETE", path(code), "").Code(404, "UNKNOWN_ORDER")
}
