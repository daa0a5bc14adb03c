package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// The story's people: ANNA and BEN trade through broker-a, CARL has an account with broker-b and does nothing.
const (
	annasOrders = "/v1/customers/ANNA/orders"
	bensOrders  = "/v1/customers/BEN/orders"
)

// audience is who listens while the story goes on.
type audience struct {
	brokerA, brokerB *livetest.Client // with a broker's token
	anna             *livetest.Client // with a token for one account
	public           *livetest.Client // with none
}

const bitcoin, ether = "BTCUSDC_PERP", "ETHUSDC_PERP"

// listen connects everybody, who are told of what comes after. ANNA's own user must be there.
func listen(t *testing.T, d *desk) *audience {
	t.Helper()
	d.folded() // or what came before would come to the sockets after all
	private := []string{"orders", "trades", "balance-changes"}
	a := &audience{
		brokerA: livetest.Dial(t, d.WebSocket, d.token("broker-a")),
		brokerB: livetest.Dial(t, d.WebSocket, ""),
		anna:    livetest.Dial(t, d.WebSocket, d.token("anna")),
		public:  livetest.Dial(t, d.WebSocket, ""),
	}
	a.brokerB.Authenticate(d.token("broker-b")) // the other way to do it
	a.brokerA.Subscribe(private...)
	a.brokerB.Subscribe(private...)
	a.anna.Subscribe("orders", "trades") // balance-changes is for brokers
	a.public.Subscribe("orderbook-stream:"+bitcoin, "market-trades:"+bitcoin, "orderbook-stream:"+ether, "market-trades:"+ether)
	return a
}

// order places an order and checks the answer: its status, then members in pairs.
func (d *desk) order(t *testing.T, status int, path, body string, pairs ...string) fields {
	t.Helper()
	return d.answered(t, status, "broker-a", http.MethodPost, path, body, pairs...)
}

// expiring enters an order of ANNA's that expires soon. On a busy machine that time may have passed when the order is decided, which
// is refused: then it gets twice as long.
func (d *desk) expiring(t *testing.T, body string) (order fields) {
	t.Helper()
	in := 3 * time.Second
	waitFor(t, "an order that is entered before it expires", func() bool {
		soon := stamp(time.Now().Add(in))
		in *= 2
		a := d.insist(201, func() answer {
			return d.do("broker-a", http.MethodPost, annasOrders, `{`+body+`,"time_in_force":"GTD","expire_time":"`+soon+`"}`)
		})
		if a.code() == "INVALID_EXPIRE_TIME" {
			return false
		}
		if a.Status != 201 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		a.decode(t, &order)
		order.has(t, "expire_time", soon)
		return true
	})
	return order
}

// answered sends a request and checks its answer, an object.
func (d *desk) answered(t *testing.T, status int, user, method, path string, body any, pairs ...string) fields {
	t.Helper()
	return d.answeredWith(t, status, user, method, path, body, nil, pairs...)
}

// answeredWith is answered with headers of the request, in pairs.
func (d *desk) answeredWith(t *testing.T, status int, user, method, path string, body any, headers []string, pairs ...string) (f fields) {
	t.Helper()
	d.must(status, user, method, path, body, headers...).decode(t, &f)
	f.has(t, pairs...)
	return f
}

// tellStory lets two customers trade. Every figure in it is worked out by hand, from the rules and not from the code.
// Nobody but the story writes meanwhile.
func tellStory(t *testing.T, d *desk, a *audience) {
	// ANNA offers; BEN takes a part of it with a limit order and the rest with a market order for more than there is.
	anna := d.order(t, 201, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.1","limit_price":"65000","reference_id":"anna-1"}`,
		"status", "open", "amount", "0.100", "filled_amount", "0.000", "filled_quote", "0", "limit_price", "65000.0", "average_fill_price", "null",
		"time_in_force", "GTC", "trigger_price", "null", "reason", "null", "reference_id", "anna-1")
	if _, there := anna["cash_amount"]; there {
		t.Error("an order sized in contracts has a cash_amount")
	}
	d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.040","limit_price":"65010.0"}`,
		"status", "filled", "filled_amount", "0.040", "filled_quote", "2600", "average_fill_price", "65000.0")
	d.answered(t, 200, "broker-a", http.MethodGet, annasOrders+"/"+anna["code"], nil,
		"status", "partially_filled", "filled_amount", "0.040", "filled_quote", "2600")
	d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.100"}`,
		"status", "canceled", "reason", "ioc_remainder", "filled_amount", "0.060", "filled_quote", "3900", "limit_price", "null", "time_in_force", "IOC")
	// fees: 2600 and 3900 at 5 and 2 basis points
	d.balance(t, "ANNA", "9998.7", "BEN", "4997.25000001")

	// BEN bids, amends twice, is hit in part, and cancels the rest.
	ben := d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.333","limit_price":"64000.5","reference_id":"ben-1"}`, "status", "open")
	at := bensOrders + "/" + ben["code"]
	d.answered(t, 200, "broker-a", http.MethodPatch, at, `{"amount":"0.300"}`, "status", "open", "amount", "0.300", "code", ben["code"])
	d.answered(t, 200, "broker-a", http.MethodPatch, at, `{"limit_price":"64000.7"}`, "limit_price", "64000.7", "amount", "0.300")
	d.order(t, 201, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.170","limit_price":"64000.0","time_in_force":"IOC"}`,
		"status", "filled", "filled_quote", "10880.119", "average_fill_price", "64000.7")
	d.answered(t, 200, "broker-a", http.MethodDelete, at, nil,
		"status", "canceled", "reason", "user_request", "amount", "0.300", "filled_amount", "0.170", "filled_quote", "10880.119")
	d.must(409, "broker-a", http.MethodDelete, at, nil) // terminal
	// 10880.119 at 5 basis points is 5.4400595, at 2 it is 2.1760238
	d.balance(t, "ANNA", "9993.2599405", "BEN", "4995.07397621")

	// A part of the positions is closed: 0.05 of 0.27, which cost 17380.119. Their cost is 3218.540555…, rounded half
	// to even, and the closing P&L the difference to 3255.015.
	d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.050","limit_price":"65100.3","post_only":true}`, "status", "open", "post_only", "true")
	d.order(t, 201, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","amount":"0.050","reduce_only":true}`, "status", "filled", "filled_quote", "3255.015")
	// ANNA: − 36.47444444 − 1.6275075; BEN: + 36.47444444 − 0.651003
	d.balance(t, "ANNA", "9955.15798856", "BEN", "5030.89741765")
	var positions []fields
	d.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/positions", nil).decode(t, &positions)
	if len(positions) != 1 {
		t.Fatalf("positions %v", positions)
	}
	// cost 14161.57844444 for 0.22
	positions[0].has(t, "amount", "0.220", "entry_price", "64370.81111109", "notional", "14300", "unrealised_pnl", "138.42155556", "mark_price", "65000.0")

	// Another fee profile, another leverage, a cash order: 500 buys 0.007 at 65200.5, for 456.4035.
	d.answered(t, 200, "broker-a", http.MethodPut, "/v1/customers/BEN/fee-profile/BTCUSDC_PERP", `{"maker_fee":"1","taker_fee":"3.5"}`, "maker_fee", "1", "taker_fee", "3.5", "symbol", bitcoin)
	d.order(t, 201, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"sell","type":"limit","amount":"0.010","limit_price":"65200.5"}`, "status", "open")
	d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","cash_amount":"500","leverage":"12"}`,
		"status", "filled", "cash_amount", "500", "amount", "0.007", "filled_amount", "0.007", "filled_quote", "456.4035", "average_fill_price", "65200.5")
	// 456.4035 at 2 basis points: 0.0912807; at 3.5: 0.159741225, away from zero in the eighth decimal
	d.balance(t, "ANNA", "9955.06670786", "BEN", "5030.73767642")

	// What cannot be is rejected and kept, or canceled.
	d.order(t, 422, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.003","limit_price":"65200.5","post_only":true}`, "code", "POST_ONLY_WOULD_CROSS")
	d.order(t, 422, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"900","limit_price":"64000.0"}`, "code", "INSUFFICIENT_MARGIN")
	d.order(t, 422, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.001","limit_price":"78000.1"}`, "code", "PRICE_OUT_OF_BAND")
	d.order(t, 422, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"market","cash_amount":"65"}`, "code", "CASH_AMOUNT_TOO_SMALL")
	d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.004","limit_price":"65200.5","time_in_force":"FOK"}`, "status", "canceled", "reason", "fok_not_fillable", "filled_amount", "0.000")
	d.order(t, 201, annasOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.003","limit_price":"65200.5","time_in_force":"IOC"}`, "status", "canceled", "reason", "ioc_remainder") // the ask was her own

	// Every order of one instrument is canceled, then the rest.
	for _, price := range []string{"64999.9", "64999.8", "64999.8"} {
		d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.010","limit_price":"`+price+`"}`, "status", "open")
	}
	d.order(t, 201, bensOrders, `{"symbol":"ETHUSDC_PERP","action":"buy","type":"limit","amount":"1.5","limit_price":"2000.25"}`, "status", "open", "amount", "1.50", "limit_price", "2000.25")
	if n := len(d.list("broker-a", "/v1/orders?customer_code=BEN")); n != 4 {
		t.Errorf("%d open orders", n)
	}
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders+"?symbol=BTCUSDC_PERP", nil, "canceled", "3")
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders, nil, "canceled", "1")
	d.answered(t, 200, "broker-a", http.MethodDelete, bensOrders, nil, "canceled", "0")

	// One order expires, one is canceled by the dead man's switch.
	gtd := d.expiring(t, `"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.020","limit_price":"60000"`)
	dead := d.order(t, 201, bensOrders, `{"symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.030","limit_price":"60000.0"}`)
	d.answered(t, 200, "broker-a", http.MethodPost, "/v1/customers/BEN/cancel-all-after", `{"timeout_seconds":1}`, "timeout_seconds", "1")
	for code, end := range map[string][2]string{gtd["code"]: {"expired", "null"}, dead["code"]: {"canceled", "cancel_all_after"}} {
		a.brokerA.Until("the end of "+code, func(all []livetest.Message) bool {
			for _, m := range all {
				if f := m.Fields(); f["code"] == code && f["status"] == end[0] && (f["reason"] == end[1] || end[1] == "null") {
					return true
				}
			}
			return false
		})
	}

	// A withdrawal that is completed, one that is canceled, one that is too large.
	const withdrawals = "/admin/v1/customers/ANNA/withdrawals"
	done := d.answered(t, 201, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"1000.5","reference_id":"w1"}`, "status", "pending", "amount", "-1000.5")
	if _, there := done["balance"]; there {
		t.Error("a pending withdrawal has a balance")
	}
	d.balance(t, "ANNA", "9955.06670786") // reserved, not gone
	d.answered(t, 200, "operator", http.MethodPost, "/admin/v1/withdrawals/"+done["code"]+"/complete", nil, "status", "completed", "balance", "8954.56670786", "code", done["code"])
	undone := d.answered(t, 201, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"0.00000001","reference_id":"w2"}`, "status", "pending")
	d.answered(t, 200, "operator", http.MethodPost, "/admin/v1/withdrawals/"+undone["code"]+"/cancel", nil, "status", "canceled")
	d.must(409, "operator", http.MethodPost, "/admin/v1/withdrawals/"+undone["code"]+"/complete", nil)
	d.must(422, "operator", http.MethodPost, withdrawals, `{"currency":"USDC","amount":"8954.56670787","reference_id":"w3"}`)
	d.balance(t, "ANNA", "8954.56670786", "BEN", "5030.73767642")
}

// balance checks balances, given in pairs of customer and balance.
func (d *desk) balance(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		summary := d.list("broker-a", "/v1/customers/"+pairs[i]+"/account-summary")
		if len(summary) != 1 || summary[0]["balance"] != pairs[i+1] {
			t.Errorf("the summary of %s is %v, want the balance %s", pairs[i], summary, pairs[i+1])
		}
	}
}
