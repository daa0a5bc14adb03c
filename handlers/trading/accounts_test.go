package trading_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

func TestCustomers(t *testing.T) {
	v := tradingtest.New(t)
	made := v.Send("broker-a", "POST", "/v1/customers", `{"name":"Desk 1"}`, "Idempotency-Key", "k").Want(201)
	if code := made.Text("customer_code"); len(code) != 13 || code[0] != 'C' {
		t.Errorf("the code is %s", code)
	}
	want(t, made, "name", "Desk 1", "broker", "alpha")
	if again := v.Send("broker-a", "POST", "/v1/customers", `{"name":"Desk 1"}`, "Idempotency-Key", "k").Want(201); again.Body != made.Body {
		t.Errorf("again: %s", again.Body)
	}
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Want(201)
	v.Send("broker-b", "POST", "/v1/customers", `{"customer_code":"A-1"}`).Code(409, "CUSTOMER_CODE_TAKEN")
	v.Send("broker-b", "POST", "/v1/customers", `{"customer_code":"B-1"}`).Want(201)
	for user, n := range map[string]int{"broker-a": 2, "broker-b": 1, "operator": 3, "auditor": 3, "client-a": 1} {
		if got := strings.Count(v.Send(user, "GET", "/v1/customers", "").Want(200).Body, `"customer_code"`); got != n {
			t.Errorf("%s sees %d customers, want %d", user, got, n)
		}
	}
	var p page
	v.Send("client-a", "GET", "/v1/customers", "").Want(200).JSON(&p)
	if list := v.Send("client-a", "GET", "/v1/customers?after="+p.Metadata.End, "").Want(200).Body; !strings.Contains(list, `"records":[]`) {
		t.Errorf("after the only page: %s", list)
	}
}

// TestAccount holds what a fill does to an account against figures worked out by hand.
func TestAccount(t *testing.T) {
	v := funded(t)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65000")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.5", "65000", `"leverage":10`)).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.1", "64000")).Want(201)
	v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"65100"}`).Want(200)

	// Fees: 32,500 × 5 bp = 16.25 for the taker, × 2 bp = 6.5 for the maker. Long 0.5 gains 50. Initial margin at
	// 1/10 of 32,550; the bid adds a tenth of 6,400 and its taker fee of 3.2. Maintenance: the account's 1/26.
	var summary []map[string]any
	v.Send("broker-b", "GET", b1+"/account-summary", "").Want(200).JSON(&summary)
	for name, value := range map[string]string{"currency": "USDC", "balance": "99983.75", "unrealised_pnl": "50", "total_equity": "100033.75",
		"used_margin": "3255", "order_margin": "643.2", "available_margin": "96135.55", "maintenance_margin": "1251.92307693", "risk_state": "normal", "margin_ratio": "0.0126"} {
		if summary[0][name] != value {
			t.Errorf("%s is %v, want %s", name, summary[0][name], value)
		}
	}
	positions := v.Send("broker-b", "GET", b1+"/positions", "").Want(200).Body
	for _, part := range []string{`"amount":"0.500"`, `"entry_price":"65000.0"`, `"notional":"32550"`, `"unrealised_pnl":"50"`, `"leverage":"10"`, `"initial_margin":"3255"`} {
		if !strings.Contains(positions, part) {
			t.Errorf("%s is not in %s", part, positions)
		}
	}
	if short := v.Send("broker-a", "GET", a1+"/positions?symbol="+btc, "").Want(200).Body; !strings.Contains(short, `"amount":"-0.500"`) {
		t.Errorf("the short side: %s", short)
	}
	if none := v.Send("broker-a", "GET", a1+"/positions?symbol=ETHUSDC_PERP", "").Want(200).Body; none != "[]" {
		t.Errorf("another instrument: %s", none)
	}
	want(t, v.Send("broker-b", "GET", b1+"/margin-profile", "").Want(200), "initial_margin", "7.70", "maintenance_margin", "3.85",
		"instrument_margins", `[{"initial_margin":"10.00","leverage":"10","symbol":"BTCUSDC_PERP"}]`)

	var rows page
	v.Send("broker-b", "GET", b1+"/transactions?sort=asc", "").Want(200).JSON(&rows)
	if len(rows.Records) != 2 || rows.Records[0].Type != "deposit" || rows.Records[1].Type != "trade_fee" || rows.Records[1].Amount != "-16.25" {
		t.Errorf("transactions: %+v", rows.Records)
	}
	var fills page
	v.Send("broker-b", "GET", b1+"/trades", "").Want(200).JSON(&fills)
	if len(fills.Records) != 1 || fills.Records[0].Code != rows.Records[1].Code {
		t.Errorf("trades %+v, transactions %+v", fills.Records, rows.Records)
	}
	v.Send("broker-b", "GET", b1+"/transactions?type=deposit%7Cwithdrawal&currency=usdc&from=2026-03-31T00:00:00.000000Z&to=2026-04-01T00:00:00.000000Z", "").Want(200).JSON(&rows)
	if len(rows.Records) != 1 || rows.Records[0].Type != "deposit" {
		t.Errorf("deposits: %+v", rows.Records)
	}
}

func TestFees(t *testing.T) {
	v := funded(t)
	item := v.Send("broker-a", "PUT", a1+"/fee-profile/"+btc, `{"maker_fee":"1.50","taker_fee":"4"}`).Want(200)
	if item.Body != `{"symbol":"BTCUSDC_PERP","maker_fee":"1.5","taker_fee":"4"}` {
		t.Errorf("the item: %s", item.Body)
	}
	all := `[{"symbol":"BTCUSDC_PERP","maker_fee":"1.5","taker_fee":"4"},{"symbol":"ETHUSDC_PERP","maker_fee":"2","taker_fee":"5"}]`
	if got := v.Send("broker-a", "GET", a1+"/fee-profile", "").Want(200).Body; got != all {
		t.Errorf("the profile: %s", got)
	}
	v.Send("broker-a", "PUT", a1+"/fee-profile/NOPE", `{"maker_fee":"1","taker_fee":"4"}`).Code(404, "UNKNOWN_SYMBOL")
}

func TestCommands(t *testing.T) {
	v := funded(t)
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "64000")).Want(201)
	entries := v.Trading.Entries()
	id := entries[len(entries)-1].Record.Command.ID.String()
	fate := v.Send("broker-a", "GET", "/v1/commands/"+id, "").Want(200)
	want(t, fate, "status", "applied", "position", placed.Header.Get(operation.HeaderLogPosition))
	v.Send("broker-b", "GET", "/v1/commands/"+id, "").Code(404, "UNKNOWN_COMMAND")
	v.Send("client-a", "GET", "/v1/commands/"+id, "").Code(404, "UNKNOWN_COMMAND")
	v.Send("auditor", "GET", "/v1/commands/"+id, "").Want(200)
	v.Send("broker-a", "GET", "/v1/commands/nonsense", "").Code(404, "UNKNOWN_COMMAND")

	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1000", "64000")).Want(422)
	entries = v.Trading.Entries()
	rejected := entries[len(entries)-1].Record.Command.ID.String()
	want(t, v.Send("broker-a", "GET", "/v1/commands/"+rejected, "").Want(200), "status", "rejected")
	none := v.Send("broker-a", "GET", "/v1/commands/00000000-0000-7000-8000-000000000001", "").Code(404, "UNKNOWN_COMMAND")
	if at := none.Header.Values(operation.HeaderLogPosition); len(at) != 2 || at[0] != v.Trading.Tip().String() || !strings.HasPrefix(at[1], "identity/0@") {
		t.Errorf("as of %v", at)
	}
	broker := v.Send("operator", "POST", "/admin/v1/brokers", `{"broker":"gamma","name":"Gamma"}`).Want(201)
	people := v.Identity.Entries()
	id2 := people[len(people)-1].Record.Command.ID.String()
	at := broker.Header.Get(operation.HeaderLogPosition)
	want(t, v.Send("operator", "GET", "/v1/commands/"+id2, "", operation.HeaderMinLogPosition, at).Want(200), "position", at)
	v.Advance(scalar.Day)
	v.Send("broker-a", "GET", "/v1/commands/"+id, "").Code(404, "UNKNOWN_COMMAND")
}

func TestDescriptionIsServed(t *testing.T) {
	v := tradingtest.New(t)
	if text := v.Send("", "GET", "/openapi.yaml", "").Want(200); !strings.HasPrefix(text.Body, "openapi: 3.1") {
		t.Errorf("the YAML: %.40s", text.Body)
	}
	want(t, v.Send("", "GET", "/openapi.json", "").Want(200), "openapi", "3.1.0")
}

// TestTransactionsSumToTheBalance counts the completed ones only.
func TestTransactionsSumToTheBalance(t *testing.T) {
	v := funded(t)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "65000")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.5", "65000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.3", "65333.3")).Want(201)
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.3", "65333.3")).Want(201)
	w := v.Send("operator", "POST", "/admin/v1/customers/A-1/withdrawals", `{"currency":"USDC","amount":"10","reference_id":"w"}`).Want(201)
	v.Send("operator", "POST", "/admin/v1/customers/A-1/withdrawals", `{"currency":"USDC","amount":"7","reference_id":"w2"}`).Want(201)
	v.Send("operator", "POST", "/admin/v1/withdrawals/"+w.Text("code")+"/complete", "").Want(200)
	var rows struct {
		Records []struct {
			Amount fixed.Money `json:"amount"`
			Status string      `json:"status"`
		} `json:"records"`
	}
	v.Send("broker-a", "GET", a1+"/transactions", "").Want(200).JSON(&rows)
	var sum fixed.Money
	for _, r := range rows.Records {
		if r.Status == "completed" {
			sum = sum.Add(r.Amount)
		}
	}
	var summary []struct {
		Balance fixed.Money `json:"balance"`
	}
	v.Send("broker-a", "GET", a1+"/account-summary", "").Want(200).JSON(&summary)
	if len(rows.Records) != 6 || sum != summary[0].Balance {
		t.Errorf("%d rows sum to %v, the balance is %v", len(rows.Records), sum, summary[0].Balance)
	}
}
