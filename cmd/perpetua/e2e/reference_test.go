package e2e

import (
	"strings"
	"testing"
)

// fromElsewhere returns what the page has loaded from another place than the venue.
func (b *browser) fromElsewhere() string {
	b.t.Helper()
	return b.text(`return performance.getEntriesByType("resource").map((e) => e.name).filter((n) => !n.startsWith(location.origin) && !n.startsWith("data:")).join(" ")`)
}

// TestReferenceIsTriedOut reads both references, and tries a request and a subscription out as a reader would.
func TestReferenceIsTriedOut(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("100000", "ANNA")
	b.open(v.REST + "/docs")
	b.sees("#reference", "Perpetua", "Place an order", "Writes that must not happen twice")
	b.screenshot("reference")
	b.click("#open-login")
	b.keys("#login [name=username]", "broker-a")
	b.keys("#login [name=password]", "wrong"+enter)
	b.sees("#login-result", "wrong")
	b.fill("#login [name=password]", v.password("broker-a")+enter)
	b.sees("#who", "broker-a")
	b.fill(".operation-filter-input", "Accounts") // of so many operations the page holds those alone that can be seen
	const operation = "#operations-Accounts-listCustomers"
	b.click(operation + " .opblock-summary-control")
	b.click(operation + " .try-out__btn")
	b.click(operation + " .execute")
	b.sees(operation+" .live-responses-table", "200", `"customer_code": "ANNA"`)
	if b.fromElsewhere() != "" {
		t.Errorf("the page has loaded %s", b.fromElsewhere())
	}

	b.open(v.REST + "/docs/websocket") // in the same tab, so still logged in
	b.sees("#who", "broker-a")
	b.sees("#reference", "One socket, many topics", "order.place", "REPLY INFORMATION")
	b.click("#send .primary")
	b.sees("#socket-state", "authenticated")
	b.sees("#traffic", "subscribed · orderbook-stream:BTCUSDC_PERP", "orderbook-stream:BTCUSDC_PERP · snapshot")
	b.fill("#message", `{"op":"order.place","id":7,"data":{"customer_code":"ANNA","symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.1","limit_price":"64000"}}`)
	b.click("#send .primary")
	b.sees("#traffic", "result · 201", `"limit_price":"64000.0"`)
	b.fill("#message", `{"op":`)
	b.click("#send .primary")
	b.sees("#message-fault", "not JSON")
	b.screenshot("websocket")
	if b.fromElsewhere() != "" {
		t.Errorf("the page has loaded %s", b.fromElsewhere())
	}
	b.narrow()
	if wide := b.text("return String(document.documentElement.scrollWidth - innerWidth)"); wide != "0" {
		t.Errorf("the page is %s pixels wider than the screen", wide)
	}
	b.click("#logout")
	b.seesNot("#who", "broker-a")
	for _, c := range b.complaints() {
		if !strings.Contains(c, "DevTools") {
			t.Errorf("the browser complains: %s", c)
		}
	}
}
