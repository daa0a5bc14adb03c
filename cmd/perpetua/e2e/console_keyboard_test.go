package e2e

import (
	"fmt"
	"net/http"
	"testing"
)

// These are further keys of WebDriver.
const (
	escape     = "\ue00c"
	home       = "\ue011"
	arrowLeft  = "\ue012"
	arrowRight = "\ue014"
)

// press presses keys one after the other, wherever the focus is.
func (b *browser) press(keys ...string) {
	b.t.Helper()
	var actions []map[string]string
	for _, key := range keys {
		actions = append(actions, map[string]string{"type": "keyDown", "value": key}, map[string]string{"type": "keyUp", "value": key})
	}
	b.must(nil, http.MethodPost, "/actions", map[string]any{"actions": []map[string]any{{"type": "key", "id": "keyboard", "actions": actions}}})
}

// tabTo presses the Tab key until the focus is on an element and can be seen there.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	for range 150 {
		if b.text(`return document.activeElement.matches(arguments[0]) ? "there" : ""`, selector) != "" {
			if unseen := b.text(unseenFocus); unseen != "" {
				b.t.Errorf("nobody sees that the focus is on %s", unseen)
			}
			return
		}
		b.press(tab)
	}
	b.t.Fatalf("the Tab key does not reach %s; the focus is on %s", selector, b.text("return document.activeElement.outerHTML.slice(0, 200)"))
}

// TestTheConsoleKeepsTheFocus uses the console by keyboard, also where each row is a card. What had the focus goes away: a row, a
// button, or what a dialog was opened from. The focus then is on what is around it, and not on the next button, which a second press
// would hit.
func TestTheConsoleKeepsTheFocus(t *testing.T) {
	t.Parallel()
	for _, s := range screens[1:] {
		t.Run(fmt.Sprint(s.width), func(t *testing.T) { keepsTheFocus(t, s) })
	}
}

func keepsTheFocus(t *testing.T, s screen) {
	b := startBrowser(t)
	b.setScreen(s.width, s.scheme)
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	b.open(v.REST + "/")
	b.sees("#light", "Live")
	b.tabTo("#open-login")
	b.press(enter)
	b.focused("the username", "#login [name=username]")
	for _, c := range "broker-a" {
		b.press(string(c))
	}
	b.press(tab)
	for _, c := range v.password("broker-a") {
		b.press(string(c))
	}
	b.press(enter)
	b.sees("#who", "broker-a")
	b.focused("who is logged in", "#who")
	b.sees("#entry-customer", "ANNA")

	v.bid("ANNA", "64000")
	b.tabTo("#orders-view .cancel")
	b.press(enter)
	b.sees("#orders-view", "No open orders")
	b.focused("the orders", "#orders-view")

	v.bid("ANNA", "64000")
	v.bid("ANNA", "63000")
	b.sees("#orders-view", "64,000.0", "63,000.0")
	b.tabTo("#cancel-all")
	b.press(enter)
	b.sees("#cancel-all", "Press again")
	b.press(enter)
	b.sees("#orders-view", "No open orders")
	b.focused("the orders", "#orders-view")

	// What changes elsewhere takes the focus from nothing.
	v.bid("ANNA", "64000")
	b.sees("#orders-view", "64,000.0")
	b.tabTo("#entry [name=amount]")
	v.must(200, "broker-a", http.MethodDelete, "/v1/customers/ANNA/orders", nil)
	b.sees("#orders-view", "No open orders")
	b.focused("the amount", "#entry [name=amount]")

	for _, opener := range []string{"explain", "amend"} {
		v.bid("ANNA", "64000")
		b.tabTo("#orders-view ." + opener)
		b.press(enter)
		b.seesScript("the dialog", `return document.querySelector("dialog:modal") ? "open" : ""`)
		v.must(200, "broker-a", http.MethodDelete, "/v1/customers/ANNA/orders", nil)
		b.seesScript("the row to be gone", `return document.querySelector("#orders-view tbody tr") ? "" : "gone"`)
		b.press(escape)
		b.seesScript("the dialog to close", `return document.querySelector("dialog:modal") ? "" : "closed"`)
		b.focused("the orders", "#orders-view")
	}

	v.bid("ANNA", "65000")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/BEN/orders", map[string]string{"symbol": bitcoin, "action": "sell", "type": "market", "amount": "0.1"})
	v.bid("BEN", "64900")
	b.tabTo("#tab-orders")
	b.press(arrowRight)
	b.sees("#positions-view", "BTCUSDC_PERP")
	b.tabTo("#positions-view .close")
	b.press(enter)
	b.sees("#positions-view", "No positions")
	b.focused("the positions", "#positions-view")

	// The slider goes by seconds, and keeps the focus while the account at that moment is drawn. It begins with the account, and ends
	// a while ago, when it is opened: three seconds must be between.
	b.press(tab)
	b.tabTo("#tab-positions")
	for range 4 {
		b.press(arrowRight)
	}
	b.sees("#past-at", "trading/0@")
	b.seesScript("three seconds to go back", `return Date.now() / 1000 - document.querySelector("#past [name=moment]").min > 6 ? "it has" : ""`)
	b.press(arrowLeft, arrowRight)
	b.seesScript("a slider of three seconds", `const { min, max } = document.querySelector("#past [name=moment]"); return max - min >= 3 ? "it has" : ""`)
	b.tabTo("#past [name=moment]")
	shown := b.shown("#past-at")
	b.press(home)
	b.seesNot("#past-at", shown) // but another moment
	b.focused("the slider", "#past [name=moment]")
	b.press(arrowRight, arrowRight, arrowRight)
	if by := b.text(`return document.activeElement.value - document.activeElement.min`); by != "3" {
		t.Errorf("three presses move the slider by %s seconds", by)
	}

	b.tabTo("#logout")
	b.press(enter)
	b.seesScript("nobody to be logged in", `return document.querySelector("#who").hidden ? "nobody" : ""`)
	b.focused("the login", "#open-login")
	b.wantNoComplaints()
}
