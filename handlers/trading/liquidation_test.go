package trading_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// TestLiquidation takes an account through a liquidation, the insurance fund and deleveraging, and looks at what the
// interfaces show of it, in figures worked out by hand.
func TestLiquidation(t *testing.T) {
	v := tradingtest.New(t)
	for _, c := range []struct{ user, code, amount string }{{"broker-a", "A-1", "5025"}, {"broker-b", "B-1", "100000"}, {"broker-b", "B-2", "100000"}} {
		v.Send(c.user, "POST", "/v1/customers", `{"customer_code":"`+c.code+`"}`).Want(201)
		v.Send("operator", "POST", "/admin/v1/customers/"+c.code+"/deposits", `{"currency":"USDC","amount":"`+c.amount+`","reference_id":"d-1"}`).Want(201)
	}
	v.Send("operator", "PUT", "/admin/v1/customers/A-1/margin-profile", `{"initial_margin":"5","maintenance_margin":"2.5"}`).Want(200)
	index := func(price string) {
		v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"`+price+`"}`).Want(200)
	}
	index("50000")

	// The fund.
	const deposits = "/admin/v1/insurance/deposits"
	made := v.Send("operator", "POST", deposits, `{"amount":"1000","reference_id":"f-1"}`).Want(201)
	want(t, made, "type", "insurance", "amount", "1000", "balance", "1000", "reference_id", "f-1")
	if again := v.Send("operator", "POST", deposits, `{"amount":"1000.0","reference_id":"f-1"}`).Want(200); again.Body != made.Body {
		t.Errorf("again: %s", again.Body)
	}
	v.Send("operator", "POST", deposits, `{"amount":"1","reference_id":"f-1"}`).Code(409, "REFERENCE_ID_REUSED")
	v.Send("operator", "POST", deposits, `{"amount":"0","reference_id":"f-2"}`).Want(400)
	v.Send("auditor", "POST", deposits, `{"amount":"1","reference_id":"f-2"}`).Want(403)
	v.Send("broker-a", "POST", "/v1/customers", `{"customer_code":"insurance-fund"}`).Code(409, "CUSTOMER_CODE_TAKEN")

	// A-1 is long 1 at 50,000 and pays 25. At 46,150 it has 1,150 and needs 1,153.75; its order goes first, then a fifth of its
	// position at 45,500 with a fee of 0.5 % of 9,100 = 45.5, which leaves 1,150 − 130 − 45.5 = 974.5 of 923 needed.
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "50000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "50000")).Want(201)
	v.Send("broker-a", "POST", a1+"/orders", entry("sell", "0.5", "60000", `"reduce_only":true`)).Want(201)
	v.Send("broker-b", "POST", "/v1/customers/B-2/orders", entry("buy", "0.2", "45500")).Want(201)
	index("46150")
	index("46150") // which the steps come before
	var fills, rows told
	v.Send("broker-a", "GET", a1+"/trades?type=liquidation", "").Want(200).JSON(&fills)
	if len(fills.Records) != 1 || fills.Records[0].Type != "liquidation" || fills.Records[0].Fee != "45.5" || fills.Records[0].OrderCode == nil {
		t.Fatalf("what A-1 sold: %+v", fills.Records)
	}
	want(t, v.Send("broker-a", "GET", a1+"/orders/"+*fills.Records[0].OrderCode, "").Want(200), "status", "filled", "type", "limit",
		"time_in_force", "IOC", "reduce_only", "true", "limit_price", "45000.0", "amount", "0.200", "reason", "")
	if canceled := v.Send("broker-a", "GET", a1+"/orders/history", "").Want(200).Body; !strings.Contains(canceled, `"reason":"liquidation"`) {
		t.Errorf("the order that rested: %s", canceled)
	}
	v.Send("broker-a", "GET", a1+"/transactions?sort=asc", "").Want(200).JSON(&rows)
	if got := rows.types(); got != "deposit trade_fee liquidation liquidation_fee" {
		t.Errorf("the rows of A-1: %s", got)
	}
	v.Send("broker-b", "GET", "/v1/customers/B-2/trades", "").Want(200).JSON(&fills)
	if len(fills.Records) != 1 || fills.Records[0].Type != "trade" {
		t.Errorf("what B-2 bought: %+v", fills.Records)
	}
	want(t, v.Send("auditor", "GET", "/admin/v1/insurance", "").Want(200), "balance", "1045.5", "equity", "1045.5", "positions", "[]")

	// At 45,000 A-1 has 54.5 of 900. The fund has 1,045.5, and with 0.8 at the bankruptcy price, 44,931.875 up to the tick, 54.5 less
	// the tick; 5 % of 36,000 = 1,800 it has not. So B-1, who is short 1, gets it.
	index("45000")
	index("45000")
	v.Send("broker-b", "GET", b1+"/trades?type=auto_deleveraging", "").Want(200).JSON(&fills)
	if len(fills.Records) != 1 || fills.Records[0].Price != "44931.9" || fills.Records[0].Fee != "0" || fills.Records[0].OrderCode != nil || fills.Records[0].ReferenceID != nil || fills.Records[0].Role != "maker" {
		t.Fatalf("what B-1 got: %+v", fills.Records)
	}
	public := v.Send("", "GET", "/v1/market-trades?symbol="+btc, "").Want(200).Body
	for _, part := range []string{`"type":"auto_deleveraging"`, `"type":"liquidation"`, `"price":"44931.9"`} {
		if !strings.Contains(public, part) {
			t.Errorf("%s is not in %s", part, public)
		}
	}
	ticker := v.Send("", "GET", "/v1/tickers?symbol="+btc, "").Want(200).Body
	if !strings.Contains(ticker, `"last_price":"45500.0"`) || !strings.Contains(ticker, `"low_24h":"45500.0"`) || !strings.Contains(ticker, `"volume_24h":"1.200"`) {
		t.Errorf("deleveraging moved a price: %s", ticker)
	}
	want(t, v.Send("operator", "GET", "/admin/v1/insurance", "").Want(200), "balance", "1045.5")
}

// told are rows of trades or transactions.
type told struct {
	Records []struct {
		Type        string  `json:"type"`
		Price       string  `json:"price"`
		Fee         string  `json:"fee"`
		Role        string  `json:"role"`
		OrderCode   *string `json:"order_code"`
		ReferenceID *string `json:"reference_id"`
	} `json:"records"`
}

func (l told) types() string {
	var out []string
	for _, r := range l.Records {
		out = append(out, r.Type)
	}
	return strings.Join(out, " ")
}
