package trading_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// part returns a member of an object as its own JSON text.
func part(r *tradingtest.Reply, name string) string { return r.Text(name) }

// TestState: the state is what the lists say, in one answer, as of the position that it names.
func TestState(t *testing.T) {
	v := funded(t)
	empty := v.Send("broker-a", "GET", a1+"/state", "").Want(200)
	want(t, empty, "open_orders", "[]", "positions", "[]", "position", v.Trading.Tip().String())
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.4", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.5", "64000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.2", "66000")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.2", "64000")).Want(201) // a part of A-1's
	v.Send("broker-a", "POST", a1+"/orders", `{"symbol":"`+btc+`","action":"sell","type":"stop_loss","amount":"0.01","trigger_price":"60000"}`).Want(201)
	for user, customer := range map[string]string{"broker-a": a1, "client-a": a1, "broker-b": b1, "operator": b1} {
		state := v.Send(user, "GET", customer+"/state", "").Want(200)
		for member, path := range map[string]string{"open_orders": "/orders", "positions": "/positions", "account_summaries": "/account-summary"} {
			var list any
			reply := v.Send(user, "GET", customer+path, "").Want(200).JSON(&list)
			if got, listed := part(state, member), canonical(t, reply.Body); got != listed {
				t.Errorf("%s of %s: %s\nthe list says %s", member, customer, got, listed)
			}
		}
		if got := part(state, "position"); got != v.Trading.Tip().String() || state.Header.Get("X-Log-Position") != got {
			t.Errorf("%s is as of %s and says %s, want %v", customer, state.Header.Get("X-Log-Position"), got, v.Trading.Tip())
		}
	}
	// It does not wait for rows, nor show what they say: those may be older.
	release := v.HoldRows()
	defer release()
	v.Send("broker-a", "DELETE", a1+"/orders", "").Want(200)
	if got := part(v.Send("broker-a", "GET", a1+"/state", "").Want(200), "open_orders"); got != "[]" {
		t.Errorf("after all orders were canceled: %s", got)
	}
}

// TestStatus: the loosest status in force on an instrument is the venue's, and every journal is told of.
func TestStatus(t *testing.T) {
	v := tradingtest.New(t)
	status := func(want string) {
		t.Helper()
		r := v.Send("", "GET", "/v1/status", "").Want(200)
		if got := r.Text("status"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	status("post_only") // before the first index prices
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65000"}`).Want(200)
	status("open")
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"status":"cancel_only"}`).Want(200)
	status("post_only")
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+eth, `{"status":"trade_halt"}`).Want(200)
	status("halted")
	var told struct {
		Journals []struct {
			Journal  string `json:"journal"`
			Sequence int64  `json:"sequence"`
		} `json:"journals"`
		Time    string `json:"time"`
		Version string `json:"version"`
	}
	v.Send("", "GET", "/v1/status", "").JSON(&told)
	if len(told.Journals) != 2 || told.Journals[0].Journal != "trading" || told.Journals[0].Sequence != v.Trading.Tip().Sequence ||
		told.Journals[1].Journal != "identity" || told.Journals[1].Sequence != v.Identity.Tip().Sequence || told.Time != "2026-03-31T08:00:00.000000Z" || told.Version != tradingtest.Version {
		t.Errorf("%+v", told)
	}
}

// TestLimits: what is limited says how much, what is not says "none", and a user with a rate limit is told it.
func TestLimits(t *testing.T) {
	v := tradingtest.New(t)
	public := v.Send("", "GET", "/v1/limits", "").Want(200)
	for member, text := range map[string]string{"rate_limit": `{"burst":"none","per_second":"none","policy":"none"}`,
		"orders": `{"batch":50,"cancel_all_after_seconds":86400,"leverage":13,"live":"none","reduce_only":20,"remembered_reference_ids":100000}`} {
		if got := part(public, member); got != text {
			t.Errorf("%s: %s, want %s", member, got, text)
		}
	}
	if got := part(public, "requests"); !strings.Contains(got, `"candles_page_size":5000`) || !strings.Contains(got, `"csv_rows":"none"`) {
		t.Errorf("requests: %s", got)
	}
	if got := part(public, "sockets"); !strings.Contains(got, `"resume_records":1000000`) {
		t.Errorf("sockets: %s", got)
	}
	v.Send("operator", "PATCH", "/admin/v1/users/broker-a", `{"rate_limit":{"per_second":5,"burst":9}}`).Want(200)
	if got := part(v.Send("broker-a", "GET", "/v1/limits", "").Want(200), "rate_limit"); got != `{"burst":9,"per_second":5,"policy":"user"}` {
		t.Errorf("of a limited user: %s", got)
	}
	made := v.Send("broker-a", "POST", "/v1/api-keys", `{"name":"k","scopes":["read"]}`).Want(201)
	own := func() string {
		return part(v.Send("", "GET", "/v1/limits", "", "Authorization", "Bearer "+made.Text("key")).Want(200), "rate_limit")
	}
	if got := own(); got != `{"burst":9,"per_second":5,"policy":"user"}` {
		t.Errorf("of a key of a limited user: %s", got)
	}
	v.Send("operator", "PATCH", "/admin/v1/users/broker-a/api-keys/"+made.Text("id"), `{"rate_limit":{"per_second":7,"burst":8}}`).Want(200)
	if got := own(); got != `{"burst":8,"per_second":7,"policy":"api_key"}` {
		t.Errorf("of a key that is limited: %s", got)
	}
	if got := part(v.Send("broker-b", "GET", "/v1/limits", "").Want(200), "rate_limit"); got != `{"burst":"none","per_second":"none","policy":"none"}` {
		t.Errorf("of another user: %s", got)
	}
	v.Send("", "GET", "/v1/limits", "", "Authorization", "Bearer nonsense").Code(401, "UNAUTHORIZED")
}

// TestLeverageAlone: an override without an order is set, told and taken away; what the margin does not allow changes
// nothing.
func TestLeverageAlone(t *testing.T) {
	v := funded(t)
	path := a1 + "/margin-profile/" + btc
	const plain = `{"initial_margin":"7.70","instrument_margins":[],"leverage":"13","maintenance_margin":"3.85"}`
	set := v.Send("broker-a", "PUT", path, `{"leverage":5}`).Want(200)
	want(t, set, "leverage", "13", "instrument_margins", `[{"initial_margin":"20.00","leverage":"5","symbol":"`+btc+`"}]`)
	if read := v.Send("broker-a", "GET", a1+"/margin-profile", "").Want(200); read.Body != set.Body {
		t.Errorf("it says %s and is %s", set.Body, read.Body)
	}
	v.Send("client-a", "PUT", path, `{"leverage":"10"}`).Want(200) // the account's own token, and digits in a string
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "10", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "10", "65000")).Want(201)
	before := v.Trading.Tip()
	v.Send("broker-a", "PUT", path, `{"leverage":6}`).Code(422, "INSUFFICIENT_MARGIN")
	if v.Trading.Tip() != before {
		t.Error("a refusal made a record")
	}
	for body, fault := range map[string]string{`{}`: "leverage REQUIRED", `{"leverage":0}`: "leverage INVALID_VALUE", `{"leverage":14}`: "leverage OUT_OF_RANGE",
		`{"leverage":1.5}`: "leverage INVALID_VALUE", `{"leverage":"01"}`: "leverage INVALID_VALUE", `{"leverage":"+3"}`: "leverage INVALID_VALUE", `{"leverage":null}`: "leverage NULL_NOT_ALLOWED",
		`{"leverage":5,"symbol":"X"}`: "symbol UNKNOWN_FIELD"} {
		if got := v.Send("broker-a", "PUT", path, body).Code(400, "VALIDATION_FAILED").Faults(); len(got) != 1 || got[0] != fault {
			t.Errorf("%s: %v, want %s", body, got, fault)
		}
	}
	v.Send("broker-a", "PUT", a1+"/margin-profile/NOPE", `{"leverage":5}`).Code(404, "UNKNOWN_SYMBOL")
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"max_leverage":5}`).Want(200)
	if got := v.Send("broker-a", "PUT", path, `{"leverage":6}`).Code(400, "LEVERAGE_ABOVE_MAXIMUM").Faults(); len(got) != 1 || got[0] != "leverage LEVERAGE_ABOVE_MAXIMUM" {
		t.Errorf("above the instrument's: %v", got)
	}
	// A higher margin of the instrument is in force at once, and lowers what can be chosen.
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"init_margin_req":"50"}`).Want(200)
	want(t, v.Send("broker-a", "GET", a1+"/margin-profile", "").Want(200), "leverage", "13", "instrument_margins", `[{"initial_margin":"50.00","leverage":"2","symbol":"`+btc+`"}]`)
	v.Send("broker-a", "PUT", path, `{"leverage":3}`).Code(400, "LEVERAGE_ABOVE_MAXIMUM")
	v.Send("operator", "PATCH", "/admin/v1/instruments/"+btc, `{"init_margin_req":"5"}`).Want(200)
	// A repeated key is answered with the first answer, though other changes came between.
	first := v.Send("broker-a", "DELETE", path, "", "Idempotency-Key", "k-1").Want(200)
	if canonical(t, first.Body) != plain {
		t.Errorf("without an override: %s", first.Body)
	}
	v.Send("broker-a", "PUT", a1+"/margin-profile/"+eth, `{"leverage":2}`).Want(200)
	if again := v.Send("broker-a", "DELETE", path, "", "Idempotency-Key", "k-1").Want(200); again.Body != first.Body {
		t.Errorf("repeated: %s, want %s", again.Body, first.Body)
	}
}

// canonical returns JSON with its members in order and without space.
func canonical(t *testing.T, text string) string {
	t.Helper()
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return string(v)
}
