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

// TestReferencePages reads both references, tries a request and a subscription out as a reader would, and checks the pages before
// and after.
func TestReferencePages(t *testing.T) {
	t.Parallel()
	b := startAuditBrowser(t)
	v := startVenue(t)
	v.fillMarket()
	b.open(v.REST + "/docs")
	b.sees("#reference", "Perpetua", "Place an order", "Writes that must not happen twice")
	inOrder(t, b.tabThrough(20), "skip", "open-login", "operation-filter-input", "opblock-summary-control")
	if left := b.text(`return String(document.querySelector(".info .renderedMarkdown h2 + p").getBoundingClientRect().left - document.querySelector(".info .renderedMarkdown h2").getBoundingClientRect().left)`); left != "0" {
		t.Errorf("the paragraphs are indented by %s pixels", left)
	}
	b.accessible("/docs")
	b.screenshot("reference")
	b.click("#open-login")
	b.keys("#login [name=username]", "broker-a")
	b.keys("#login [name=password]", "wrong"+enter)
	b.sees("#login-result", "wrong")
	b.fill("#login [name=password]", v.password("broker-a")+enter)
	b.sees("#who", "broker-a")
	b.fill(".operation-filter-input", "Accounts") // of so many operations the page holds those alone that can be seen
	const list = "#operations-Accounts-listCustomers"
	b.click(list + " .opblock-summary-control")
	b.click(list + " .try-out__btn")
	b.click(list + " .execute")
	b.sees(list+" .live-responses-table", "200", `"customer_code": "ANNA"`)
	b.accessible("/docs tried out")
	b.keys(list+" .opblock-summary-control", enter) // a click could meet what sticks to the top of the page
	b.fill(".operation-filter-input", "Orders")
	const place = "#operations-Orders-placeOrder"
	b.click(place + " .opblock-summary-control")
	b.sees(place, "Request body", "201")
	b.accessible("/docs a write")
	if b.fromElsewhere() != "" {
		t.Errorf("the page has loaded %s", b.fromElsewhere())
	}

	b.open(v.REST + "/docs/websocket") // in the same tab, so still logged in
	b.sees("#who", "broker-a")
	b.sees("#reference", "One socket, many topics", "order.place", "REPLY INFORMATION")
	b.click("#send .primary")
	b.sees("#socket-state", "authenticated")
	b.sees("#traffic", "subscribed · orderbook-stream:BTCUSDC_PERP", "orderbook-stream:BTCUSDC_PERP · snapshot")
	b.paste("#message", `{"op":"order.place","id":7,"data":{"customer_code":"ANNA","symbol":"BTCUSDC_PERP","action":"buy","type":"limit","amount":"0.1","limit_price":"64000"}}`)
	b.click("#send .primary")
	b.sees("#traffic", "result · 201", `"limit_price":"64000.0"`)
	b.fill("#message", `{"op":`)
	b.click("#send .primary")
	b.sees("#message-fault", "not JSON")
	b.screenshot("websocket")
	b.click("#traffic summary")
	inOrder(t, b.tabThrough(30), "skip", "logout", "connect", "example", "message", "pause", "traffic", "burger-menu")
	b.keys(".burger-menu", enter)
	b.sees(".aui-root .sidebar", "PlaceOrder")
	// It is the longest page of all: each width and each scheme is checked, not each pair of them, and what the contents lie over once.
	b.accessibleIn(".aui-root .sidebar", "/docs/websocket contents", screen{400, "light"})
	b.keys(".burger-menu", enter)
	b.seesNot(".aui-root .sidebar", "PlaceOrder")
	b.accessibleIn("html", "/docs/websocket", screen{1440, "dark"}, screen{400, "light"})
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
