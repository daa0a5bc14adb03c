package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

const (
	leo, liz, bea = "A-LEO", "A-LIZ", "B-BEA" // two of broker-a's customers, and one of broker-b's
)

// index gives the price of a bitcoin.
func (d *desk) index(price string) answer {
	d.t.Helper()
	return d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+bitcoin, `{"price":"`+price+`"}`)
}

// summary checks what an account has.
func (d *desk) summary(t *testing.T, user, customer string, pairs ...string) {
	t.Helper()
	d.list(user, "/v1/customers/"+customer+"/account-summary")[0].has(t, pairs...)
}

// TestLiquidation takes two accounts through all that a liquidation may come to, over REST and sockets, down to the rows:
// an order in the book, a takeover by the insurance fund, and deleveraging. The venue is killed in the middle of the first and
// goes on from a snapshot. The figures are worked out by hand.
func TestLiquidation(t *testing.T) {
	t.Parallel()
	d := &desk{venue: newVenue(t, "--snapshot-records", "5")}
	d.start()
	t.Cleanup(func() { d.stop() })
	d.index("65000")
	for _, c := range []struct{ code, user, amount string }{{leo, "broker-a", "5050"}, {liz, "broker-a", "8032.5"}, {bea, "broker-b", "1000000"}} {
		d.must(201, c.user, http.MethodPost, "/v1/customers", `{"customer_code":"`+c.code+`"}`)
		d.must(201, "operator", http.MethodPost, "/admin/v1/customers/"+c.code+"/deposits", `{"currency":"USDC","amount":"`+c.amount+`","reference_id":"first"}`)
	}
	ears := audienceAfter(t, len(d.values(t))-1)
	for _, l := range ears {
		l.connect(d.venue)
	}
	d.borrow(t, ears[0])
	d.halted(t, ears)
	d.stepwise(t)
	d.takeover(t)
	d.deleveraged(t)

	told := checkAll(t, d, ears)
	testRows(t, d, last(told.orders, "code"), told.trades, told.marketTrades, last(told.transactions, "code", "type", "customer_code"))
	d.nobodysName(t, ears)
	for _, command := range []string{"rebuild", "audit"} {
		if out, err := d.command(command).CombinedOutput(); err != nil {
			t.Errorf("perpetua %s: %v\n%s", command, err, out)
		}
	}
}

// borrow has LEO and LIZ buy a bitcoin each of BEA's with leverage 13, which takes 5,000 and a fee of 32.5. LEO is left with
// 5,017.5, and LIZ with 8,000. At 63,000 LEO's 3,017.5 are near the 63,000 ÷ 26 that he needs, and he is told so.
func (d *desk) borrow(t *testing.T, brokerA *listener) {
	d.must(201, "broker-b", http.MethodPost, "/v1/customers/"+bea+"/orders", `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"2","limit_price":"65000"}`)
	over := livetest.Dial(t, d.WebSocket, d.token("broker-a"))
	e := ask(t, over, "leo", "order.place", `{"customer_code":"`+leo+`","symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"1","leverage":13}`)
	if e.Status != 201 || e.text("status") != "filled" {
		t.Fatalf("LEO's order: %+v %s", e, e.Data)
	}
	d.answered(t, 201, "broker-a", http.MethodPost, "/v1/customers/"+liz+"/orders",
		`{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"1","limit_price":"65000","leverage":13,"time_in_force":"IOC"}`, "status", "filled")
	d.summary(t, "broker-a", leo, "balance", "5017.5", "used_margin", "5000", "available_margin", "17.5", "risk_state", "normal")
	d.index("63000")
	d.summary(t, "broker-a", leo, "total_equity", "3017.5", "maintenance_margin", "2423.07692308", "margin_ratio", "0.8031", "risk_state", "margin_call")
	d.summary(t, "broker-a", liz, "total_equity", "6000", "risk_state", "normal")
	brokerA.accounts.Until("the margin call", func(all []livetest.Message) bool { return inRisk(all, "margin_call") })
}

// inRisk reports whether LEO's account was told to be in a risk state.
func inRisk(all []livetest.Message, state string) bool {
	for _, m := range all {
		if f := m.Fields(); m.Channel == "margin" && f["customer_code"] == leo && f["risk_state"] == state {
			return true
		}
	}
	return false
}

// halted lets the price fall to 62,000 while the instrument does not trade: LEO's 2,017.5 are less than he needs, and his
// liquidation waits. The venue is killed, and knows of it when it starts from a snapshot.
func (d *desk) halted(t *testing.T, ears []*listener) {
	d.must(201, "broker-b", http.MethodPost, "/v1/customers/"+bea+"/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.2","limit_price":"61900"}`)
	d.must(200, "operator", http.MethodPatch, "/admin/v1/instruments/"+bitcoin, `{"status":"trade_halt"}`)
	fell := d.index("62000")
	standing := []string{"balance", "5017.5", "total_equity", "2017.5", "maintenance_margin", "2384.61538462", "margin_ratio", "1.1820", "risk_state", "liquidation"}
	d.summary(t, "broker-a", leo, standing...)
	ears[0].accounts.Until("the liquidation", func(all []livetest.Message) bool { return inRisk(all, "liquidation") })
	var at int64
	if _, err := fmt.Sscanf(fell.Header.Get("X-Log-Position"), "trading/0@%d", &at); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a snapshot of that", func() bool {
		d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+ether, `{"price":"2000"}`)
		return d.measure("sequence") >= at
	})
	d.kill()
	for _, l := range ears {
		l.ended()
	}
	d.start()
	if loaded := d.measure("loaded_sequence"); loaded < at {
		t.Errorf("the venue started from the snapshot at %d, and there is one behind %d", loaded, at)
	}
	for _, l := range ears {
		l.connect(d.venue)
	}
	d.summary(t, "broker-a", leo, standing...)
}

// stepwise lets the liquidation go on: a fifth of the position is offered down to the bankruptcy price, 62,000 − 2,017.5, and
// BEA buys it at 61,900. LEO loses 620 and pays 0.5 % of 12,380 to the insurance fund. His 1,935.6 are enough for the rest.
func (d *desk) stepwise(t *testing.T) {
	d.must(200, "operator", http.MethodPatch, "/admin/v1/instruments/"+bitcoin, `{"status":"open"}`)
	fill := d.traded(t, "broker-a", leo, "liquidation", 1)
	fill.has(t, "amount", "0.200", "price", "61900.0", "fee", "61.9", "role", "taker", "action", "sell")
	d.answered(t, 200, "broker-a", http.MethodGet, "/v1/customers/"+leo+"/orders/"+fill["order_code"], nil, "type", "limit", "time_in_force", "IOC",
		"reduce_only", "true", "limit_price", "59982.5", "amount", "0.200", "status", "filled", "reason", "null")
	d.summary(t, "broker-a", leo, "balance", "4335.6", "total_equity", "1935.6", "maintenance_margin", "1907.6923077", "risk_state", "margin_call")
	if bought := d.tradesOf("broker-b", bea, "liquidation"); len(bought) > 0 {
		t.Errorf("to BEA it was a liquidation: %v", bought)
	}
}

// tradesOf returns a customer's trades of a type, the oldest first.
func (d *desk) tradesOf(user, customer, kind string) []fields {
	d.t.Helper()
	var page struct{ Records []fields }
	d.must(200, user, http.MethodGet, "/v1/customers/"+customer+"/trades?sort=asc&type="+kind, nil).decode(d.t, &page)
	return page.Records
}

// traded waits for a customer's n-th trade of a type. Whatever is read after that is as of the trade's record at least: trades
// are rows, summaries come from the fold, and either may be ahead of the other.
func (d *desk) traded(t *testing.T, user, customer, kind string, n int) (trade fields) {
	t.Helper()
	waitFor(t, fmt.Sprintf("trade %d of %s, %s", n, customer, kind), func() bool {
		all := d.tradesOf(user, customer, kind)
		if len(all) != n {
			return false
		}
		trade = all[n-1]
		return true
	})
	d.position = "trading/0@" + trade["sequence"]
	return trade
}

// takeover lets the price fall to 61,500, where LEO has 1,535.6 for 0.8 and nobody bids. The insurance fund has 61.9 and a
// deposit of 1,500. It takes over at 61,500 − 1,535.6 ÷ 0.8, which leaves LEO nothing, and offers what it has at mark.
func (d *desk) takeover(t *testing.T) {
	const deposit = `{"amount":"1500","reference_id":"fund"}`
	d.answered(t, 201, "operator", http.MethodPost, "/admin/v1/insurance/deposits", deposit, "balance", "1561.9", "type", "insurance")
	d.answered(t, 200, "operator", http.MethodPost, "/admin/v1/insurance/deposits", deposit, "balance", "1561.9")
	d.index("61500")
	taken := d.traded(t, "broker-a", leo, "liquidation", 2)
	taken.has(t, "amount", "0.800", "price", "59580.5", "fee", "0", "order_code", "null", "reference_id", "null", "role", "taker")
	d.summary(t, "broker-a", leo, "balance", "0", "total_equity", "0", "maintenance_margin", "0", "margin_ratio", "0.0000", "risk_state", "normal")
	if held := d.list("broker-a", "/v1/customers/"+leo+"/positions"); len(held) > 0 {
		t.Errorf("LEO holds %v", held)
	}
	offered := func() string { return string(d.must(200, "", http.MethodGet, "/v1/orderbook/"+bitcoin, nil).Body) }
	waitForWord(t, "the fund's offer", func() string {
		if book := offered(); !strings.Contains(book, `"bids":[],"asks":[{"price":"61500.0","amount":"0.800"}]`) {
			return book
		}
		return ""
	})
	d.insured(t, "1561.9", "3097.5", "0.800")
	// BEA buys 0.3 of it, which is a trade like any: the fund gains 0.3 × 1,919.5 and pays no fee.
	d.answered(t, 201, "broker-b", http.MethodPost, "/v1/customers/"+bea+"/orders", `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.3"}`, "status", "filled")
	d.insured(t, "2137.75", "3097.5", "0.500")
}

// insured checks the insurance fund.
func (d *desk) insured(t *testing.T, balance, equity, amount string) {
	t.Helper()
	var fund struct {
		Balance, Equity string
		Positions       []fields
	}
	d.must(200, "operator", http.MethodGet, "/admin/v1/insurance", nil, "X-Min-Log-Position", d.position).decode(t, &fund)
	if fund.Balance != balance || fund.Equity != equity || len(fund.Positions) != 1 || fund.Positions[0]["amount"] != amount || fund.Positions[0]["entry_price"] != "59580.5" {
		t.Errorf("the fund has %+v, want %s, worth %s, and %s", fund, balance, equity, amount)
	}
}

// deleveraged lets the price fall to 58,500, where LIZ has 1,500 of 2,250. The fund, with 1,597.5 and 1,500 more, would need
// 5 % of 87,750: so BEA, who is short 1.5, has to take LIZ's bitcoin at 57,000.
func (d *desk) deleveraged(t *testing.T) {
	d.index("58500")
	d.traded(t, "broker-a", liz, "auto_deleveraging", 1)
	for _, side := range []struct{ user, customer, role, action string }{{"broker-a", liz, "taker", "sell"}, {"broker-b", bea, "maker", "buy"}} {
		all := d.tradesOf(side.user, side.customer, "auto_deleveraging")
		if len(all) != 1 {
			t.Fatalf("%d trades of %s", len(all), side.customer)
		}
		all[0].has(t, "amount", "1.000", "price", "57000.0", "fee", "0", "order_code", "null", "reference_id", "null", "role", side.role, "action", side.action)
	}
	d.summary(t, "broker-a", liz, "balance", "0", "total_equity", "0", "risk_state", "normal")
	// 1,000,000 − 26 for selling; 620 − 2.476 for 0.2, 1,050 − 9.225 for 0.3, and 8,000 for the last bitcoin.
	d.summary(t, "broker-b", bea, "balance", "1009632.299", "unrealised_pnl", "3250", "risk_state", "normal")
	held := d.list("broker-b", "/v1/customers/"+bea+"/positions")
	if len(held) != 1 {
		t.Fatalf("BEA holds %v", held)
	}
	held[0].has(t, "amount", "-0.500", "entry_price", "65000.0", "mark_price", "58500.0")
	d.insured(t, "2137.75", "1597.5", "0.500")
	kinds := ""
	for _, row := range d.pages("broker-a", "/v1/customers/"+liz+"/transactions?") {
		kinds += row["type"] + " " + row["amount"] + "; "
	}
	if kinds != "deposit 8032.5; trade_fee -32.5; auto_deleveraging -8000; " {
		t.Errorf("the rows of LIZ: %s", kinds)
	}
}

// nobodysName wants nobody to have been shown whom they traded with, or who was liquidated.
func (d *desk) nobodysName(t *testing.T, ears []*listener) {
	t.Helper()
	shown := map[string]string{"everybody": string(d.must(200, "", http.MethodGet, "/v1/market-trades?symbol="+bitcoin, nil).Body)}
	for user, own := range map[string][]string{"broker-a": {leo, liz}, "broker-b": {bea}} {
		for _, path := range []string{"/v1/trades", "/v1/transactions", "/v1/positions", "/v1/account-summaries", "/v1/orders", "/v1/customers"} {
			shown[user] += string(d.must(200, user, http.MethodGet, path, nil).Body)
		}
		if !strings.Contains(shown[user], own[0]) {
			t.Errorf("%s is not shown %s", user, own[0])
		}
	}
	for i, user := range []string{"broker-a", "broker-b", "everybody"} {
		for topic, all := range ears[i].heard {
			shown[user] += fmt.Sprint(topic, all)
		}
		for _, m := range ears[i].events.Messages() {
			shown[user] += string(m.Raw)
		}
	}
	for user, others := range map[string][]string{"broker-a": {bea, "insurance-fund"}, "broker-b": {leo, liz, "insurance-fund"}, "everybody": {leo, liz, bea, "insurance-fund"}} {
		for _, name := range others {
			if at := strings.Index(shown[user], name); at >= 0 {
				t.Errorf("%s was shown %s: %.300s", user, name, shown[user][max(0, at-150):])
			}
		}
	}
}
