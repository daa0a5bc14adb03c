package e2e

import (
	"net/http"
	"strings"
)

func badChanges(order string) []bad {
	patch := func(name, body string, faults ...string) bad {
		return bad{name: name, user: "broker-a", method: http.MethodPatch, path: order, body: body, status: 400, code: "VALIDATION_FAILED", faults: faults}
	}
	table := []bad{
		patch("nothing", `{}`, " REQUIRED"), patch("nulls", `{"amount":null}`, " REQUIRED"), patch("a status", `{"status":"filled"}`), patch("stop_price", `{"amount":"0.020","stop_price":"1"}`, "stop_price UNKNOWN_FIELD"),
		patch("a number", `{"amount":0.02}`, "amount WRONG_TYPE"), patch("an exponent", `{"limit_price":"6e4"}`, "limit_price INVALID_DECIMAL"), patch("zero", `{"amount":"0"}`, "amount OUT_OF_RANGE"),
		patch("twice", `{"amount":"0.020","amount":"0.030"}`, "amount DUPLICATE_FIELD"), patch("trailing", `{"amount":"0.020"}]`, " TRAILING_DATA"), patch("leverage", `{"amount":"0.020","leverage":3}`, "leverage UNKNOWN_FIELD"),
		{name: "between steps", user: "broker-a", method: http.MethodPatch, path: order, body: `{"amount":"0.0205"}`, status: 400},
		{name: "between ticks", user: "broker-a", method: http.MethodPatch, path: order, body: `{"limit_price":"60000.01"}`, status: 400},
		{name: "a time on GTC", user: "broker-a", method: http.MethodPatch, path: order, body: `{"expire_time":"2100-01-01T00:00:00.000000Z"}`, status: 400},
		{name: "a trigger on limit", user: "broker-a", method: http.MethodPatch, path: order, body: `{"trigger_price":"60000.0"}`, status: 400},
		{name: "too much margin", user: "broker-a", method: http.MethodPatch, path: order, body: `{"amount":"900"}`, status: 422, code: "INSUFFICIENT_MARGIN"},
		{name: "out of band", user: "broker-a", method: http.MethodPatch, path: order, body: `{"limit_price":"90000.0"}`, status: 422, code: "PRICE_OUT_OF_BAND"},
		{name: "an unknown order", user: "broker-a", method: http.MethodPatch, path: bensOrders + "/00000000-0000-8000-8000-000000000000", body: `{"amount":"1"}`, status: 404, code: "UNKNOWN_ORDER"},
		{name: "no code", user: "broker-a", method: http.MethodPatch, path: bensOrders + "/none", body: `{"amount":"1"}`, status: 404, code: "UNKNOWN_ORDER"},
		{name: "BEN's order as ANNA's", user: "broker-a", method: http.MethodDelete, path: strings.Replace(order, "BEN", "ANNA", 1), status: 404, code: "UNKNOWN_ORDER"},
		{name: "another broker", user: "broker-b", method: http.MethodDelete, path: order, status: 404, code: "UNKNOWN_CUSTOMER"},
		{name: "a cancel with content", user: "broker-a", method: http.MethodDelete, path: order, body: `{"force":true}`, status: 400, code: "VALIDATION_FAILED"},
		{name: "a cancel with a query", user: "broker-a", method: http.MethodDelete, path: order + "?force=true", status: 400, code: "VALIDATION_FAILED"},
		{name: "a mass cancel with an unknown parameter", user: "broker-a", method: http.MethodDelete, path: bensOrders + "?symbols=BTCUSDC_PERP", status: 400, code: "VALIDATION_FAILED"},
		{name: "a mass cancel of two symbols", user: "broker-a", method: http.MethodDelete, path: bensOrders + "?symbol=BTCUSDC_PERP&symbol=ETHUSDC_PERP", status: 400, code: "VALIDATION_FAILED"},
		{name: "an entry with a query", user: "broker-a", method: http.MethodPost, path: bensOrders + "?dry_run=true", body: entry(), status: 400, code: "VALIDATION_FAILED"},
	}
	for _, body := range []string{`{}`, `{"timeout_seconds":-1}`, `{"timeout_seconds":"5"}`, `{"timeout_seconds":1.5}`, `{"timeout_seconds":1e1}`, `{"timeout_seconds":86401}`, `{"timeout_seconds":null}`,
		`{"timeout_seconds":5,"timeout_seconds":0}`, `{"timeout_seconds":99999999999999999999}`, `{"timeout_seconds":5,"symbol":"BTCUSDC_PERP"}`} {
		table = append(table, bad{name: "cancel-all-after " + body, user: "broker-a", method: http.MethodPost, path: "/v1/customers/BEN/cancel-all-after", body: body, status: 400, code: "VALIDATION_FAILED"})
	}
	return table
}

func badMoney() (table []bad) {
	const fees = "/v1/customers/BEN/fee-profile/BTCUSDC_PERP"
	for _, body := range []string{`{}`, `{"maker_fee":"1"}`, `{"maker_fee":2,"taker_fee":5}`, `{"maker_fee":"-1","taker_fee":"5"}`, `{"maker_fee":"2","taker_fee":"100.1"}`, `{"maker_fee":"2","taker_fee":"1.00001"}`,
		`{"maker_fee":"2","taker_fee":"5","symbol":"BTCUSDC_PERP"}`, `{"maker_fee":"1e1","taker_fee":"5"}`, `{"maker_fee":null,"taker_fee":"5"}`} {
		table = append(table, bad{name: "fees " + body, user: "broker-a", method: http.MethodPut, path: fees, body: body, status: 400})
	}
	table = append(table, bad{name: "fees of an unknown symbol", user: "broker-a", method: http.MethodPut, path: strings.Replace(fees, "BTC", "XRP", 1), body: `{"maker_fee":"1","taker_fee":"2"}`, status: 404},
		bad{name: "a rebate by a broker", user: "broker-a", method: http.MethodPut, path: "/admin" + fees, body: `{"maker_fee":"-1","taker_fee":"2"}`, status: 403, code: "FORBIDDEN"})
	for _, way := range []string{"deposits", "withdrawals"} {
		path := "/admin/v1/customers/BEN/" + way
		for _, body := range []string{`{}`, `{"currency":"EUR","amount":"1","reference_id":"r"}`, `{"currency":"usdc","amount":"1","reference_id":"r"}`, `{"currency":"USDC","amount":"0","reference_id":"r"}`,
			`{"currency":"USDC","amount":"-1","reference_id":"r"}`, `{"currency":"USDC","amount":1,"reference_id":"r"}`, `{"currency":"USDC","amount":"1e2","reference_id":"r"}`,
			`{"currency":"USDC","amount":"1.000000001","reference_id":"r"}`, `{"currency":"USDC","amount":"92233720368.54775808","reference_id":"r"}`, `{"currency":"USDC","amount":"999999999999999999","reference_id":"r"}`,
			`{"currency":"USDC","amount":"1"}`, `{"currency":"USDC","amount":"1","reference_id":""}`, `{"currency":"USDC","amount":"1","reference_id":"a\u0000"}`, `{"currency":"USDC","amount":"1","reference_id":"r","customer_code":"ANNA"}`} {
			table = append(table, bad{name: way + " " + body, user: "operator", method: http.MethodPost, path: path, body: body, status: 400, code: "VALIDATION_FAILED"})
		}
		table = append(table, bad{name: way + " of nobody", user: "operator", method: http.MethodPost, path: "/admin/v1/customers/NOBODY/" + way, body: `{"currency":"USDC","amount":"1","reference_id":"r"}`, status: 404, code: "UNKNOWN_CUSTOMER"},
			bad{name: way + " by a broker", user: "broker-a", method: http.MethodPost, path: path, body: `{"currency":"USDC","amount":"1","reference_id":"r"}`, status: 403, code: "FORBIDDEN"},
			bad{name: way + " by an auditor", user: "auditor", method: http.MethodPost, path: path, body: `{"currency":"USDC","amount":"1","reference_id":"r"}`, status: 403, code: "FORBIDDEN"})
	}
	return append(table,
		bad{name: "a deposit that is too large to count", user: "operator", method: http.MethodPost, path: "/admin/v1/customers/BEN/deposits", body: `{"currency":"USDC","amount":"40000000000.00000001","reference_id":"r"}`, status: 400},
		bad{name: "a reference used for another deposit", user: "operator", method: http.MethodPost, path: "/admin/v1/customers/BEN/deposits", body: `{"currency":"USDC","amount":"5","reference_id":"first"}`, status: 409},
		bad{name: "a withdrawal above the balance", user: "operator", method: http.MethodPost, path: "/admin/v1/customers/BEN/withdrawals", body: `{"currency":"USDC","amount":"900000","reference_id":"r"}`, status: 422},
		bad{name: "no withdrawal to complete", user: "operator", method: http.MethodPost, path: "/admin/v1/withdrawals/00000000-0000-8000-8000-000000000000/complete", status: 404, code: "UNKNOWN_WITHDRAWAL"},
		bad{name: "no code to cancel", user: "operator", method: http.MethodPost, path: "/admin/v1/withdrawals/x/cancel", status: 404, code: "UNKNOWN_WITHDRAWAL"})
}

func badOperator() (table []bad) {
	op := func(status int, method, path string, bodies ...string) {
		for _, body := range bodies {
			table = append(table, bad{name: path + " " + body, user: "operator", method: method, path: path, body: body, status: status})
		}
	}
	op(400, http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", `{}`, `{"price":65000}`, `{"price":"0"}`, `{"price":"-1"}`, `{"price":"6.5e4"}`, `{"price":"65000.123456789012345678"}`, `{"price":"65000","mark":"65000"}`, `{"price":null}`)
	op(404, http.MethodPost, "/admin/v1/index-prices/XRPUSDC_PERP", `{"price":"1"}`)
	op(404, http.MethodPost, "/admin/v1/index-prices/btcusdc_perp", `{"price":"1"}`)
	op(400, http.MethodPost, "/admin/v1/brokers", `{}`, `{"broker":"a b","name":"x"}`, `{"broker":"gamma"}`, `{"broker":"gamma","name":""}`, `{"broker":"gamma","name":"a\u0007"}`, `{"broker":"gamma","name":"x","id":1}`)
	op(409, http.MethodPost, "/admin/v1/brokers", `{"broker":"alpha","name":"Again"}`)
	const user = `{"username":"new","password":"long enough","broker":"alpha","scopes":["read"],"is_active":true,"is_verified":true`
	op(400, http.MethodPost, "/admin/v1/users", `{}`, strings.Replace(user, "long enough", "short", 1)+"}", strings.Replace(user, `["read"]`, `[]`, 1)+"}", strings.Replace(user, `["read"]`, `["root"]`, 1)+"}",
		strings.Replace(user, `["read"]`, `["read","read"]`, 1)+"}", strings.Replace(user, `["read"]`, `"read"`, 1)+"}", strings.Replace(user, `"new"`, `"n w"`, 1)+"}", user+`,"rate_limit":{"per_second":0,"burst":1}}`, user+`,"rate_limit":{"per_second":1}}`,
		user+`,"rate_limit":{"per_second":1,"burst":1,"x":1}}`, user+`,"admin":true}`, strings.Replace(user, "true", `"true"`, 1)+"}", user+`,"scopes":["operator"]}`)
	op(422, http.MethodPost, "/admin/v1/users", user+`,"customer_code":"CARL"}`, user+`,"customer_code":"NOBODY"}`)
	op(409, http.MethodPost, "/admin/v1/users", strings.Replace(user, `"new"`, `"broker-a"`, 1)+"}")
	op(400, http.MethodPatch, "/admin/v1/users/anna", `{}`, `{"is_active":1}`, `{"broker":"beta"}`, `{"scopes":[]}`, `{"password":"short"}`, `{"username":"x"}`)
	op(404, http.MethodPatch, "/admin/v1/users/nobody", `{"is_active":false}`)
	const instrument = `{"symbol":"XRPUSDC_PERP","underlying":"XRP","price_tick":"0.0001","amount_step":"1","max_amount":"1000000","init_margin_req":"10","maint_margin_req":"5"`
	op(400, http.MethodPost, "/admin/v1/instruments", `{}`, strings.Replace(instrument, "0.0001", "0", 1)+"}", strings.Replace(instrument, `"0.0001"`, "0.0001", 1)+"}", strings.Replace(instrument, "0.0001", "0.0000000001", 1)+"}",
		instrument+`,"contract_size":"0.000001"}`, instrument+`,"max_leverage":"13"}`, instrument+`,"type":"Future"}`, instrument+`,"expiry":"2100-01-01T00:00:00.000000Z"}`, instrument+`,"status":"settled"}`, instrument+`,"status":"withdrawn"}`,
		instrument+`,"settlement_currency":"EUR"}`, strings.Replace(instrument, "XRPUSDC_PERP", "xrp perp", 1)+"}", strings.Replace(instrument, `"5"`, `"50"`, 1)+"}")
	op(409, http.MethodPost, "/admin/v1/instruments", strings.Replace(instrument, "XRPUSDC_PERP", "BTCUSDC_PERP", 1)+"}")
	op(400, http.MethodPatch, "/admin/v1/instruments/BTCUSDC_PERP", `{}`, `{"price_tick":"1"}`, `{"status":"settled"}`, `{"status":"withdrawn"}`, `{"max_leverage":0}`, `{"maint_margin_req":"50"}`)
	op(404, http.MethodPatch, "/admin/v1/instruments/XRPUSDC_PERP", `{"status":"open"}`)
	op(400, http.MethodPut, "/admin/v1/customers/BEN/margin-profile", `{}`, `{"leverage":10,"initial_margin":"10","maintenance_margin":"5"}`, `{"initial_margin":"10"}`, `{"initial_margin":"10.00001","maintenance_margin":"5"}`,
		`{"initial_margin":"5","maintenance_margin":"10"}`, `{"leverage":0}`, `{"leverage":"1.5"}`, `{"initial_margin":"101","maintenance_margin":"5"}`)
	op(400, http.MethodPut, "/admin/v1/customers/BEN/fee-profile/BTCUSDC_PERP", `{"maker_fee":"-101","taker_fee":"5"}`, `{"maker_fee":"2","taker_fee":"-1"}`)
	// An instrument with open positions cannot be withdrawn.
	table = append(table, bad{name: "withdraw BTCUSDC_PERP", user: "operator", method: http.MethodDelete, path: "/admin/v1/instruments/BTCUSDC_PERP", status: 409})
	for _, body := range []string{`{"customer_code":"a b"}`, `{"customer_code":""}`, `{"customer_code":"` + strings.Repeat("A", 33) + `"}`, `{"customer_code":1}`, `{"name":"` + strings.Repeat("x", 65) + `"}`, `{"name":"a\u0001b"}`,
		`{"name":"\ud83d"}`, `{"broker":"beta"}`, `{"customer_code":"É"}`} {
		table = append(table, bad{name: "customers " + body, user: "broker-a", method: http.MethodPost, path: "/v1/customers", body: body, status: 400, code: "VALIDATION_FAILED"})
	}
	return append(table, bad{name: "a taken code", user: "broker-a", method: http.MethodPost, path: "/v1/customers", body: `{"customer_code":"ANNA"}`, status: 409, code: "CUSTOMER_CODE_TAKEN"},
		bad{name: "another broker's code", user: "broker-a", method: http.MethodPost, path: "/v1/customers", body: `{"customer_code":"CARL"}`, status: 409, code: "CUSTOMER_CODE_TAKEN"})
}

func badQueries() (table []bad) {
	get := func(status int, user, path string, queries ...string) {
		for _, q := range queries {
			table = append(table, bad{name: path + "?" + q, user: user, method: http.MethodGet, path: path + "?" + q, status: status})
		}
	}
	get(400, "", "/v1/instruments", "type=Future", "foo=1", "status=settled", "status=", "status=open|closed", "symbol=a&symbol=b", "Symbol=BTC", "symbol=%00", "symbol=%ff", "symbol=%zz", "symbol=a%0ab", "limit=1")
	get(400, "", "/v1/tickers", "status=open", "type=x", "symbol=", "x")
	get(400, "", "/v1/time", "x=1")
	get(400, "", "/v1/orderbook/BTCUSDC_PERP", "depth=0", "depth=1001", "depth=x", "depth=", "depth=1.5", "depth=%2B1", "depth=01", "depth=10&depth=20", "levels=5")
	get(404, "", "/v1/orderbook/XRPUSDC_PERP", "depth=1")
	get(404, "", "/v1/orderbook/btcusdc_perp", "depth=1")
	paging := []string{"page_size=0", "page_size=1001", "page_size=-1", "page_size=x", "page_size=", "page_size=1e2", "page_size=99999999999999999999", "sort=up", "sort=ASC", "after=x", "after=MTp4", "after=MTo=", "after=MTo", "before=%00",
		"after=MToxLjE&before=MToxLjE", "page=1", "after=MToxLjE&after=MToxLjE", "after=" + strings.Repeat("M", 4000)}
	get(400, "broker-a", "/v1/customers/BEN/orders/history", append(paging, "status=canceled_partially_filled", "status=OPEN", "symbol=a%20b")...)
	get(400, "broker-a", "/v1/customers/BEN/trades", append(paging, "order_code=x", "from=yesterday")...)
	get(400, "broker-a", "/v1/customers/BEN/transactions", append(paging, "type=funding_payment", "type=realised_pnl", "type=adjustment", "from=1969-12-31T23:59:59.999999Z")...)
	get(400, "broker-a", "/v1/customers", paging...)
	const from, to = "from=2020-01-01T00:00:00.000000Z", "to=2100-01-01T00:00:00.000000Z"
	for _, path := range []string{"/v1/customers/BEN/trades/history", "/v1/market-trades/history"} {
		get(400, "broker-a", path, "x=1", from, to, "from=x&"+to, from+"&to=2019-01-01T00:00:00.000000Z", from+"&"+to+"&sort=x", from+"&"+to+"&before=x", "from=2020-01-01&"+to)
	}
	get(400, "broker-a", "/v1/orders", "status=filled", "x=1", "customer_code=a%20b", "customer_code=", "customer_code=BEN&customer_code=ANNA", "page_size=10")
	get(404, "broker-a", "/orders", "customer_code=CARL", "customer_code=NOBODY")
	get(400, "broker-a", "/v1/customers/BEN/orders", "status=filled", "status=canceled", "x=1")
	for _, path := range []string{"positions", "account-summary", "margin-profile", "fee-profile"} {
		get(400, "broker-a", "/v1/customers/BEN/"+path, "x=1")
		get(404, "broker-a", "/v1/customers/CARL/"+path, "")
	}
	get(400, "operator", "/admin/v1/users", "page=0", "page=x", "size=0", "size=101", "size=-1", "sort=asc", "page=99999999999999999999")
	get(400, "operator", "/admin/v1/journals", "x=1")
	return table
}
