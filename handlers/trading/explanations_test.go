package trading_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/handlers/trading/tradingtest"
)

// explanation is what the tests read of an explanation.
type explanation struct {
	Subjects   []string          `json:"subjects"`
	Command    map[string]any    `json:"command"`
	Arithmetic []arithmetic.Line `json:"arithmetic"`
}

// explained checks an explanation: each calculation is right, and the last one of a name has this result.
func explained(t *testing.T, r *tradingtest.Reply, subjects string, results ...string) {
	t.Helper()
	var x explanation
	r.Want(200).JSON(&x)
	if got := strings.Join(x.Subjects, " "); got != subjects {
		t.Errorf("it is about %s and not %s", got, subjects)
	}
	last := map[string]string{}
	for _, l := range x.Arithmetic {
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		last[l.Name] = l.Result
	}
	for i := 0; i < len(results); i += 2 {
		if last[results[i]] != results[i+1] {
			t.Errorf("%s is %s and not %s: %s", results[i], last[results[i]], results[i+1], r.Body)
		}
	}
}

// TestExplanations explains an order to its taker and its maker, and a rejection, in figures worked out by hand. Package explain
// has the tests of all other records.
func TestExplanations(t *testing.T) {
	v := tradingtest.New(t)
	for _, c := range []struct{ user, code, amount string }{{"broker-a", "A-1", "5025"}, {"broker-b", "B-1", "100000"}} {
		v.Send(c.user, "POST", "/v1/customers", `{"customer_code":"`+c.code+`"}`).Want(201)
		v.Send("operator", "POST", "/admin/v1/customers/"+c.code+"/deposits", `{"currency":"USDC","amount":"`+c.amount+`","reference_id":"d-1"}`).Want(201)
	}
	v.Send("operator", "PUT", "/admin/v1/customers/A-1/margin-profile", `{"initial_margin":"5","maintenance_margin":"2.5"}`).Want(200)
	index := func(price string) {
		v.Send("operator", "POST", "/admin/v1/index-prices/"+btc, `{"price":"`+price+`"}`).Want(200)
	}
	index("50000")
	// A-1 buys 1 at 50,000 for a fee of 5 basis points, and needs 5 % of 50,000.
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "50000")).Want(201)
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "50000", `"reference_id":"first"`)).Want(201)
	order := v.Send("broker-a", "GET", a1+"/orders/"+placed.Text("code")+"/explain", "")
	explained(t, order, "order fill", "notional", "50000", "fee", "25", "balance", "5000", "position", "1.000", "cost", "50000",
		"initial_margin", "2500", "equity", "5000", "reserved_margin", "2500", "available_margin", "2500", "margin_rule", "true")
	if strings.Contains(order.Body, "B-1") || !strings.Contains(order.Body, `"sub":"broker-a"`) || !strings.Contains(order.Body, `"reference_id":"first"`) {
		t.Errorf("what it says of whom: %s", order.Body)
	}
	v.Send("broker-b", "GET", a1+"/orders/"+placed.Text("code")+"/explain", "").Code(404, "UNKNOWN_CUSTOMER")
	v.Send("broker-a", "GET", a1+"/orders/"+placed.Text("code")+"/explain?x=1", "").Want(400)

	// Its next one is too large: 2 at 50,000 need 100,000 × 5 % more, and may cost 50.
	var rejected struct {
		Order struct {
			Code string `json:"code"`
		} `json:"order"`
	}
	v.Send("broker-a", "POST", a1+"/orders", entry("buy", "2", "50000")).Want(422).JSON(&rejected)
	rejection := v.Send("client-a", "GET", a1+"/orders/"+rejected.Order.Code+"/explain", "")
	explained(t, rejection, "rejection", "initial_margin", "7500", "order_fees", "50",
		"available_margin", "-2550", "margin_rule", "false")

	// The maker sees its own side of the record alone.
	made := v.Send("broker-b", "GET", b1+"/records/"+placed.Text("sequence")+"/explain", "")
	explained(t, made, "fill order_change", "notional", "50000", "fee", "10", "position", "-1.000", "cost", "-50000")
	if strings.Contains(made.Body, "A-1") || strings.Contains(made.Body, "first") || !strings.Contains(made.Body, `"command":null`) {
		t.Errorf("what B-1 sees of A-1: %s", made.Body)
	}

	// Records that are of nobody, or do not exist.
	tip := v.Trading.Tip().Sequence
	sequence := placed.Text("sequence")
	v.Send("broker-a", "GET", a1+"/records/"+sequence+"/explain", "").Want(200)
	for _, path := range []string{"0", "1", "x", "-1", "0" + sequence, "+" + sequence, sequence + ".0"} {
		v.Send("broker-a", "GET", a1+"/records/"+path+"/explain", "").Code(404, "UNKNOWN_RECORD")
	}
	registrations := 0 // change no order, position, leverage, or money
	for _, e := range v.Trading.Entries() {
		if e.Record.Command.Type != "customer.register" {
			continue
		}
		registrations++
		r := v.Send("broker-a", "GET", fmt.Sprintf("%s/records/%d/explain", a1, e.Position.Sequence), "").Code(404, "UNKNOWN_RECORD")
		if !strings.Contains(r.Body, "it changes no order, position, leverage, or money of the customer") {
			t.Error(r.Body)
		}
	}
	if registrations == 0 {
		t.Error("no record registers a customer")
	}
	v.Send("broker-a", "GET", a1+"/records/"+fmt.Sprint(tip+1)+"/explain", "").Code(409, "NOT_YET_DECIDED")
	v.Send("broker-a", "GET", a1+"/orders/00000000-0000-8000-8000-000000000000/explain", "").Code(404, "UNKNOWN_ORDER")
}

// TestAnOrderThatTheRowsLack holds the rows back. Until they have the order, no explanation and no answer as of an earlier record says
// that it does not exist.
func TestAnOrderThatTheRowsLack(t *testing.T) {
	v := funded(t)
	release := v.HoldRows()
	before := v.Trading.Tip().String()
	code := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "0.1", "60000")).Want(201).Text("code")
	asOf := a1 + "/orders/" + code
	past(v, "broker-a", asOf, before).Code(503, "SOURCE_UNAVAILABLE")
	path := a1 + "/orders/" + code + "/explain"
	if r := v.Send("broker-a", "GET", path, "", atOnce()...).Code(503, "SOURCE_UNAVAILABLE"); r.Header.Get("Retry-After") != "1" {
		t.Errorf("the client is to ask again after %q seconds", r.Header.Get("Retry-After"))
	}
	unknown := a1 + "/orders/00000000-0000-8000-8000-000000000000/explain"
	v.Send("broker-a", "GET", unknown, "", atOnce()...).Code(503, "SOURCE_UNAVAILABLE")
	release()
	explained(t, v.Send("broker-a", "GET", path, ""), "order")
	v.Send("broker-a", "GET", unknown, "", atOnce()...).Code(404, "UNKNOWN_ORDER")
	past(v, "broker-a", asOf, before).Code(404, "NOT_YET")
}

// TestAnExplainedOrderIsAsOfOneRecord has the order traded while its explanation is read: both the order and its trades are as of the
// position of the answer.
func TestAnExplainedOrderIsAsOfOneRecord(t *testing.T) {
	v := funded(t)
	code := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "65000")).Want(201).Text("code")
	fill := func() {
		v.Send("broker-b", "POST", b1+"/orders", entry("sell", "0.1", "65000")).Want(201)
		v.Send("broker-b", "GET", b1+"/orders", "").Want(200) // the rows have it
	}
	fill()
	tip, reads := v.Trading.Tip().Sequence, 0
	v.BeforeRead(func() {
		if reads++; reads == 2 { // of the order's trades
			fill()
		}
	})
	r := v.Send("broker-a", "GET", a1+"/orders/"+code+"/explain", "").Want(200)
	var x struct {
		Now struct {
			Filled string `json:"filled_amount"`
		} `json:"now"`
		Later []struct {
			Amount string `json:"amount"`
		} `json:"later"`
	}
	if r.JSON(&x); reads < 3 || len(x.Later) != 1 || x.Now.Filled != x.Later[0].Amount || asOf(t, r) != tip {
		t.Errorf("after %d reads, as of %d and not %d: %+v", reads, asOf(t, r), tip, x)
	}
}
