package e2e

import (
	"fmt"
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
	v.must(201, "operator", http.MethodPost, "/admin/v1/users", `{"username":"carl","password":"a password","broker":"alpha","customer_code":"ANNA","scopes":["operator","auditor","read","trade"]}`)
	b.click("#logout")
	b.click("#open-login")
	b.fill("#login [name=username]", "carl")
	b.fill("#login [name=password]", "a password"+enter)
	b.sees("#who", "carl")
	b.sees("#orders-view", "64,000.0")
	if shown := b.shown("#tab-operator"); shown != "" {
		t.Errorf("an operator confined to one account is offered %s", shown)
	}
	b.seesNot("#banner", "FORBIDDEN")
	b.logOutAndIn(v, "broker-a")
	b.sees("#orders-view", "64,000.0")

	// A session that ends takes the dialogs with it.
	for button, dialog := range map[string]string{".explain": "#explain-dialog", ".amend": "#amend-dialog"} {
		b.click("#orders-view " + button)
		b.sees(dialog, "Close")
		b.text(`document.getElementById("logout").click()`)
		b.sees("#logged-out", "Log in")
		b.seesNot(dialog, "Close")
		if left := b.text(`return document.getElementById("account").textContent`); strings.Contains(left, "64,000.0") {
			t.Errorf("after a logout the page still has %s", left)
		}
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
		b.back()
		b.seesScript(page, `return location.pathname === "`+page+`" && document.readyState === "complete" ? "it is back" : ""`)
		if b.text(`return window.kept ? "kept" : ""`) == "" {
			t.Logf("the browser has not kept %s", page)
		}
		b.sees("#open-login", "Log in")
		b.seesNot("#who", "operator")
	}
	b.wantNoComplaints()
}

// holdWrite keeps back the page's next write until window.letGo(failure) is called. With a failure the answer is lost.
const holdWrite = `const fetched = window.fetch;
window.letGo = null;
window.fetch = (path, o) => ["GET", undefined].includes(o?.method) ? fetched(path, o) : new Promise((done, fail) => {
  window.fetch = fetched;
  window.letGo = (failure) => fetched(path, { ...o, signal: null }).then((answer) => failure ? fail(failure) : done(answer));
});`

// smallPages has the page read customers one by one. While window.late is set it reads them at once, and the answer waits until
// window.release is called.
const smallPages = `const ask = window.fetch;
window.fetch = async (path, o) => {
  if (!String(path).startsWith("/v1/customers?")) return ask(path, o);
  if (!window.late) return ask(path.replace("page_size=1000", "page_size=1"), o);
  const answer = await ask(path, o);
  const body = await answer.text();
  await new Promise((release) => { window.release = release; });
  return new Response(body, { status: answer.status, headers: answer.headers });
};`

// TestConsoleListsAllCustomers has more customers than a page of the list, and one whose name turns the direction of text around.
// Customers that are read when their user has logged out are not shown.
func TestConsoleListsAllCustomers(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(smallPages)
	v := startVenue(t)
	v.fund("1000", "ANNA", "BEN")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": "EVE", "name": "Eve \u202enna"})
	b.open(v.REST + "/")
	b.trader(v, "BEN")
	b.sees("#customer", "ANNA", `EVE · Eve \u202enna`)
	b.keys("#new-customer [name=customer_code]", "LAST"+enter)
	b.sees("#entry-customer", "for LAST")

	for i := range 7 {
		v.must(201, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": fmt.Sprintf("MORE-%d", i)})
	}
	b.click("#logout")
	b.logIn(v, "broker-a")
	b.sees("#new-customer-result", "first 10 customers") // of eleven: the list has ten pages at most

	b.click("#logout")
	b.text(`window.late = true`)
	b.logIn(v, "broker-a")
	b.seesScript("customers to be read", `return window.release ? "they are" : ""`)
	b.click("#logout")
	b.sees("#logged-out", "Log in")
	b.text(`release(); return fetch("/readyz").then(() => "")`)
	b.sees("#logged-out", "Log in")
	if left := b.text(`return document.getElementById("customer").textContent`); left != "" {
		t.Errorf("after a logout the page still lists %s", left)
	}
	b.wantNoComplaints()
}

// TestConsoleAnswersLate changes the customer before a write about an order is answered. The message names the customer of the order.
func TestConsoleAnswersLate(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	b.open(v.REST + "/")
	b.trader(v, "ANNA")
	b.fill("#entry [name=limit_price]", "64000")
	late := func(what, result, says string, do func()) {
		t.Helper()
		b.click(`#customer option[value="ANNA"]`)
		b.sees("#entry-customer", "ANNA")
		do()
		b.seesScript(what+" to be sent", `return window.letGo ? "it is" : ""`)
		b.click(`#customer option[value="BEN"]`)
		b.sees("#entry-customer", "BEN")
		b.text(`letGo(null)`)
		b.sees(result, says)
	}
	late("an order", "#entry-result", "ANNA: Buy 0.100 BTCUSDC_PERP: open", func() {
		b.text(holdWrite)
		b.fill("#entry [name=amount]", "0.1"+enter)
	})
	late("a refused order", "#entry-result", "ANNA: ", func() {
		b.text(holdWrite)
		b.fill("#entry [name=amount]", "0.00000001"+enter)
	})
	if fault := b.shown("#entry .fault"); fault != "" {
		t.Errorf("the form of BEN shows %q", fault)
	}
	late("a change", "#account-result", "ANNA: Buy 0.200 BTCUSDC_PERP: open", func() {
		b.click("#orders-view .amend")
		b.text(holdWrite)
		b.fill("#amend [name=amount]", "0.2"+enter)
		b.seesScript("the change to be sent", `return window.letGo ? "it is" : ""`)
		b.click("#amend [data-close]")
	})
	late("a cancellation", "#account-result", "ANNA: Buy 0.200 BTCUSDC_PERP: canceled", func() {
		b.sees("#orders-view", "64,000.0")
		b.text(holdWrite)
		b.click("#orders-view .cancel")
	})
	b.wantNoComplaints()
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
	b.sees("#deposit-result", "The deposit of 70 USDC to ANNA had been made before", "The balance after it was 1070.")
	b.fill("#deposit [name=amount]", "70"+enter) // once it is answered, the same amount is another deposit
	b.sees("#deposit-result", "70 USDC deposited to ANNA, the balance is 1140.")
	b.click(`#customer option[value="BEN"]`)
	b.sees("#deposit", "Deposit to BEN")
	b.seesNot("#deposit-result", "deposited")

	// An answer that comes once another customer is shown names its own, and leaves the form as it is.
	for _, late := range []struct{ amount, answer, says string }{
		{"10", "null", "10 USDC deposited to BEN, the balance is 1010."},
		{"20", `new TypeError("the answer is lost")`, "Sending the same to BEN again is safe."},
		{"none", "null", "The deposit of none USDC to BEN was refused"},
	} {
		b.click(`#customer option[value="BEN"]`)
		b.text(holdWrite)
		b.fill("#deposit [name=amount]", late.amount+enter)
		b.seesScript("the deposit to be sent", `return window.letGo ? "it is" : ""`)
		b.click(`#customer option[value="ANNA"]`)
		b.fill("#deposit [name=amount]", "5")
		b.text(`letGo(` + late.answer + `)`)
		b.sees("#deposit-result", late.says)
		if kept := b.text(`return document.querySelector("#deposit [name=amount]").value`); kept != "5" || b.shown("#deposit .fault") != "" {
			t.Errorf("the form of ANNA has %q, and the fault %q", kept, b.shown("#deposit .fault"))
		}
	}
	b.click(`#customer option[value="BEN"]`)

	v.must(200, "operator", http.MethodPut, "/admin/v1/four-eyes/trading", `{"rules":[{"action":"deposit.make","threshold":"50"}]}`)
	b.fill("#deposit [name=amount]", "80"+enter)
	b.sees("#deposit-result", "The deposit of 80 USDC to BEN waits for a second person.")
	b.sees(`[data-journal="trading"]`, "deposit.make", "open")
	b.wantNoComplaints()
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

// TestCompliancePageTurnsAway has answers come once another case was chosen. They leave its form alone, and a refusal names its case.
func TestCompliancePageTurnsAway(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(lateAnswers)
	c := startIntake(t)
	p := c.openCase()
	of, _ := c.register("persons", `{"external_id":"ben","first_name":"Ben","last_name":"Wu"}`)
	other := c.trigger(of, p.entitlement).text("id")
	b.open(c.REST + "/compliance#" + p.trigger)
	b.logIn(c.venue, "operator")
	b.sees("#owner", "Ann", "Lee")
	b.sees("#deliveries", "delivered")
	choose := func(id, owner string) {
		t.Helper()
		b.click(`[data-case="` + id + `"]`)
		b.sees("#owner", owner)
		b.focused("the case", "#case-panel")
	}
	b.focused("the case", "#case-panel")

	// turn does something whose write is kept back, turns to another case, and starts to write about that one.
	turn := func(do func(), to, owner string) {
		t.Helper()
		b.text(holdWrite)
		do()
		b.seesScript("the write to be sent", `return window.letGo ? "it is" : ""`)
		choose(to, owner)
		b.fill("#decide [name=reason]", "Half a reason")
	}
	written := func() {
		t.Helper()
		if kept := b.text(`return document.querySelector("#decide [name=reason]").value`); kept != "Half a reason" {
			t.Errorf("of what was written about the other case there is left: %q", kept)
		}
		if said := b.shown("#decide-result, #replay-result, #decide .fault"); said != "" {
			t.Errorf("under the other case the page says %q", said)
		}
	}
	// answered lets the write be answered, and waits until the page looks at a case because of that.
	answered := func(shown string) {
		t.Helper()
		b.seesScript("all reads to be answered", `answers.paused = true; return answers.open > 1 ? "" : "they are"`)
		b.text(`answers.watched = arguments[0]; answers.before = answers.asked; letGo()`, "/entitlement_triggers/"+shown)
		b.seesScript("another look", `return answers.asked > answers.before ? "begun" : ""`)
		b.text(`answers.paused = false`)
	}
	turn(func() { b.click(`#deliveries [data-key="replay"]`) }, other, "Ben")
	answered(other)
	written()

	choose(p.trigger, "Ann")
	b.keepBack("/entitlement_triggers/"+p.trigger, func() { b.click(`[data-case="` + p.trigger + `"]`) })
	choose(other, "Ben")
	b.fill("#decide [name=reason]", "Half a reason")
	b.seesScript("all reads to be answered", `answers.paused = true; return answers.open > 1 ? "" : "they are"`)
	b.text(`answers.release()`)
	b.seesScript("the read that was late to be answered", `return answers.open ? "" : "it is"`)
	b.focused("what is written", "#decide [name=reason]")
	b.text(`answers.paused = false`)
	written()

	choose(p.trigger, "Ann")
	turn(func() {
		b.click(`#action option[value="block"]`)
		b.fill("#decide [name=reason]", "We look closer."+enter)
	}, other, "Ben")
	answered(other)
	b.sees(`[data-case="`+p.trigger+`"]`, "blocked")
	written()

	turn(func() {
		b.click(`#action option[value="approve"]`)
		b.fill("#decide [name=reason]", "Welcome."+enter)
	}, p.trigger, "Ann")
	b.text(`letGo()`)
	b.sees("#banner", "Approve, for the case "+other, "REQUIREMENTS_OPEN")
	written()
	for _, said := range b.complaints() {
		t.Errorf("the browser complains: %s", said)
	}
}
