package e2e

import (
	"net/http"
	"strings"
	"testing"
)

// leaving lets the page's WebSockets be closed by window.leave(), and fail to come back until window.back() is called.
const leaving = `const Socket = window.WebSocket, sockets = [];
let away = false;
window.WebSocket = class extends Socket {
  constructor(address) {
    super(String(address).replace("/v1/ws", away ? "/v1/nowhere" : "/v1/ws"));
    sockets.push(this);
  }
};
window.leave = () => { away = true; for (const s of sockets) s.close(); };
window.back = () => { away = false; };`

// TestConsoleReadsAgain has fills while the page has no connection. They are shown once it is back, without another message.
func TestConsoleReadsAgain(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(leaving)
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	b.open(v.REST + "/")
	b.trader(v, "ANNA")
	b.click("#tab-fills")
	b.sees("#fills-view", "No fills yet")
	b.text(`leave()`)
	b.sees("#banner", "Connection lost")
	v.limit("BEN", "sell", "65000", "0.5")
	v.limit("ANNA", "buy", "65000", "0.2")
	b.text(`back()`)
	b.sees("#light", "Live")
	b.sees("#fills-view", "65,000.0", "0.200")
}

// refuseOnce answers the first subscription to liquidations as if its position were too old. window.asked lists the positions.
const refuseOnce = `const listen = WebSocket.prototype.addEventListener, send = WebSocket.prototype.send;
window.asked = [];
WebSocket.prototype.send = function (text) {
  const m = JSON.parse(text);
  if (m.op === "subscribe" && m.args[0] === "liquidations") {
    window.asked.push(m.resume_from);
    if (window.asked.length === 1) return this.refuse(new MessageEvent("message", { data: JSON.stringify({ op: "error", code: "RESUME_TOO_OLD", message: "too old", args: m.args }) }));
  }
  send.call(this, text);
};
WebSocket.prototype.addEventListener = function (name, listener) {
  if (name === "message") this.refuse = listener;
  listen.call(this, name, listener);
};`

// TestConsoleAsksForNewerLiquidations refuses the position from which the page wants liquidations. It asks again from the present on.
func TestConsoleAsksForNewerLiquidations(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(refuseOnce)
	v := startVenue(t)
	b.open(v.REST + "/")
	b.seesScript("another subscription", `return window.asked.length > 1 ? "it is" : ""`)
	if asked := b.text(`return window.asked.join(" ")`); !strings.HasPrefix(asked, "trading/0@0 ") || strings.HasSuffix(asked, "@0") {
		t.Errorf("the page asked for %s", asked)
	}
	b.sees("#light", "Live")
	b.seesNot("#banner", "Stream refused")
}

// TestConsoleChangesUsers has several users at one page. None sees what only another one may see.
func TestConsoleChangesUsers(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("100000", "ANNA")
	v.limit("ANNA", "buy", "64000", "0.1")
	b.open(v.REST + "/")
	b.logIn(v, "operator")
	b.sees("#customer", "ANNA")
	b.click("#tab-operator")
	b.sees("#operator-view", "Deposit to ANNA")
	b.logOutAndIn(v, "broker-a")
	b.sees("#orders-view", "64,000.0")
	if shown := b.shown("#operator-view"); shown != "" {
		t.Errorf("a broker is offered %s", shown)
	}

	// A session that ends takes the dialogs with it.
	for button, dialog := range map[string]string{".explain": "#explain-dialog", ".amend": "#amend-dialog"} {
		b.click("#orders-view " + button)
		b.sees(dialog, "Close")
		b.text(`document.getElementById("logout").click()`)
		b.sees("#logged-out", "Log in")
		b.seesNot(dialog, "Close")
		b.logIn(v, "broker-a")
		b.sees("#orders-view", "64,000.0")
	}

	// The page before, which the browser has kept, follows a logout on this one.
	for _, page := range []string{"/compliance", "/docs"} {
		b.open(v.REST + "/")
		b.logOutAndIn(v, "operator")
		b.open(v.REST + page)
		b.sees("#who", "operator")
		b.text(`window.kept = true`)
		b.click(`a[href="/"]`)
		b.sees("#entry-title", "Place an order")
		b.click("#logout")
		b.text(`history.back()`)
		b.seesScript(page, `return location.pathname === "`+page+`" && document.readyState === "complete" ? "it is back" : ""`)
		if b.text(`return window.kept ? "kept" : ""`) == "" {
			t.Logf("the browser has not kept %s", page)
		}
		b.sees("#open-login", "Log in")
		b.seesNot("#who", "operator")
	}
	for _, c := range b.complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}

// TestConsoleDeposits makes deposits on the page: one whose answer is lost, and one that waits for a second person.
func TestConsoleDeposits(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("1000", "ANNA", "BEN")
	b.open(v.REST + "/")
	b.logIn(v, "operator")
	b.sees("#customer", "ANNA")
	b.click(`#customer option[value="ANNA"]`)
	b.click("#tab-operator")
	b.text(`const fetched = window.fetch; window.fetch = async (path, o) => {
		const answer = await fetched(path, o);
		if (o?.method !== "POST") return answer;
		window.fetch = fetched;
		throw new TypeError("the answer is lost");
	}`)
	b.fill("#deposit [name=amount]", "70"+enter)
	b.sees("#deposit-result", "not known", "safe")
	b.keys("#deposit [name=amount]", enter)
	b.sees("#deposit-result", "70 USDC deposited, the balance is 1070.")
	b.fill("#deposit [name=amount]", "70"+enter) // once it is answered, the same amount is another deposit
	b.sees("#deposit-result", "the balance is 1140.")
	b.click(`#customer option[value="BEN"]`)
	b.sees("#deposit", "Deposit to BEN")
	b.seesNot("#deposit-result", "deposited")

	v.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/trading", `{"rules":[{"action":"deposit.make","threshold":"50"}]}`)
	b.fill("#deposit [name=amount]", "80"+enter)
	b.sees("#deposit-result", "The deposit of 80 USDC waits for a second person.")
	b.sees(`[data-journal="trading"]`, "deposit.make", "open")
	for _, c := range b.complaints() {
		t.Errorf("the browser complains: %s", c)
	}
}

// TestCompliancePageProposes has an action on a case wait for a second person. A logout leaves nothing of the case in the page.
func TestCompliancePageProposes(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	c := startIntake(t)
	p := c.openCase()
	c.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/onboarding", `{"rules":[{"action":"entitlement_trigger.block"}]}`)
	b.open(c.REST + "/compliance#" + p.trigger)
	b.logIn(c.venue, "operator")
	b.sees("#owner", "Ann", "Lee")
	b.click(`#action option[value="block"]`)
	b.fill("#decide [name=reason]", "We look closer."+enter)
	b.sees("#decide-result", "Block: proposed. A second operator confirms it")
	b.sees("#case-status", "ongoing")
	b.fill("#decide [name=internal_reason]", "A secret")
	b.click("#logout")
	b.sees("#logged-out", "Log in")
	if left := b.text(`return ["owner", "answers", "documents", "timeline", "deliveries"].map((id) => document.getElementById(id).textContent).join("")
		+ document.querySelector("#decide [name=internal_reason]").value`); left != "" {
		t.Errorf("the page still has %s", left)
	}
	for _, said := range b.complaints() {
		t.Errorf("the browser complains: %s", said)
	}
}
