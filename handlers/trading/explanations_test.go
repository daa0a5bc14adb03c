package trading_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
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

// documented finds the calculations of an explanation in README.md, as the command there prints them.
func documented(t *testing.T, r *tradingtest.Reply) {
	t.Helper()
	var x explanation
	r.Want(200).JSON(&x)
	var b strings.Builder
	b.WriteString("```text\n")
	for _, l := range x.Arithmetic {
		b.WriteString(l.Name)
		if l.Subject != "" {
			b.WriteString(" (" + l.Subject + ")")
		}
		var values []string
		for _, v := range l.Values {
			values = append(values, v.Name+" "+v.Text)
		}
		fmt.Fprintf(&b, "\n    %s\n    %s\n    = %s\n", l.Formula, strings.Join(values, ", "), l.Result)
	}
	b.WriteString("```\n")
	page, err := os.ReadFile("explain/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), b.String()) {
		t.Errorf("explain/README.md does not have:\n%s", b.String())
	}
}

// TestExplanations takes accounts through an order, a rejection, a trigger, funding, a settlement, a liquidation, and a
// deleveraging, and has each explained, in figures worked out by hand.
func TestExplanations(t *testing.T) {
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
	const b2 = "/v1/customers/B-2"
	explainRecord := func(user, customer, list, kind string) *tradingtest.Reply {
		t.Helper()
		var rows struct {
			Records []struct {
				Type     string `json:"type"`
				Sequence int64  `json:"sequence"`
			} `json:"records"`
		}
		v.Send(user, "GET", customer+list, "").Want(200).JSON(&rows)
		for _, row := range rows.Records {
			if row.Type == kind {
				return v.Send(user, "GET", fmt.Sprintf("%s/records/%d/explain", customer, row.Sequence), "")
			}
		}
		t.Fatalf("%s has no %s", customer, kind)
		return nil
	}

	// A-1 buys 1 at 50,000 for a fee of 5 basis points, and needs 5 % of 50,000.
	v.Send("broker-b", "POST", b1+"/orders", entry("sell", "1", "50000")).Want(201)
	placed := v.Send("broker-a", "POST", a1+"/orders", entry("buy", "1", "50000", `"reference_id":"first"`)).Want(201)
	order := v.Send("broker-a", "GET", a1+"/orders/"+placed.Text("code")+"/explain", "")
	explained(t, order, "order fill", "notional", "50000", "fee", "25", "balance", "5000", "position", "1.000", "cost", "50000",
		"initial_margin", "2500", "equity", "5000", "reserved_margin", "2500", "available_margin", "2500", "margin_rule", "true")
	if strings.Contains(order.Body, "B-1") || !strings.Contains(order.Body, `"sub":"broker-a"`) || !strings.Contains(order.Body, `"reference_id":"first"`) {
		t.Errorf("what it says of whom: %s", order.Body)
	}
	documented(t, order)
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
	documented(t, rejection)
	explained(t, rejection, "rejection", "initial_margin", "7500", "order_fees", "50",
		"available_margin", "-2550", "margin_rule", "false")

	// A take-profit order of B-2 fires at a mark price of 50,100.
	v.Send("broker-b", "POST", b1+"/orders", entry("buy", "0.1", "50000")).Want(201)
	stop := v.Send("broker-b", "POST", b2+"/orders", `{"symbol":"`+btc+`","action":"sell","type":"take_profit","amount":"0.1","trigger_price":"50100","trigger_price_type":"mark_price"}`).Want(201)
	index("50100")
	index("50100")
	fired := v.Send("broker-b", "GET", b2+"/orders/"+stop.Text("code"), "").Want(200)
	trigger := v.Send("broker-b", "GET", b2+"/records/"+fired.Text("sequence")+"/explain", "")
	documented(t, trigger)
	explained(t, trigger, "trigger order_change fill", "price_reached", "true",
		"notional", "5000", "fee", "2.5")

	// Funding at the full hour, and the settlement at 8:00.
	v.Advance(scalar.Hour)
	index("50000")
	index("50000")
	funding := explainRecord("broker-a", a1, "/transactions?type=funding", "funding")
	documented(t, funding)
	explained(t, funding, "funding")
	v.Advance(24 * scalar.Hour)
	index("50000")
	index("50000")
	settlement := explainRecord("broker-b", b2, "/transactions?type=settlement", "settlement")
	documented(t, settlement)
	explained(t, settlement, "settlement")

	// A-1 is liquidated: TestLiquidation has the figures, without what funding took.
	v.Send("broker-b", "POST", b2+"/orders", entry("buy", "0.2", "45500")).Want(201)
	index("46100")
	index("46100")
	liquidation := explainRecord("client-a", a1, "/trades?type=liquidation", "liquidation")
	documented(t, liquidation)
	explained(t, liquidation, "order_change liquidation", "liquidated", "true", "liquidated_amount", "0.200", "notional", "9100", "liquidation_fee", "45.5",
		"position", "0.800")
	bought := explainRecord("broker-b", b2, "/trades", "trade")
	explained(t, bought, "order_change fill", "notional", "9100")
	for _, foreign := range []string{"A-1", "45.5\"", "liquidat", "equity\":"} {
		if strings.Contains(strings.Split(bought.Body, `"arithmetic"`)[1], foreign) {
			t.Errorf("B-2 sees %s: %s", foreign, bought.Body)
		}
	}
	index("45000")
	index("45000")
	deleveraging := explainRecord("broker-b", b1, "/trades?type=auto_deleveraging", "auto_deleveraging")
	documented(t, deleveraging)
	explained(t, deleveraging, "auto_deleveraging", "fee", "")

	// Records that are of nobody, or do not exist.
	tip := v.Trading.Tip().Sequence
	for path, code := range map[string]string{"0": "UNKNOWN_RECORD", "1": "UNKNOWN_RECORD", fmt.Sprint(tip): "UNKNOWN_RECORD"} {
		v.Send("broker-a", "GET", a1+"/records/"+path+"/explain", "").Code(404, code)
	}
	v.Send("broker-a", "GET", a1+"/records/"+fmt.Sprint(tip+1)+"/explain", "").Code(409, "NOT_YET_DECIDED")
	v.Send("broker-a", "GET", a1+"/orders/00000000-0000-8000-8000-000000000000/explain", "").Code(404, "UNKNOWN_ORDER")
}
