package admin_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/projections/projectiontest"
)

func TestMain(m *testing.M) { os.Exit(projectiontest.Main(m)) }

const base = "/admin/v1"

func want(t *testing.T, r *tradingtest.Reply, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := r.Text(pairs[i]); got != pairs[i+1] {
			t.Errorf("%s is %q, want %q: %s", pairs[i], got, pairs[i+1], r.Body)
		}
	}
}

func TestBrokersAndUsers(t *testing.T) {
	v := tradingtest.New(t)
	want(t, v.Send("operator", "POST", base+"/brokers", `{"broker":"gamma","name":"Gamma"}`).Want(201), "broker", "gamma", "name", "Gamma")
	v.Send("operator", "POST", base+"/brokers", `{"broker":"gamma","name":"Gamma"}`).Code(409, "BROKER_TAKEN")
	list := v.Send("auditor", "GET", base+"/brokers?size=2", "").Want(200)
	want(t, list, "total", "4", "pages", "2", "page", "1", "size", "2")
	if first := strings.Index(list.Body, "gamma"); first < 0 || strings.Contains(list.Body, "alpha") {
		t.Errorf("newest first: %s", list.Body)
	}
	if past := v.Send("auditor", "GET", base+"/brokers?page=9", "").Want(200); !strings.Contains(past.Body, `"items":[]`) {
		t.Errorf("past the end: %s", past.Body)
	}

	user := `{"username":"desk","password":"a good password","broker":"gamma","scopes":["trade","read"],"rate_limit":{"per_second":5,"burst":10}}`
	made := v.Send("operator", "POST", base+"/users", user, "Idempotency-Key", "k").Want(201)
	want(t, made, "username", "desk", "broker", "gamma", "customer_code", "", "scopes", `["trade","read"]`, "is_active", "true", "is_verified", "true",
		"rate_limit", `{"burst":10,"per_second":5}`)
	again := v.Send("operator", "POST", base+"/users", user, "Idempotency-Key", "k").Want(201)
	if again.Body != made.Body || strings.Contains(made.Body, "password") {
		t.Errorf("again %s, first %s", again.Body, made.Body)
	}
	v.Send("operator", "POST", base+"/users", strings.Replace(user, "good", "bad", 1), "Idempotency-Key", "k").Code(409, "IDEMPOTENCY_KEY_REUSED")
	v.Send("operator", "POST", base+"/users", user).Code(409, "USERNAME_TAKEN")
	for _, e := range v.Identity.Entries() {
		if strings.Contains(string(e.Value), "a good password") {
			t.Errorf("the log holds a password: %s", e.Value)
		}
	}

	want(t, v.Send("operator", "PATCH", base+"/users/desk", `{"is_active":false,"rate_limit":null,"scopes":["read"]}`).Want(200),
		"is_active", "false", "rate_limit", "", "scopes", `["read"]`)
	v.Send("operator", "PATCH", base+"/users/desk", `{"password":"another password"}`).Want(200)
	entries := v.Identity.Entries()
	changed := entries[len(entries)-1].Record.Events[0].(*identity.UserChanged)
	if string(changed.PasswordHash) != "sealed another password" {
		t.Errorf("the hash is %s", changed.PasswordHash)
	}
	v.Send("operator", "PATCH", base+"/users/nobody", `{"is_active":false}`).Code(404, "USER_NOT_FOUND")

	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("operator", "PATCH", base+"/users/desk", `{"customer_code":"A-1"}`).Code(422, "UNKNOWN_CUSTOMER")
	want(t, v.Send("operator", "POST", base+"/users", `{"username":"one","password":"12345678","broker":"alpha","customer_code":"A-1","scopes":["read"]}`).Want(201), "customer_code", "A-1")
	want(t, v.Send("operator", "PATCH", base+"/users/one", `{"customer_code":null}`).Want(200), "customer_code", "")
	v.Send("operator", "POST", base+"/users", `{"username":"two","password":"12345678","broker":"nope","scopes":["read"]}`).Code(422, "BROKER_UNKNOWN")
	if users := v.Send("auditor", "GET", base+"/users", "").Want(200); strings.Contains(users.Body, "password") || !strings.Contains(users.Body, `"desk"`) {
		t.Errorf("users: %s", users.Body)
	}
}

func TestInstruments(t *testing.T) {
	v := tradingtest.New(t)
	least := `{"symbol":"XRPUSDC_PERP","underlying":"XRP","price_tick":"0.0001","amount_step":"1","max_amount":"1000000","init_margin_req":"10","maint_margin_req":"5"}`
	made := v.Send("operator", "POST", base+"/instruments", least).Want(201)
	want(t, made, "status", "open", "quote_currency", "USDC", "min_amount", "1", "contract_size", "1", "init_margin_req", "10.00", "max_leverage", "10",
		"funding_interval_seconds", "3600", "price_band", "5.00", "limit_band", "20.00", "maker_fee", "2", "taker_fee", "5", "index_stale_seconds", "0",
		"margin_tiers", `[{"init_margin_req":"10.00","maint_margin_req":"5.00","max_leverage":10,"notional_from":"0"}]`)
	v.Send("operator", "POST", base+"/instruments", least).Code(409, "SYMBOL_TAKEN")
	want(t, v.Send("operator", "PATCH", base+"/instruments/XRPUSDC_PERP", `{"status":"trade_halt","price_band":"7.5","margin_tiers":[{"init_margin_req":"10","maint_margin_req":"5"},{"notional_from":"100000","init_margin_req":"20","maint_margin_req":"10","max_leverage":4}]}`).Want(200),
		"status", "trade_halt", "price_band", "7.50",
		"margin_tiers", `[{"init_margin_req":"10.00","maint_margin_req":"5.00","max_leverage":10,"notional_from":"0"},{"init_margin_req":"20.00","maint_margin_req":"10.00","max_leverage":4,"notional_from":"100000"}]`)
	v.Send("operator", "PATCH", base+"/instruments/NOPE", `{"status":"open"}`).Code(404, "UNKNOWN_SYMBOL")
	v.Send("operator", "GET", base+"/instruments/NOPE", "").Code(404, "UNKNOWN_SYMBOL")
	v.Send("broker-a", "GET", base+"/instruments/XRPUSDC_PERP", "").Code(403, "FORBIDDEN")
	// What is read may be sent back, changed or not: a tier that is shown rounded stays what it is.
	v.Send("operator", "PATCH", base+"/instruments/XRPUSDC_PERP", `{"margin_tiers":[{"init_margin_req":"10","maint_margin_req":"5"},{"notional_from":"100000","init_margin_req":"20.1234","maint_margin_req":"10"}]}`).Want(200)
	read := v.Send("auditor", "GET", base+"/instruments/XRPUSDC_PERP", "").Want(200)
	if back := v.Send("operator", "PATCH", base+"/instruments/XRPUSDC_PERP", read.Body).Want(200); back.Body != read.Body {
		t.Errorf("sent back it is %s, read as %s", back.Body, read.Body)
	}
	entries := v.Trading.Entries()
	if tier := entries[len(entries)-1].Record.Events[0].(*venue.InstrumentChanged).Tiers[1]; tier.InitMarginReq.String() != "20.1234" {
		t.Errorf("the second tier has become %+v", tier)
	}
	for _, field := range []string{"symbol", "underlying", "base_currency", "quote_currency", "settlement_currency", "price_tick", "amount_step", "contract_size", "created"} {
		other := map[string]string{"price_tick": "0.0002", "amount_step": "2", "contract_size": "2", "created": "2025-01-01T00:00:00.000000Z"}[field]
		if other == "" {
			other = "OTHER"
		}
		reply := v.Send("operator", "PATCH", base+"/instruments/XRPUSDC_PERP", `{"max_amount":"5","`+field+`":"`+other+`"}`).Code(400, "VALIDATION_FAILED")
		if got := reply.Faults(); len(got) != 1 || got[0] != field+" NOT_ALLOWED" {
			t.Errorf("%s: %q", field, got)
		}
	}
	v.Send("operator", "POST", base+"/instruments", strings.ReplaceAll(read.Body, "XRP", "ABC")).Want(201)
	v.Send("operator", "POST", base+"/instruments", strings.Replace(strings.ReplaceAll(read.Body, "XRPUSDC", "XR3USDC"), `"base_currency":"XRP"`, `"base_currency":"X"`, 1)).Code(400, "VALIDATION_FAILED")
	if list := v.Send("auditor", "GET", base+"/instruments", "").Want(200); strings.Index(list.Body, "XRP") > strings.Index(list.Body, "BTC") {
		t.Errorf("newest first: %s", list.Body)
	}
	want(t, v.Send("operator", "DELETE", base+"/instruments/XRPUSDC_PERP", "").Want(200), "symbol", "XRPUSDC_PERP", "status", "withdrawn", "canceled", "0")
	v.Send("operator", "DELETE", base+"/instruments/XRPUSDC_PERP", "").Code(409, "INSTRUMENT_WITHDRAWN")
	if list := v.Send("", "GET", "/v1/instruments", "").Want(200); strings.Contains(list.Body, "XRP") {
		t.Errorf("a withdrawn instrument is listed: %s", list.Body)
	}

	price := v.Send("operator", "POST", base+"/index-prices/BTCUSDC_PERP", `{"price":"65000.1"}`).Want(200)
	want(t, price, "symbol", "BTCUSDC_PERP", "position", price.Header.Get("X-Log-Position"), "timestamp", "2026-03-31T08:00:00.000000Z")
	v.Send("operator", "POST", base+"/index-prices/NOPE", `{"price":"1"}`).Code(404, "UNKNOWN_SYMBOL")
}

// TestMaxLeverage: max_leverage follows the margin down, and no request sets it higher. What is read may be
// sent back, with a higher margin if the tiers are left out.
func TestMaxLeverage(t *testing.T) {
	v := tradingtest.New(t)
	const path = base + "/instruments/BTCUSDC_PERP"
	refused := func(r *tradingtest.Reply) {
		t.Helper()
		if got := r.Code(400, "INVALID_INSTRUMENT").Faults(); len(got) != 1 || got[0] != "max_leverage INVALID_INSTRUMENT" {
			t.Errorf("faults %v", got)
		}
	}
	shown := func(body, leverage string) {
		t.Helper()
		want(t, v.Send("operator", "PATCH", path, body).Want(200), "max_leverage", leverage)
		want(t, v.Send("auditor", "GET", path, "").Want(200), "max_leverage", leverage)
		if list := v.Send("", "GET", "/v1/instruments?symbol=BTCUSDC_PERP", "").Want(200); !strings.Contains(list.Body, `"max_leverage":`+leverage+",") {
			t.Errorf("clients see %s", list.Body)
		}
	}
	shown(`{"init_margin_req":"50"}`, "2")
	refused(v.Send("operator", "PATCH", path, `{"max_leverage":3}`))
	refused(v.Send("operator", "PATCH", path, `{"init_margin_req":"30","max_leverage":4}`))
	shown(`{"init_margin_req":"10"}`, "2")
	shown(`{"max_leverage":10}`, "10")
	shown(`{"init_margin_req":"25","max_leverage":10}`, "4")
	shown(v.Send("auditor", "GET", path, "").Want(200).Body, "4")
	const listed = `{"symbol":"XRPUSDC_PERP","underlying":"XRP","price_tick":"0.0001","amount_step":"1","max_amount":"1000000","max_leverage":11,`
	for body, faults := range map[string][]string{
		`"init_margin_req":"10","maint_margin_req":"5"}`:                     {"max_leverage INVALID_VALUE"},
		`"init_margin_req":"10","maint_margin_req":"5","taker_fee":"101"}`:   {"taker_fee INVALID_VALUE", "max_leverage INVALID_VALUE"},
		`"init_margin_req":"10","maint_margin_req":"5","color":"red"}`:       {"max_leverage INVALID_VALUE", "color UNKNOWN_FIELD"},
		`"init_margin_req":"100.5","maint_margin_req":"5","price_band":"0"}`: {"price_band OUT_OF_RANGE", "init_margin_req INVALID_VALUE"},
		`"init_margin_req":"100.5","maint_margin_req":"5","margin_tiers":[{"notional_from":"0","init_margin_req":"100.5","maint_margin_req":"5"}]}`: {
			"margin_tiers[0].init_margin_req INVALID_VALUE"},
	} {
		if got := v.Send("operator", "POST", base+"/instruments", listed+body).Code(400, "VALIDATION_FAILED").Faults(); !slices.Equal(got, faults) {
			t.Errorf("%s: faults %q, want %q", body, got, faults)
		}
	}
}

// TestDelistInstrumentWithManyOrders answers after the last of its orders is canceled.
func TestDelistInstrumentWithManyOrders(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("operator", "POST", base+"/customers/A-1/deposits", `{"currency":"USDC","amount":"100000","reference_id":"d"}`).Want(201)
	v.Send("operator", "POST", base+"/index-prices/ETHUSDC_PERP", `{"price":"3500"}`).Want(200)
	for range 100 {
		v.Send("broker-a", "POST", "/v1/customers/A-1/orders", `{"symbol":"ETHUSDC_PERP","action":"buy","type":"limit","amount":"0.01","limit_price":"3000"}`).Want(201)
	}
	want(t, v.Send("operator", "DELETE", base+"/instruments/ETHUSDC_PERP", "", "Idempotency-Key", "k").Want(200), "canceled", "100")
	want(t, v.Send("operator", "DELETE", base+"/instruments/ETHUSDC_PERP", "", "Idempotency-Key", "k").Want(200), "canceled", "100")
}

func TestMoney(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	const deposits, withdrawals = base + "/customers/A-1/deposits", base + "/customers/A-1/withdrawals"
	deposit := `{"currency":"USDC","amount":"100.5","reference_id":"d-1"}`
	made := v.Send("operator", "POST", deposits, deposit, "Idempotency-Key", "k").Want(201)
	want(t, made, "type", "deposit", "amount", "100.5", "status", "completed", "balance", "100.5", "symbol", "", "order_code", "")
	again := v.Send("operator", "POST", deposits, `{"reference_id":"d-1","amount":"100.50","currency":"USDC"}`).Want(200)
	if again.Body != made.Body {
		t.Errorf("again %s, first %s", again.Body, made.Body)
	}
	if first := v.Send("operator", "POST", deposits, deposit, "Idempotency-Key", "k").Want(201); first.Body != made.Body {
		t.Errorf("the same key %s, first %s", first.Body, made.Body)
	}
	v.Send("operator", "POST", deposits, `{"currency":"USDC","amount":"100","reference_id":"d-1"}`).Code(409, "REFERENCE_ID_REUSED")
	v.Send("operator", "POST", base+"/customers/NOPE/deposits", deposit).Code(404, "UNKNOWN_CUSTOMER")
	for path, body := range map[string]string{
		deposits:                     `{"currency":"USDC","amount":"1","reference_id":"opening:40:2"}`,
		withdrawals:                  `{"currency":"USDC","amount":"1","reference_id":"` + made.Text("code") + `"}`,
		base + "/insurance/deposits": `{"amount":"1","reference_id":"opening:40:2"}`,
	} {
		if got := v.Send("operator", "POST", path, body).Code(400, "RESERVED_REFERENCE_ID").Faults(); len(got) != 1 || got[0] != "reference_id RESERVED_REFERENCE_ID" {
			t.Errorf("%s: faults %v", path, got)
		}
	}

	asked := v.Send("operator", "POST", withdrawals, `{"currency":"USDC","amount":"60","reference_id":"w-1"}`).Want(201)
	want(t, asked, "type", "withdrawal", "amount", "-60", "status", "pending", "balance", "")
	v.Send("operator", "POST", withdrawals, `{"currency":"USDC","amount":"41","reference_id":"w-2"}`).Code(422, "INSUFFICIENT_FUNDS")
	done := v.Send("operator", "POST", base+"/withdrawals/"+asked.Text("code")+"/complete", "").Want(200)
	want(t, done, "status", "completed", "balance", "40.5", "code", asked.Text("code"))
	v.Send("operator", "POST", base+"/withdrawals/"+asked.Text("code")+"/cancel", "").Code(409, "WITHDRAWAL_NOT_PENDING")
	v.Send("operator", "POST", base+"/withdrawals/nonsense/cancel", "").Code(404, "UNKNOWN_WITHDRAWAL")
	other := v.Send("operator", "POST", withdrawals, `{"currency":"USDC","amount":"40.5","reference_id":"w-2"}`).Want(201).Text("code")
	want(t, v.Send("operator", "POST", base+"/withdrawals/"+other+"/cancel", "{}").Want(200), "status", "canceled", "balance", "")

	// A deposit and a withdrawal may share their whole body, but never a reference_id.
	for path, body := range map[string]string{withdrawals: deposit, deposits: `{"currency":"USDC","amount":"60","reference_id":"w-1"}`} {
		if got := v.Send("operator", "POST", path, body).Code(409, "REFERENCE_ID_REUSED").Faults(); len(got) != 1 || got[0] != "reference_id REFERENCE_ID_REUSED" {
			t.Errorf("%s: faults %v", path, got)
		}
	}
}

func TestAccounts(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	const margins, fees = base + "/customers/A-1/margin-profile", base + "/customers/A-1/fee-profile/BTCUSDC_PERP"
	want(t, v.Send("operator", "PUT", margins, `{"leverage":7}`).Want(200), "customer_code", "A-1", "leverage", "7", "initial_margin", "14.29", "maintenance_margin", "7.15")
	want(t, v.Send("operator", "PUT", margins, `{"initial_margin":"12.3456","maintenance_margin":"6"}`).Want(200), "leverage", "", "initial_margin", "12.35", "maintenance_margin", "6.00")
	want(t, v.Send("operator", "GET", "/v1/customers/A-1/margin-profile", "").Want(200), "initial_margin", "12.35", "instrument_margins", "[]")
	want(t, v.Send("operator", "PUT", fees, `{"maker_fee":"-0.5","taker_fee":"3"}`).Want(200), "maker_fee", "-0.5", "taker_fee", "3")
	v.Send("operator", "PUT", base+"/customers/NOPE/margin-profile", `{"leverage":7}`).Code(404, "UNKNOWN_CUSTOMER")
}

func TestJournals(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("broker-a", "GET", "/v1/customers", "").Want(200) // the read models have it now
	var list struct {
		Items []struct {
			Journal  string `json:"journal"`
			Sequence int64  `json:"sequence"`
			Hash     string `json:"hash"`
			Readers  []struct {
				Name string `json:"name"`
				Lag  int64  `json:"lag"`
			} `json:"readers"`
		} `json:"items"`
	}
	v.Send("auditor", "GET", base+"/journals", "").Want(200).JSON(&list)
	entries := v.Trading.Entries()
	last := entries[len(entries)-1].Position
	if len(list.Items) != 1 || list.Items[0].Journal != "trading" || list.Items[0].Sequence != last.Sequence || list.Items[0].Hash != last.Hash.String() {
		t.Errorf("%+v, want %v", list, last)
	}
	if r := list.Items[0].Readers; len(r) != 1 || r[0].Name != "projections" || r[0].Lag != 0 {
		t.Errorf("readers %+v", r)
	}
}

// TestFaults lists, for each bad request, every fault that must be named. Nothing of it may reach a log.
func TestFaults(t *testing.T) {
	v := tradingtest.New(t)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	for _, tt := range []struct{ method, path, body, faults string }{
		{"POST", "/brokers", `{}`, "broker REQUIRED, name REQUIRED"},
		{"POST", "/brokers", `{"broker":"a b","name":"","x":1}`, "broker INVALID_VALUE, name INVALID_VALUE, x UNKNOWN_FIELD"},
		{"GET", "/brokers?page=0&size=101&sort=asc", ``, "page OUT_OF_RANGE, size OUT_OF_RANGE, sort UNKNOWN_PARAMETER"},
		{"POST", "/users", `{}`, "broker REQUIRED, password REQUIRED, scopes REQUIRED, username REQUIRED"},
		{"POST", "/users", `{"username":"a","broker":"alpha","password":"short","scopes":["root"]}`, "password INVALID_VALUE, scopes[0] INVALID_VALUE"},
		{"POST", "/users", `{"username":"a","broker":"alpha","password":"long enough","scopes":["read","root","read","read"],"rate_limit":{"per_second":0}}`,
			"rate_limit.burst REQUIRED, rate_limit.per_second OUT_OF_RANGE, scopes[1] INVALID_VALUE, scopes[2] INVALID_VALUE, scopes[3] INVALID_VALUE"},
		{"POST", "/users", `{"username":"a","broker":"alpha","password":"long enough","scopes":[]}`, "scopes REQUIRED"},
		{"PATCH", "/users/operator", `{}`, "REQUIRED"},
		{"PATCH", "/users/operator", `{"broker":"alpha","is_active":1}`, "broker UNKNOWN_FIELD, is_active WRONG_TYPE"},
		{"POST", "/instruments", `{}`, "amount_step REQUIRED, init_margin_req REQUIRED, maint_margin_req REQUIRED, max_amount REQUIRED, price_tick REQUIRED, symbol REQUIRED, underlying REQUIRED"},
		{"POST", "/instruments", `{"symbol":"x","underlying":"XRP","price_tick":"0.0000001","amount_step":"0.1","max_amount":"1.05","init_margin_req":"5","maint_margin_req":"6","quote_currency":"EUR","taker_fee":"-1","expiry":null}`,
			"expiry UNKNOWN_FIELD, maint_margin_req INVALID_VALUE, max_amount INVALID_VALUE, quote_currency INVALID_VALUE, symbol INVALID_VALUE, taker_fee INVALID_VALUE"},
		{"PATCH", "/instruments/BTCUSDC_PERP", `{}`, "REQUIRED"},
		{"PATCH", "/instruments/BTCUSDC_PERP", `{"status":"settled","price_tick":"1","margin_tiers":[{}]}`,
			"margin_tiers[0].init_margin_req REQUIRED, margin_tiers[0].maint_margin_req REQUIRED, price_tick NOT_ALLOWED, status INVALID_VALUE"},
		{"POST", "/index-prices/BTCUSDC_PERP", `{"price":65000}`, "price WRONG_TYPE"},
		{"POST", "/index-prices/BTCUSDC_PERP", `{"price":"0"}`, "price OUT_OF_RANGE"},
		{"POST", "/customers/A-1/deposits", `{}`, "amount REQUIRED, currency REQUIRED, reference_id REQUIRED"},
		{"POST", "/customers/A-1/deposits", `{"currency":"EUR","amount":"0.000000001","reference_id":"a b"}`, "amount TOO_MANY_DIGITS, currency INVALID_VALUE, reference_id INVALID_VALUE"},
		{"POST", "/customers/A-1/withdrawals", `{"currency":"USDC","amount":"-1","reference_id":"w"}`, "amount OUT_OF_RANGE"},
		{"PUT", "/customers/A-1/margin-profile", `{}`, "leverage REQUIRED"},
		{"PUT", "/customers/A-1/margin-profile", `{"leverage":5,"initial_margin":"5"}`, "leverage NOT_ALLOWED"},
		{"PUT", "/customers/A-1/margin-profile", `{"initial_margin":"5.00001"}`, "initial_margin TOO_MANY_DIGITS, maintenance_margin REQUIRED"},
		{"PUT", "/customers/A-1/margin-profile", `{"leverage":101}`, "leverage OUT_OF_RANGE"},
		{"PUT", "/customers/A-1/fee-profile/BTCUSDC_PERP", `{"maker_fee":"-100.5","taker_fee":"-1"}`, "maker_fee OUT_OF_RANGE, taker_fee OUT_OF_RANGE"},
		{"GET", "/journals?x=1", ``, "x UNKNOWN_PARAMETER"},
		{"GET", "/journals/trading/records?after=-1&page_size=1001&before=3", ``, "after OUT_OF_RANGE, before UNKNOWN_PARAMETER, page_size OUT_OF_RANGE"},
	} {
		trading, people := v.Trading.Tip(), v.Identity.Tip()
		got := v.Send("operator", tt.method, base+tt.path, tt.body).Want(400).Faults()
		slices.Sort(got)
		if want := strings.Split(tt.faults, ", "); !slices.Equal(got, want) {
			t.Errorf("%s %s %s: faults %v, want %v", tt.method, tt.path, tt.body, got, want)
		}
		if v.Trading.Tip() != trading || v.Identity.Tip() != people {
			t.Errorf("%s %s %s: a record was written", tt.method, tt.path, tt.body)
		}
	}
}
