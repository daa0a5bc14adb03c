package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// slideTo moves the slider of past moments to a part of its way, from 0 to 1, and waits until the page shows that moment. An answer
// that comes later would replace what is typed next.
func (b *browser) slideTo(part float64) {
	b.t.Helper()
	b.text(`const [part] = arguments, s = document.querySelector("#past [name=moment]");
		document.querySelector("#past-at").textContent = "";
		s.value = Number(s.min) + part * (Number(s.max) - Number(s.min));
		s.dispatchEvent(new Event("input", { bubbles: true }));`, part)
	b.sees("#past-at", "As of trading/0@")
}

// seesSlider waits until the slider of past moments is at its first moment that is not before a timestamp, and the text at it shows the
// timestamp.
func (b *browser) seesSlider(timestamp string) {
	b.t.Helper()
	if !b.until(`const at = new Date(arguments[0]), s = document.querySelector("#past [name=moment]"), text = document.querySelector("#past-moment").textContent;
		return Number(s.value) === Math.ceil(at / 1000) && text.endsWith(at.toTimeString().slice(0, 8)) && text === s.getAttribute("aria-valuetext")`, timestamp) {
		b.t.Fatalf("the slider shows %q, want %s", b.text(`return document.querySelector("#past-moment").textContent`), timestamp)
	}
}

// TestConsoleExplains opens the explanations of a fill, an order and a posting, and gets a receipt.
func TestConsoleExplains(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	v.limit("BEN", "sell", "65000", "0.5")
	v.limit("ANNA", "buy", "65000", "0.2")
	v.limit("ANNA", "buy", "64000", "0.1")
	b.open(v.REST + "/")
	b.trader(v, "ANNA")

	b.click("#tab-fills")
	b.click("#fills-view .explain")
	b.sees("#explain-title", "Record #", "order, fill")
	b.sees("#explain-body", "order.place", "broker-a", "Best ask", "65,000.0", "trade fee")
	var explained struct {
		Arithmetic []struct{ Name, Formula, Result string }
	}
	var fills struct{ Records []struct{ Sequence int64 } }
	read := func(path string, into any) {
		t.Helper()
		if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA"+path, nil).Body, into); err != nil {
			t.Fatal(err)
		}
	}
	read("/trades", &fills)
	read(fmt.Sprintf("/records/%d/explain", fills.Records[0].Sequence), &explained)
	if len(explained.Arithmetic) == 0 {
		t.Fatal("the record has no arithmetic")
	}
	for _, line := range explained.Arithmetic {
		b.sees(".arithmetic", line.Formula, "= "+line.Result)
	}
	b.click("#explain-body .receipt")
	b.sees("#explain-body .result", "records has it", "receipt-trading-0-", ".json")
	b.sees("#explain-body .result code", "perpetua receipt verify")
	b.click("#explain-dialog [data-close]")

	b.click("#tab-orders")
	b.click("#orders-view .explain")
	b.sees("#explain-title", "order")
	b.sees("#explain-body", "Since then", "open at 64,000.0", "No later trades")
	b.click("#explain-dialog [data-close]")

	b.click("#tab-ledger")
	b.sees("#ledger-view", "deposit")
	b.click("#ledger-view tr:last-child .explain")
	b.sees("#explain-title", "transfer")
	b.sees("#explain-body", "100,000", "No rule with arithmetic")
	b.click("#explain-dialog [data-close]")
	b.wantNoComplaints()
}

// TestConsoleLooksBack shows an account as of moments that the slider or the field names.
func TestConsoleLooksBack(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	v.limit("BEN", "sell", "65000", "0.5")
	resting := v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
		map[string]any{"symbol": "BTCUSDC_PERP", "action": "buy", "type": "limit", "limit_price": "64000", "amount": "0.1"})
	before := resting.Header.Get("X-Log-Position")
	v.must(200, "broker-a", http.MethodDelete, "/v1/customers/ANNA/orders/"+resting.get("code"), nil)
	v.limit("ANNA", "buy", "65000", "0.2")
	b.open(v.REST + "/")
	b.trader(v, "ANNA")
	b.click("#tab-past")
	waitFor(t, "the slider to reach to the present", func() bool { // its end is two seconds before it
		b.click("#tab-past")
		return b.text(`return document.querySelector("#past-positions").textContent`) != "" && b.shown("#past-positions .list") != ""
	})
	b.sees("#past-at", "As of trading/0@")
	b.sees("#past-positions", "BTCUSDC_PERP", "0.200", "65,000.0")
	b.sees("#past-orders", "No open orders at that moment")
	b.sees("#past-book", "Ask amount", "65,000.0", "0.300")
	b.seesNot("#past-book", "64,000.0")

	b.fill("#past [name=as_of]", before+enter)
	b.sees("#past-at", "As of "+before)
	b.sees("#past-orders", "64,000.0", "0.100", "open")
	b.sees("#past-positions", "No positions at that moment")
	b.sees("#past-balances", "100,000")
	b.sees("#past-book", "65,000.0", "0.500", "64,000.0", "0.100")
	b.seesSlider(resting.get("created"))
	var fills struct {
		Records []struct{ Timestamp time.Time }
	}
	if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/trades", nil).Body, &fills); err != nil || len(fills.Records) != 1 {
		t.Fatalf("%v, %v", fills, err)
	}
	second := fills.Records[0].Timestamp.Truncate(time.Second).Add(time.Second).Format(time.RFC3339)
	b.fill("#past [name=as_of]", second+enter)
	b.sees("#past-positions", "BTCUSDC_PERP", "0.200", "65,000.0")
	b.seesSlider(second)
	b.fill("#past [name=as_of]", before+enter)
	b.sees("#past-at", "As of "+before)
	b.seesSlider(resting.get("created"))
	b.sees("#past-book", "64,000.0", "0.100")
	b.click(`#past [name=symbol] option[value="ETHUSDC_PERP"]`)
	b.sees("#past-book", "The book of ETHUSDC_PERP was empty at that moment")
	b.click(`#past [name=symbol] option[value="BTCUSDC_PERP"]`)
	b.sees("#past-book", "64,000.0", "0.100")
	b.click("#past-orders .explain")
	b.sees("#explain-body", "Since then", "canceled, user request")
	b.click("#explain-dialog [data-close]")

	b.fill("#past [name=as_of]", "yesterday"+enter)
	b.sees("#past .fault", "must be one of RFC 3339")
	b.fill("#past [name=as_of]", "trading/0@100000"+enter)
	b.sees("#past-result", "NOT_YET_DECIDED")
	b.slideTo(0) // the first second with a posting, which has later records, too
	b.sees("#past-balances", "USDC")
	b.slideTo(1)
	b.sees("#past-positions", "BTCUSDC_PERP", "0.200")
	b.fill("#past [name=as_of]", "trading/0@1"+enter)
	b.sees("#past-result", "NOT_YET")
	b.wantNoComplaints()
}
