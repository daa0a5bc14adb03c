package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// bad is a request that must be answered with a problem and change nothing.
type bad struct {
	name         string
	user         string
	method, path string
	body         any // nil: none
	headers      []string
	status       int
	code         string
	faults       []string // "field CODE", all of them; nil: not looked at
}

// problem is the shape of every error outside of login.
type problem struct {
	Type, Title, Detail, Instance, Code string
	Status                              int
	Errors                              []struct{ Field, Code, Message string }
	RequestID                           string `json:"request_id"`
}

// refuse sends one of them and holds the problem against what is promised.
func (d *desk) refuse(t *testing.T, b bad) {
	t.Helper()
	a := d.insist(b.status, func() answer { return d.venue.do(b.user, b.method, b.path, b.body, b.headers...) })
	if a.Status != b.status {
		t.Errorf("%s: %d, want %d: %.400s", b.name, a.Status, b.status, a.Body)
		return
	}
	var p problem
	if err := json.Unmarshal(a.Body, &p); err != nil || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/problem+json") {
		t.Errorf("%s: not a problem: %s %.400s", b.name, a.Header.Get("Content-Type"), a.Body)
		return
	}
	path, _, _ := strings.Cut(b.path, "?")
	switch {
	case p.Type == "" || p.Title == "" || p.Detail == "" || p.Code == "" || p.RequestID == "" || p.Errors == nil:
		t.Errorf("%s: incomplete: %s", b.name, a.Body)
	case p.Status != b.status || p.RequestID != a.Header.Get("X-Request-Id"):
		t.Errorf("%s: the problem is about another answer: %s", b.name, a.Body)
	case !strings.EqualFold(p.Instance, path):
		t.Errorf("%s: instance %q, want %q", b.name, p.Instance, path)
	case b.code != "" && p.Code != b.code:
		t.Errorf("%s: code %s, want %s: %s", b.name, p.Code, b.code, a.Body)
	case b.status == http.StatusUnauthorized && a.Header.Get("WWW-Authenticate") == "":
		t.Errorf("%s: no WWW-Authenticate", b.name)
	case b.status == http.StatusMethodNotAllowed && a.Header.Get("Allow") == "":
		t.Errorf("%s: no Allow", b.name)
	}
	var got []string
	for _, f := range p.Errors {
		got = append(got, f.Field+" "+f.Code)
		if f.Message == "" {
			t.Errorf("%s: a fault without a message: %s", b.name, a.Body)
		}
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(b.faults))
	if b.faults != nil && !slices.Equal(got, want) {
		t.Errorf("%s: faults %q, want %q", b.name, got, want)
	}
}

// entry is a good limit order with some members changed, given in pairs of name and JSON; an empty one leaves it out.
func entry(pairs ...string) string {
	members := []string{"symbol", `"BTCUSDC_PERP"`, "action", `"buy"`, "type", `"limit"`, "amount", `"0.010"`, "limit_price", `"60000.0"`}
	for i := 0; i < len(pairs); i += 2 {
		at := slices.Index(members, pairs[i])
		if at < 0 {
			at = len(members)
			members = append(members, pairs[i], "")
		}
		members[at+1] = pairs[i+1]
	}
	var out []string
	for i := 0; i < len(members); i += 2 {
		if members[i+1] != "" {
			out = append(out, fmt.Sprintf("%q:%s", members[i], members[i+1]))
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

// testBadInput sends everything that must not work. The trading and the identity journal end where they ended before.
func testBadInput(t *testing.T, d *desk) {
	// The tips are read off the next record that each journal gets, so no reader's delay can hide one in between.
	mark := func(method, path, body string) (at int64) {
		a := d.must(200, "operator", method, path, body)
		position := a.Header.Get("X-Log-Position")
		if _, err := fmt.Sscanf(position[strings.Index(position, "@"):], "@%d", &at); err != nil {
			t.Fatalf("the position %q: %v", position, err)
		}
		return at
	}
	marks := func() (int64, int64) {
		return mark(http.MethodPost, "/admin/v1/index-prices/"+bitcoin, `{"price":"65000"}`), mark(http.MethodPatch, "/admin/v1/users/anna", `{"is_active":true}`)
	}
	resting := d.order(t, 201, bensOrders, entry("reference_id", `"rests"`), "status", "open")
	trading, identity := marks()
	for name, table := range map[string][]bad{
		"JSON": badJSON(), "Orders": badOrders(), "Stops": badStops(), "Changes": badChanges(bensOrders + "/" + resting["code"]),
		"Money": badMoney(), "Operator": badOperator(), "Queries": badQueries(), "Headers": badHeaders(), "Addresses": badAddresses(), "Tokens": badTokens(t, d),
	} {
		d.within(t, name, func(t *testing.T) {
			for _, b := range table {
				d.refuse(t, b)
			}
		})
	}
	d.within(t, "Login", func(t *testing.T) { testBadLogin(t, d) })
	d.within(t, "Messages", func(t *testing.T) { testBadMessages(t, d) })
	tradingAfter, identityAfter := marks()
	if tradingAfter != trading+1 || identityAfter != identity+1 {
		t.Errorf("something was recorded: trading from %d to %d, identity from %d to %d", trading, tradingAfter, identity, identityAfter)
	}
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders, nil, "canceled", "1")
}

// post is a POST to BEN's orders as broker-a.
func post(name string, body any, faults ...string) bad {
	return bad{name: name, user: "broker-a", method: http.MethodPost, path: bensOrders, body: body, status: 400, code: "VALIDATION_FAILED", faults: faults}
}

// judged is post for what depends on the instrument or the time, which the engine judges.
func judged(name string, body any, faults ...string) bad {
	b := post(name, body, faults...)
	b.code = ""
	return b
}

func badJSON() []bad {
	table := []bad{
		post("empty", "", " MALFORMED_JSON"), post("white space", " \n", " MALFORMED_JSON"), post("cut off", `{"symbol":"BTC`, " MALFORMED_JSON"),
		post("an array", `[]`, " WRONG_TYPE"), post("an array of orders", "["+entry()+"]", " WRONG_TYPE"), post("null", `null`, " WRONG_TYPE"),
		post("a string", `"{}"`, " WRONG_TYPE"), post("a number", `1`, " WRONG_TYPE"),
		post("two objects", entry()+entry(), " TRAILING_DATA"), post("a brace too many", entry()+"}", " TRAILING_DATA"),
		post("a letter too many", entry()+"x", " TRAILING_DATA"), post("NUL at the end", entry()+"\x00", " TRAILING_DATA"),
		post("a comma too many", strings.Replace(entry(), "}", ",}", 1), " MALFORMED_JSON"), post("single quotes", `{'symbol':'BTCUSDC_PERP'}`, " MALFORMED_JSON"),
		post("a comment", "{/**/}", " MALFORMED_JSON"), post("NaN", entry("amount", "NaN"), " MALFORMED_JSON"), post("a byte order mark", "\ufeff"+entry(), " MALFORMED_JSON"),
		post("a raw line feed", entry("reference_id", "\"a\nb\""), " MALFORMED_JSON"), post("a bad escape", entry("reference_id", `"\x41"`), " MALFORMED_JSON"),
		post("a leading zero", entry("leverage", "01"), " MALFORMED_JSON"), post("UTF-16", "\xff\xfe{\x00}\x00", " MALFORMED_JSON"),
		post("too deep", strings.Repeat(`{"a":`, 10000)+"1"+strings.Repeat("}", 10000), " TOO_DEEP"), post("too deep in arrays", `{"a":`+strings.Repeat("[", 10000), " TOO_DEEP"),

		post("amount twice", strings.Replace(entry(), "{", `{"amount":"0.010",`, 1), "amount DUPLICATE_FIELD"),
		post("amount twice, once escaped", strings.Replace(entry(), "{", `{"amo\u0075nt":"9",`, 1), "amount DUPLICATE_FIELD"),
		post("symbol null and not", strings.Replace(entry(), "{", `{"symbol":null,`, 1), "symbol DUPLICATE_FIELD", "symbol NULL_NOT_ALLOWED"),
		post("another case", strings.Replace(entry(), `"amount"`, `"Amount"`, 1), "Amount UNKNOWN_FIELD", "amount REQUIRED"),
		post("unknown", entry("foo", "1", "bar", "{}"), "foo UNKNOWN_FIELD", "bar UNKNOWN_FIELD"), post("unknown and empty", entry("", "1"), " UNKNOWN_FIELD"),
		post("the server's fields", entry("code", `"x"`, "status", `"filled"`, "filled_amount", `"1"`, "customer_code", `"ANNA"`),
			"code UNKNOWN_FIELD", "status UNKNOWN_FIELD", "filled_amount UNKNOWN_FIELD", "customer_code UNKNOWN_FIELD"),
		post("stop_price", entry("stop_price", `"60000.0"`), "stop_price UNKNOWN_FIELD"), post("order_type", entry("order_type", `"limit"`), "order_type UNKNOWN_FIELD"),
		post("nothing", `{}`, "symbol REQUIRED", "action REQUIRED", "type REQUIRED"),

		post("half a surrogate pair", entry("reference_id", `"\ud800"`), "reference_id LONE_SURROGATE"), post("the other half", entry("symbol", `"\udc00x"`), "symbol LONE_SURROGATE"),
		post("a pair the wrong way", entry("reference_id", `"\udc00\ud800"`), "reference_id LONE_SURROGATE"),
		post("not UTF-8", entry("reference_id", "\"\xff\""), "reference_id INVALID_UTF8"), post("overlong UTF-8", entry("reference_id", "\"\xc0\x80\""), "reference_id INVALID_UTF8"),
		post("a surrogate in UTF-8", entry("reference_id", "\"\xed\xa0\x80\""), "reference_id INVALID_UTF8"), post("a name that is not UTF-8", entry("a\xff", "1")),
		post("NUL", entry("reference_id", `"a\u0000"`), "reference_id CONTROL_CHARACTER"), post("line feed", entry("symbol", `"BTC\n"`), "symbol CONTROL_CHARACTER"),
		post("DEL", entry("reference_id", `"\u007f"`), "reference_id CONTROL_CHARACTER"), post("C1", entry("reference_id", `"\u0085"`), "reference_id CONTROL_CHARACTER"),
		{name: "too large", user: "broker-a", method: http.MethodPost, path: bensOrders, body: `{"reference_id":"` + strings.Repeat("x", 1<<20) + `"}`, status: 413, code: "BODY_TOO_LARGE"},
		{name: "too large and empty", user: "broker-a", method: http.MethodPost, path: bensOrders, body: strings.Repeat(" ", 2<<20), status: 413, code: "BODY_TOO_LARGE"},
		{name: "too large for the operator", user: "operator", method: http.MethodPost, path: "/admin/v1/brokers", body: strings.Repeat("[", 2<<20), status: 413, code: "BODY_TOO_LARGE"},
	}
	for _, name := range []string{"symbol", "action", "type", "amount", "limit_price", "time_in_force", "expire_time", "reference_id"} {
		for _, value := range []string{"1", "true", "[]", "{}", `["x"]`} {
			table = append(table, bad{name: name + " " + value, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry(name, value), status: 400, code: "VALIDATION_FAILED"})
		}
	}
	for _, name := range []string{"post_only", "reduce_only"} {
		for _, value := range []string{"1", "0", `"true"`, "[]", "{}"} {
			table = append(table, post(name+" "+value, entry(name, value), name+" WRONG_TYPE"))
		}
	}
	return table
}

func badOrders() []bad {
	table := []bad{
		judged("a price between ticks", entry("limit_price", `"60000.05"`), "limit_price INVALID_PRICE_TICK"), judged("an amount between steps", entry("amount", `"0.0105"`), "amount INVALID_AMOUNT_STEP"),
		judged("below min_amount", entry("amount", `"0.0005"`)), judged("above max_amount", entry("amount", `"1000.001"`), "amount AMOUNT_ABOVE_MAXIMUM"),
		judged("three of them", entry("limit_price", `"60000.05"`, "amount", `"0.0105"`, "time_in_force", `"GTD"`, "expire_time", `"2020-01-01T00:00:00.000000Z"`), "limit_price INVALID_PRICE_TICK", "amount INVALID_AMOUNT_STEP", "expire_time INVALID_EXPIRE_TIME"), post("every fault at once", entry("action", `"BUY"`, "amount", "1", "limit_price", `"1e5"`, "x", "1", "post_only", `"no"`),
			"action INVALID_VALUE", "amount WRONG_TYPE", "limit_price INVALID_DECIMAL", "x UNKNOWN_FIELD", "post_only WRONG_TYPE"),
		post("no size", entry("amount", ""), "amount REQUIRED"), post("no price", entry("limit_price", ""), "limit_price REQUIRED"),
		post("a null amount", entry("amount", "null"), "amount REQUIRED"), post("a null symbol", entry("symbol", "null"), "symbol NULL_NOT_ALLOWED"),
		post("both sizes", entry("cash_amount", `"500"`, "time_in_force", `"IOC"`), "cash_amount NOT_ALLOWED"),
		post("a market order with a price", entry("type", `"market"`), "limit_price NOT_ALLOWED"),
		post("a market order GTC", entry("type", `"market"`, "limit_price", "", "time_in_force", `"GTC"`), "time_in_force NOT_ALLOWED"),
		post("a market order GTD", entry("type", `"market"`, "limit_price", "", "time_in_force", `"GTD"`, "expire_time", `"2100-01-01T00:00:00.000000Z"`), "time_in_force NOT_ALLOWED"),
		post("a market order post_only", entry("type", `"market"`, "limit_price", "", "post_only", "true"), "post_only NOT_ALLOWED"),
		post("post_only IOC", entry("post_only", "true", "time_in_force", `"IOC"`), "post_only NOT_ALLOWED"), post("post_only FOK", entry("post_only", "true", "time_in_force", `"FOK"`), "post_only NOT_ALLOWED"),
		post("GTD without a time", entry("time_in_force", `"GTD"`), "expire_time REQUIRED"), post("a time without GTD", entry("expire_time", `"2100-01-01T00:00:00.000000Z"`), "expire_time NOT_ALLOWED"),
		judged("GTD in the past", entry("time_in_force", `"GTD"`, "expire_time", `"2020-01-01T00:00:00.000000Z"`)),
		post("a trigger_price_type on limit", entry("trigger_price_type", `"trade_price"`), "trigger_price_type NOT_ALLOWED"),
		post("a trigger_price on limit", entry("trigger_price", `"60000.0"`), "trigger_price NOT_ALLOWED"),
		{name: "an unknown customer", user: "broker-a", method: http.MethodPost, path: "/v1/customers/NOBODY/orders", body: entry(), status: 404, code: "UNKNOWN_CUSTOMER"},
		{name: "another broker's customer", user: "broker-a", method: http.MethodPost, path: "/v1/customers/CARL/orders", body: entry(), status: 404, code: "UNKNOWN_CUSTOMER"},
		{name: "no orders by the operator", user: "operator", method: http.MethodPost, path: bensOrders, body: entry(), status: 403, code: "FORBIDDEN"},
		{name: "a reference used for another order", user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("reference_id", `"rests"`, "amount", `"0.011"`), status: 409},
	}
	for _, symbol := range []string{"XRPUSDC_PERP", "btcusdc_perp", "BTCUSDC", "BTCUSDC_PERP_", "_"} {
		table = append(table, bad{name: "the symbol " + symbol, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("symbol", fmt.Sprintf("%q", symbol)), status: 400})
	}
	for _, symbol := range []string{"", "BTC USDC", "BTC-USDC", "BTC*", "ΒTCUSDC_PERP", strings.Repeat("A", 33), "BTCUSDC_PERP/..", `a'b`} {
		table = append(table, post("the symbol "+symbol, entry("symbol", fmt.Sprintf("%q", symbol)), "symbol INVALID_VALUE"))
	}
	for _, number := range []string{"1e3", "1E3", "1e-2", "+1", "01", "00", ".5", "5.", "-", "", " 1", "1 ", "1\u00a0", "0x10", "1_000", "1,000", "1,5", "١", "１", "NaN", "Infinity", "--1", "1.2.3", "1/2"} {
		for _, field := range []string{"amount", "limit_price"} {
			table = append(table, bad{name: field + " " + number, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry(field, fmt.Sprintf("%q", number)), status: 400, code: "VALIDATION_FAILED"})
		}
	}
	for _, number := range []string{"0", "0.000", "-0", "-1", "-0.001"} {
		table = append(table, bad{name: "amount " + number, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("amount", fmt.Sprintf("%q", number)), status: 400, code: "VALIDATION_FAILED"},
			bad{name: "limit_price " + number, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("limit_price", fmt.Sprintf("%q", number)), status: 400, code: "VALIDATION_FAILED"})
	}
	for _, number := range []string{"1234567890123456789", "0.0000000000000000001", "1." + strings.Repeat("0", 40), strings.Repeat("9", 5000)} {
		table = append(table, post(fmt.Sprintf("amount %.30s", number), entry("amount", `"`+number+`"`), "amount TOO_MANY_DIGITS"))
	}
	for _, number := range []string{"999999999999999999", "0.00000000000000001"} {
		table = append(table, bad{name: "amount " + number, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("amount", `"`+number+`"`), status: 400},
			bad{name: "limit_price " + number, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("limit_price", `"`+number+`"`), status: 400})
	}
	for _, leverage := range []string{"0", "14", "1.5", `"01"`, `"+3"`, "-1", `"13.0"`, "1e1", "13.0", `""`, "true", `"x"`, `" 3"`, "99999999999999999999", `"99999999999999999999"`, "[3]", `"-0"`, "-0", `"٣"`} {
		table = append(table, bad{name: "leverage " + leverage, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("leverage", leverage), status: 400, code: "VALIDATION_FAILED"})
	}
	for _, c := range []struct{ field, value string }{{"action", "Buy"}, {"action", "long"}, {"type", "LIMIT"}, {"type", "iceberg"}, {"type", "stop_market"}, {"type", "stop_limit"}, {"time_in_force", "gtc"},
		{"time_in_force", "DAY"}, {"trigger_price_type", "index_price"}, {"reference_id", ""}, {"reference_id", "a b"}, {"reference_id", strings.Repeat("a", 65)}, {"reference_id", "é"}, {"reference_id", "a/b"}} {
		b := post(c.field+" "+c.value, entry(c.field, fmt.Sprintf("%q", c.value)))
		table = append(table, b)
	}
	for _, at := range []string{"", "tomorrow", "2100-01-01", "2100-01-01T00:00:00.000000", "2100-01-01T00:00:00.0000001Z", "2100-01-01T00:00:00+0000", "2100-01-01T00:00:00+25:00", "2100-01-01 00:00:00.000000Z",
		"2099-02-29T00:00:00.000000Z", "2099-13-01T00:00:00.000000Z", "2099-01-01T24:00:00.000000Z", "2098-12-31T23:59:60.000000Z", "1999-12-31T23:59:59.999999Z", "2101-01-01T00:00:00.000000Z", "+2099-01-01T00:00:00.000000Z"} {
		table = append(table, bad{name: "expire_time " + at, user: "broker-a", method: http.MethodPost, path: bensOrders, body: entry("time_in_force", `"GTD"`, "expire_time", fmt.Sprintf("%q", at)), status: 400, code: "VALIDATION_FAILED"})
	}
	cash := func(pairs ...string) string {
		return entry(append([]string{"type", `"market"`, "amount", "", "limit_price", "", "cash_amount", `"500"`}, pairs...)...)
	}
	for _, tif := range []string{"GTC", "FOK"} {
		table = append(table, post("cash "+tif, cash("time_in_force", `"`+tif+`"`), "time_in_force NOT_ALLOWED"),
			post("cash limit "+tif, cash("type", `"limit"`, "limit_price", `"60000.0"`, "time_in_force", `"`+tif+`"`), "time_in_force NOT_ALLOWED"))
	}
	for _, number := range []string{"0", "-1", "1e3", "500.123456789", "99999999999999", "92233720369", "+5", "5."} {
		table = append(table, bad{name: "cash_amount " + number, user: "broker-a", method: http.MethodPost, path: bensOrders, body: cash("cash_amount", `"`+number+`"`), status: 400, code: "VALIDATION_FAILED"})
	}
	return append(table, post("cash as a number", cash("cash_amount", "500"), "cash_amount WRONG_TYPE"), post("cash limit without a price", cash("type", `"limit"`), "limit_price REQUIRED"),
		post("cash post_only", cash("type", `"limit"`, "limit_price", `"60000.0"`, "post_only", "true"), "post_only NOT_ALLOWED"))
}

func badStops() (table []bad) {
	prices := map[string][]string{"stop_loss": {"trigger_price"}, "take_profit": {"trigger_price"}, "stop_loss_limit": {"trigger_price", "limit_price"},
		"take_profit_limit": {"trigger_price", "limit_price"}, "take_profit_stop_loss": {"stop_loss_price", "take_profit_price"}}
	for kind, needed := range prices {
		whole := []string{"type", `"` + kind + `"`, "limit_price", ""}
		for _, p := range needed {
			whole = append(whole, p, `"61000.0"`)
		}
		with := func(pairs ...string) string { return entry(slices.Concat(whole, pairs)...) }
		for _, p := range needed {
			table = append(table, post(kind+" without "+p, with(p, ""), p+" REQUIRED"), post(kind+" with a bad "+p, with(p, `"1e5"`), p+" INVALID_DECIMAL"))
		}
		wrong := "mark_price"
		if kind == "take_profit_stop_loss" {
			wrong = "trade_price"
		}
		table = append(table,
			post(kind+" by "+wrong, with("trigger_price_type", `"`+wrong+`"`), "trigger_price_type INVALID_VALUE"),
			post(kind+" without amount", with("amount", ""), "amount REQUIRED"),
			post(kind+" in cash", with("amount", "", "cash_amount", `"500"`), "amount REQUIRED", "cash_amount NOT_ALLOWED"),
			post(kind+" in both", with("cash_amount", `"500"`), "cash_amount NOT_ALLOWED"),
			post(kind+" with stop_price", with("stop_price", `"61000.0"`), "stop_price UNKNOWN_FIELD"))
	}
	return table
}
