package trading_test

import (
	"slices"
	"strings"
	"testing"
)

// TestOrderFaults lists, for each bad order entry, every fault that must be named. Nothing of it may reach the log.
func TestOrderFaults(t *testing.T) {
	v := funded(t)
	const limit = `"symbol":"BTCUSDC_PERP","action":"buy","type":"limit"`
	for _, tt := range []struct{ name, body, faults string }{
		{"nothing", `{}`, "symbol REQUIRED, action REQUIRED, type REQUIRED"},
		{"null", `{"symbol":null,"action":null,"type":null}`, "symbol NULL_NOT_ALLOWED, action NULL_NOT_ALLOWED, type NULL_NOT_ALLOWED"},
		{"not an object", `[]`, "WRONG_TYPE"},
		{"not JSON", `{"symbol"`, "MALFORMED_JSON"},
		{"nothing at all", ` `, "MALFORMED_JSON"},
		{"trailing data", `{` + limit + `,"amount":"1","limit_price":"1"} {}`, "TRAILING_DATA"},
		{"a duplicate name", `{` + limit + `,"amount":"1","amount":"2","limit_price":"1"}`, "amount DUPLICATE_FIELD"},
		{"unknown fields", `{` + limit + `,"amount":"1","limit_price":"1","stop_price":"1","x":2}`, "stop_price UNKNOWN_FIELD, x UNKNOWN_FIELD"},
		{"wrong words", `{"symbol":"BTCUSDC_PERP","action":"BUY","type":"Limit","time_in_force":"gtc"}`, "action INVALID_VALUE, type INVALID_VALUE, time_in_force INVALID_VALUE"},
		{"entry types that are not", `{"symbol":"B","action":"buy","type":"stop_market"}`, "type INVALID_VALUE"},
		{"entry types that are not, limited", `{"symbol":"B","action":"buy","type":"stop_limit"}`, "type INVALID_VALUE"},
		{"wrong types", `{"symbol":1,"action":true,"type":[],"amount":1,"post_only":"true","leverage":{},"reference_id":7}`,
			"symbol WRONG_TYPE, action WRONG_TYPE, type WRONG_TYPE, amount WRONG_TYPE, post_only WRONG_TYPE, leverage WRONG_TYPE, reference_id WRONG_TYPE"},
		{"an exponent", `{` + limit + `,"amount":"1e3","limit_price":"6.5E4"}`, "amount INVALID_DECIMAL, limit_price INVALID_DECIMAL"},
		{"odd decimals", `{` + limit + `,"amount":"+1","limit_price":"01"}`, "amount INVALID_DECIMAL, limit_price INVALID_DECIMAL"},
		{"bare points", `{` + limit + `,"amount":".5","limit_price":"5."}`, "amount INVALID_DECIMAL, limit_price INVALID_DECIMAL"},
		{"not positive", `{` + limit + `,"amount":"0.000","limit_price":"-1"}`, "amount OUT_OF_RANGE, limit_price OUT_OF_RANGE"},
		{"too many digits", `{` + limit + `,"amount":"1234567890123456789","limit_price":"0.1234567890123456789"}`, "amount TOO_MANY_DIGITS, limit_price TOO_MANY_DIGITS"},
		{"a control character", `{"symbol":"BTC\u0000","action":"buy","type":"market","amount":"1"}`, "symbol CONTROL_CHARACTER"},
		{"a lone surrogate", `{` + limit + `,"amount":"1","limit_price":"1","reference_id":"\ud800"}`, "reference_id LONE_SURROGATE"},
		{"invalid UTF-8", "{" + limit + ",\"amount\":\"1\",\"limit_price\":\"1\",\"reference_id\":\"\xff\"}", "reference_id INVALID_UTF8"},
		{"a bad reference", `{` + limit + `,"amount":"1","limit_price":"1","reference_id":"a b"}`, "reference_id INVALID_VALUE"},
		{"a long reference", `{` + limit + `,"amount":"1","limit_price":"1","reference_id":"` + strings.Repeat("x", 65) + `"}`, "reference_id INVALID_VALUE"},

		{"market without a size", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market"}`, "amount REQUIRED"},
		{"both sizes", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1","cash_amount":"1"}`, "cash_amount NOT_ALLOWED"},
		{"market with a price", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1","limit_price":"1","trigger_price":"1"}`, "limit_price NOT_ALLOWED, trigger_price NOT_ALLOWED"},
		{"market GTC", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1","time_in_force":"GTC"}`, "time_in_force NOT_ALLOWED"},
		{"market GTD", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1","time_in_force":"GTD","expire_time":"2026-12-31T00:00:00.000000Z"}`, "time_in_force NOT_ALLOWED"},
		{"market post_only", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1","post_only":true}`, "post_only NOT_ALLOWED"},
		{"limit without a price", `{` + limit + `,"amount":"1"}`, "limit_price REQUIRED"},
		{"limit with a trigger", `{` + limit + `,"amount":"1","limit_price":"1","trigger_price_type":"mark_price"}`, "trigger_price_type NOT_ALLOWED"},
		{"post_only IOC", `{` + limit + `,"amount":"1","limit_price":"1","time_in_force":"IOC","post_only":true}`, "post_only NOT_ALLOWED"},
		{"GTD without a time", `{` + limit + `,"amount":"1","limit_price":"1","time_in_force":"GTD"}`, "expire_time REQUIRED"},
		{"a time without GTD", `{` + limit + `,"amount":"1","limit_price":"1","expire_time":"2026-12-31T00:00:00.000000Z"}`, "expire_time NOT_ALLOWED"},
		{"a time finer than a microsecond", `{` + limit + `,"amount":"1","limit_price":"1","time_in_force":"GTD","expire_time":"2026-12-31T00:00:00.0000001Z"}`, "expire_time TOO_MANY_DIGITS"},
		{"another century", `{` + limit + `,"amount":"1","limit_price":"1","time_in_force":"GTD","expire_time":"1999-12-31T00:00:00.000000Z"}`, "expire_time OUT_OF_RANGE"},

		{"cash GTC", `{` + limit + `,"cash_amount":"1","limit_price":"1","time_in_force":"GTC"}`, "time_in_force NOT_ALLOWED"},
		{"cash FOK", `{` + limit + `,"cash_amount":"1","limit_price":"1","time_in_force":"FOK"}`, "time_in_force NOT_ALLOWED"},
		{"cash zero", `{` + limit + `,"cash_amount":"0","limit_price":"1"}`, "cash_amount OUT_OF_RANGE"},
		{"cash a number", `{` + limit + `,"cash_amount":5,"limit_price":"1"}`, "cash_amount WRONG_TYPE"},
		{"cash too fine", `{` + limit + `,"cash_amount":"0.000000001","limit_price":"1"}`, "cash_amount TOO_MANY_DIGITS"},
		{"cash stop", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"stop_loss","cash_amount":"1","trigger_price":"1"}`, "cash_amount NOT_ALLOWED, amount REQUIRED"},

		{"leverage 0", `{` + limit + `,"amount":"1","limit_price":"1","leverage":0}`, "leverage INVALID_VALUE"},
		{"leverage 14", `{` + limit + `,"amount":"1","limit_price":"1","leverage":14}`, "leverage OUT_OF_RANGE"},
		{"leverage 1.5", `{` + limit + `,"amount":"1","limit_price":"1","leverage":1.5}`, "leverage INVALID_VALUE"},
		{"leverage 01", `{` + limit + `,"amount":"1","limit_price":"1","leverage":"01"}`, "leverage INVALID_VALUE"},
		{"leverage +3", `{` + limit + `,"amount":"1","limit_price":"1","leverage":"+3"}`, "leverage INVALID_VALUE"},
		{"leverage 1e1", `{` + limit + `,"amount":"1","limit_price":"1","leverage":1e1}`, "leverage INVALID_VALUE"},

		{"stop without prices", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"stop_loss_limit","amount":"1"}`, "limit_price REQUIRED, trigger_price REQUIRED"},
		{"stop by mark", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"stop_loss","amount":"1","trigger_price":"1","trigger_price_type":"mark_price"}`, "trigger_price_type INVALID_VALUE"},
		{"take profit with a limit", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"take_profit","amount":"1","trigger_price":"1","limit_price":"1"}`, "limit_price NOT_ALLOWED"},
		{"take profit limit", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"take_profit_limit","amount":"1","stop_loss_price":"1"}`, "limit_price REQUIRED, trigger_price REQUIRED, stop_loss_price NOT_ALLOWED"},
		{"combo without legs", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"take_profit_stop_loss","amount":"1","trigger_price":"1"}`, "trigger_price NOT_ALLOWED, stop_loss_price REQUIRED, take_profit_price REQUIRED"},
		{"combo by trade", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"take_profit_stop_loss","amount":"1","stop_loss_price":"1","take_profit_price":"2","trigger_price_type":"trade_price"}`, "trigger_price_type INVALID_VALUE"},

		{"an unknown symbol", `{"symbol":"DOGEUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"1"}`, "symbol UNKNOWN_SYMBOL"},
		{"off the grid", `{` + limit + `,"amount":"1.0005","limit_price":"1.05","time_in_force":"GTD","expire_time":"2026-03-31T07:00:00.000000Z"}`,
			"amount INVALID_AMOUNT_STEP, limit_price INVALID_PRICE_TICK, expire_time INVALID_EXPIRE_TIME"},
		{"too large", `{` + limit + `,"amount":"1000.001","limit_price":"1"}`, "amount AMOUNT_ABOVE_MAXIMUM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := v.Trading.Tip()
			got := v.Send("broker-a", "POST", a1+"/orders", tt.body).Want(400).Faults()
			if want := strings.Split(tt.faults, ", "); !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("faults %v, want %v", got, want)
			}
			if v.Trading.Tip() != before {
				t.Error("a record was written")
			}
		})
	}
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// TestStops are entered, shown as they were submitted, listed among the open orders, amended, and fire; what their prices
// must not be is refused.
func TestStops(t *testing.T) {
	v := funded(t)
	trade := func(price string) {
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", price)).Want(201)
		v.Send("broker-a", "POST", "/v1/customers/A-2/orders", entry("buy", "0.1", price)).Want(201)
	}
	trade("65000")
	stops := []struct{ kind, rest, tif string }{
		{"stop_loss", `"trigger_price":"64000"`, "IOC"},
		{"stop_loss_limit", `"trigger_price":"64000","limit_price":"63900","trigger_price_type":"trade_price"`, "GTC"},
		{"take_profit", `"trigger_price":"66000","time_in_force":"FOK"`, "FOK"},
		{"take_profit_limit", `"trigger_price":"66000","limit_price":"66000"`, "GTC"},
		{"take_profit_stop_loss", `"stop_loss_price":"64000","take_profit_price":"66000","trigger_price_type":"mark_price"`, "IOC"},
	}
	body := func(kind, rest string) string {
		return `{"symbol":"BTCUSDC_PERP","action":"sell","type":"` + kind + `","amount":"1",` + rest + `}`
	}
	var codes []string
	for _, stop := range stops {
		r := v.Send("broker-a", "POST", a1+"/orders", body(stop.kind, stop.rest)).Want(201)
		want(t, r, "type", stop.kind, "status", "open", "time_in_force", stop.tif, "filled_amount", "0.000", "reason", "")
		if watches := map[bool]string{false: "trade_price", true: "mark_price"}[stop.kind == "take_profit_stop_loss"]; r.Text("trigger_price_type") != watches {
			t.Errorf("%s watches %s", stop.kind, r.Text("trigger_price_type"))
		}
		codes = append(codes, r.Text("code"))
		// The same that would fire at once is rejected, and kept.
		at := strings.NewReplacer(`"64000"`, `"65000"`, `"66000"`, `"65000"`).Replace(stop.rest)
		refused := v.Send("broker-a", "POST", a1+"/orders", body(stop.kind, at)).Code(422, "TRIGGER_WOULD_FIRE_IMMEDIATELY")
		if o, _ := refused.Fields()["order"].(map[string]any); o["status"] != "rejected" || o["type"] != stop.kind {
			t.Errorf("%s: %s", stop.kind, refused.Body)
		}
	}
	v.Send("broker-a", "POST", a1+"/orders", body("stop_market", `"trigger_price":"64000"`)).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "POST", a1+"/orders", body("stop_limit", `"trigger_price":"64000","limit_price":"64000"`)).Code(400, "VALIDATION_FAILED")

	open := v.Send("broker-a", "GET", a1+"/orders?status=open", "").Want(200).Body
	for _, code := range codes {
		if strings.Count(open, `"code":"`+code) != 1 {
			t.Errorf("%s is not once among %s", code, open)
		}
	}
	one := a1 + "/orders/"
	want(t, v.Send("broker-a", "PATCH", one+codes[0], `{"trigger_price":"63000"}`).Want(200), "trigger_price", "63000.0", "status", "open")
	want(t, v.Send("broker-a", "PATCH", one+codes[1], `{"limit_price":"63800","amount":"0.5"}`).Want(200), "limit_price", "63800.0", "amount", "0.500")
	want(t, v.Send("broker-a", "PATCH", one+codes[4], `{"stop_loss_price":"63500","take_profit_price":"66500"}`).Want(200),
		"stop_loss_price", "63500.0", "take_profit_price", "66500.0")
	v.Send("broker-a", "PATCH", one+codes[4], `{"stop_loss_price":"65000"}`).Code(422, "TRIGGER_WOULD_FIRE_IMMEDIATELY")
	v.Send("broker-a", "PATCH", one+codes[0], `{"limit_price":"63000"}`).Want(400)

	// A trade at 64,000: the stop that was moved to 63,000 waits on, the one with a limit rests, and its trigger is spent.
	trade("64000")
	want(t, v.Send("broker-a", "GET", one+codes[0], "").Want(200), "status", "open")
	want(t, v.Send("broker-a", "GET", one+codes[1], "").Want(200), "status", "open", "limit_price", "63800.0")
	v.Send("broker-a", "PATCH", one+codes[1], `{"trigger_price":"63000"}`).Code(409, "ORDER_NOT_AMENDABLE")
	want(t, v.Send("broker-a", "PATCH", one+codes[1], `{"limit_price":"63850"}`).Want(200), "limit_price", "63850.0")
	want(t, v.Send("broker-a", "DELETE", one+codes[2], "").Want(200), "status", "canceled", "reason", "user_request")
	want(t, v.Send("broker-a", "DELETE", a1+"/orders", "").Want(200), "canceled", "4")
}

// TestBodies are judged before anything else is.
func TestBodies(t *testing.T) {
	v := funded(t)
	before := v.Trading.Tip()
	body := `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"64000"}`
	v.Send("broker-a", "POST", a1+"/orders", body, "Content-Type", "text/plain").Code(415, "UNSUPPORTED_MEDIA_TYPE")
	v.Send("broker-a", "POST", a1+"/orders", `{"x":"`+strings.Repeat("x", 1<<20)+`"}`).Code(413, "BODY_TOO_LARGE")
	v.Send("broker-a", "POST", a1+"/orders?dry_run=1", body).Code(400, "VALIDATION_FAILED")
	for path, entry := range map[string]string{a1 + "/orders": `{"symbol":"B","action":"buy","type":"limit","amount":1,"limit_price":"1"}`,
		a1 + "/cancel-all-after": `{"timeout_seconds":"5"}`} { // what is wrong in several places is named in all of them
		got := v.Send("broker-a", "POST", path+"?dry_run=1", entry, "Idempotency-Key", "not good").Code(400, "VALIDATION_FAILED").Faults()
		if len(got) != 3 || !slices.Contains(got, "dry_run UNKNOWN_PARAMETER") || !slices.Contains(got, "Idempotency-Key INVALID_VALUE") {
			t.Errorf("%s: %v", path, got)
		}
	}
	v.Send("broker-a", "POST", a1+"/orders", body, "Idempotency-Key", "not good").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PATCH", a1+"/orders/not-a-code", `{"amount":"1"}`, "Idempotency-Key", "not good").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PATCH", a1+"/orders/not-a-code", `{"amount":"1"}`).Code(404, "UNKNOWN_ORDER")
	v.Send("broker-a", "DELETE", a1+"/orders", `{"symbol":"BTCUSDC_PERP"}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "DELETE", a1+"/orders?symbol=X&symbol=Y", "").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "POST", a1+"/cancel-all-after", `{"timeout_seconds":-1}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "POST", a1+"/cancel-all-after", `{"timeout_seconds":"5"}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PUT", a1+"/fee-profile/"+btc, `{"maker_fee":"-1","taker_fee":"101"}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "PUT", a1+"/fee-profile/"+btc, `{"maker_fee":"0.00001","taker_fee":1}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"a b","name":""}`).Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "GET", a1+"/orders?status=filled", "").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "GET", a1+"/orders/history?page_size=1001", "").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "GET", a1+"/orders/history?after=x", "").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "GET", a1+"/trades/history", "").Code(400, "VALIDATION_FAILED")
	v.Send("broker-a", "GET", a1+"/transactions?type=funding_payment", "").Code(400, "VALIDATION_FAILED")
	v.Send("", "GET", "/v1/orderbook/"+btc+"?depth=0", "").Code(400, "VALIDATION_FAILED")
	v.Send("", "GET", "/v1/tickers?symbol=%7C", "").Code(400, "VALIDATION_FAILED")
	v.Send("", "GET", "/v1/tickers", "", "X-Min-Log-Position", "7").Code(400, "VALIDATION_FAILED")
	v.Send("", "GET", "/v1/tickers", "", "X-Min-Log-Position", "onboarding/0@1").Code(412, "LOG_POSITION_NOT_REACHED")
	if v.Trading.Tip() != before {
		t.Error("a record was written")
	}
}
