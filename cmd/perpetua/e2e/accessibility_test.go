package e2e

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/web/files/filestest"
)

// TestAxeIsVendored compares the vendored copy of axe-core with its README.
func TestAxeIsVendored(t *testing.T) { filestest.Vendored(t, axeFolder) }

const axeFolder = "testdata/axe"

// axe is the source of axe-core.
var axe = sync.OnceValues(func() (string, error) {
	f, err := os.Open(filepath.Join(axeFolder, "axe.min.js.gz"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), err
})

// impacts are axe-core's levels, worst first. The tests tolerate none of the first two.
var impacts = []string{"critical", "serious", "moderate", "minor"}

// violation is one rule of axe-core that the page breaks, with the elements that break it.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		Impact         string
		HTML           string
		FailureSummary string
	}
}

// String describes the violation with one element for each distinct cause.
func (v violation) String() string {
	text := fmt.Sprintf("%s: %s (%s), %d elements", v.Impact, v.Help, v.ID, len(v.Nodes))
	known := make(map[string]bool)
	for _, n := range v.Nodes {
		if cause := n.FailureSummary; !known[cause] {
			known[cause] = true
			text += fmt.Sprintf("\n  %.300s\n    %s", n.HTML, strings.ReplaceAll(cause, "\n", "\n    "))
		}
	}
	return text
}

// runAxe runs axe-core in the part of the page that a selector finds, and returns what is wrong with it.
func (b *browser) runAxe(part string) (list []violation) {
	b.t.Helper()
	source, err := axe()
	if err != nil {
		b.t.Fatal(err)
	}
	if b.text("return typeof window.axe") != "object" {
		b.text(source)
	}
	var outcome struct {
		Error      string
		Passes     int
		Violations []violation
	}
	b.must(&outcome, http.MethodPost, "/execute/async", map[string]any{"args": []any{part}, "script": `const done = arguments[1];
		axe.run(arguments[0], { resultTypes: ["violations"] }).then((r) => done({ passes: r.passes.length, violations: r.violations }), (e) => done({ error: String(e) }))`})
	if outcome.Error != "" {
		b.t.Fatalf("axe-core failed: %s", outcome.Error)
	}
	if outcome.Passes < 5 {
		b.t.Fatalf("axe-core looked at next to nothing: %d rules passed", outcome.Passes)
	}
	return outcome.Violations
}

// setScreen gives the page a width, and the light or dark color scheme.
func (b *browser) setScreen(width int, scheme string) {
	b.t.Helper()
	b.devtools("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false})
	b.devtools("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
	// Two frames later the page has been laid out for it. Colors may still be changing: axe-core would read what is between two.
	b.must(nil, http.MethodPost, "/execute/async", map[string]any{"args": []any{}, "script": `const done = arguments[0];
		const frame = () => new Promise(requestAnimationFrame);
		const changes = () => document.getAnimations().filter((a) => a instanceof CSSTransition).map((a) => a.finished);
		frame().then(frame).then(() => Promise.allSettled(changes())).then(() => done())`})
}

// tooWide says by how much the page is wider than the window, and what reaches beyond it.
const tooWide = `const e = document.documentElement;
if (e.scrollWidth <= e.clientWidth) return "";
const wide = [...document.querySelectorAll("body *")].filter((x) => x.getBoundingClientRect().right > e.clientWidth);
return e.scrollWidth + " in " + e.clientWidth + " pixels:\n" + wide.slice(0, 10).map((x) => x.outerHTML.slice(0, 120)).join("\n")`

// outOfReach lists the controls that are not wholly inside the window, or that a box around them cuts off at its side. Such a
// control can neither be seen nor clicked. Links inside text and what only screen readers see are left out.
const outOfReach = `const out = [];
for (const e of document.querySelectorAll("button, input, select, textarea, summary, [role=tab]")) {
  if (!e.checkVisibility({ visibilityProperty: true }) || e.closest(".unseen, [inert]")) continue;
  const modal = document.querySelector("dialog:modal");
  if (modal && !modal.contains(e)) continue;
  const at = e.getBoundingClientRect();
  if (!at.width) continue;
  let by = at.right > document.documentElement.clientWidth + 1 || at.left < -1 ? "the window" : "";
  for (let box = e.parentElement; box && !by; box = box.parentElement) {
    if (getComputedStyle(box).overflowX === "visible") continue;
    const around = box.getBoundingClientRect();
    if (at.right > around.right + 1 || at.left < around.left - 1) by = box.id || box.className || box.tagName;
  }
  if (by) out.push((e.getAttribute("aria-label") || e.id || e.name || e.textContent).trim() + " is cut off by " + by);
}
return out.join("; ")`

// screen is the window and the color scheme that a page is checked in.
type screen struct {
	width  int
	scheme string
}

// screens are those of every page. Colors do not depend on the width, so one width is enough for the dark ones.
var screens = []screen{{1440, "light"}, {1440, "dark"}, {400, "light"}}

// accessible checks the page as it is now on each screen: axe-core finds nothing serious or critical, the page is no wider than the
// window, and every control is inside it. The state names what is shown, in the log and in the names of screenshots.
func (b *browser) accessible(state string) {
	b.t.Helper()
	b.accessibleIn("html", state, screens...)
}

// accessibleIn is accessible for some screens only. Axe-core looks at a part of the page.
func (b *browser) accessibleIn(part, state string, on ...screen) {
	b.t.Helper()
	for _, s := range on {
		b.setScreen(s.width, s.scheme)
		at := fmt.Sprintf("%s, %d px, %s", state, s.width, s.scheme)
		counts := make(map[string]int)
		for _, v := range b.runAxe(part) {
			counts[v.Impact] += len(v.Nodes)
			report := b.t.Logf
			if v.Impact == "critical" || v.Impact == "serious" {
				report = b.t.Errorf
			}
			report("%s: %s", at, v)
		}
		row := fmt.Sprintf("| %s | %d | %s |", state, s.width, s.scheme)
		for _, impact := range impacts {
			row += fmt.Sprintf(" %d |", counts[impact])
		}
		b.t.Log(row)
		if over := b.text(tooWide); over != "" {
			b.t.Errorf("%s: the page is wider than the window: %s", at, over)
		}
		if cut := b.text(outOfReach); cut != "" {
			b.t.Errorf("%s: %s", at, cut)
		}
		b.wholeScreenshot(fmt.Sprintf("%s-%d-%s", strings.NewReplacer("/", "", " ", "-").Replace(state), s.width, s.scheme))
	}
	b.setScreen(1440, "light")
}

// unseenFocus says what the focus is on, unless it is drawn: by an outline or a shadow of the element, of its label, or of the text
// beside an input that is not shown itself.
const unseenFocus = `const at = document.activeElement;
const shows = (e) => { const s = getComputedStyle(e); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0 || s.boxShadow !== "none"; };
const drawn = [at, at.nextElementSibling, at.closest("label"), ...at.querySelectorAll("h1, h2, h3")].filter(Boolean).some(shows);
const box = at.getBoundingClientRect();
const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0;
return at === document.body || drawn && inside ? "" : at.outerHTML.slice(0, 200)`

// tabThrough presses the Tab key until it has been at as many elements as given, or at the end of the page, and wants every one to be
// shown as focused. It returns the elements' ids and names, in order.
func (b *browser) tabThrough(most int) string {
	b.t.Helper()
	b.text(`document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute("tabindex"); scrollTo(0, 0)`)
	var order []string
	for range most {
		b.must(nil, http.MethodPost, "/actions", map[string]any{"actions": []map[string]any{{"type": "key", "id": "keyboard",
			"actions": []map[string]string{{"type": "keyDown", "value": tab}, {"type": "keyUp", "value": tab}}}}})
		if unseen := b.text(unseenFocus); unseen != "" {
			b.t.Errorf("nobody sees that the focus is on %s", unseen)
		}
		at := b.text(`const at = document.activeElement; return at === document.body ? "" : at.id || at.name || at.className || at.textContent.trim().slice(0, 30) || at.tagName`)
		if at == "" {
			break
		}
		order = append(order, at)
	}
	return strings.Join(order, " ")
}

// skipsNowhere wants Tab to reach no skip link, since the panel that it leads to is hidden.
func (b *browser) skipsNowhere() {
	b.t.Helper()
	if order := b.tabThrough(10); strings.Contains(order, "skip") || !strings.Contains(order, "theme") {
		b.t.Errorf("Tab leads through %s", order)
	}
}

// tab is the Tab key.
const tab = "\ue004"

// inOrder wants texts to follow each other in a text.
func inOrder(t testing.TB, text string, parts ...string) {
	t.Helper()
	rest := text
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p)
		if !found {
			t.Errorf("%s is not where it should be in %s", p, text)
			return
		}
		rest = after
	}
}

// wholeScreenshot saves a picture of the whole page if screenshots are wanted, or of its first 5,000 pixels.
func (b *browser) wholeScreenshot(name string) {
	b.t.Helper()
	folder := os.Getenv(screenshotsVariable)
	if folder == "" {
		return
	}
	var size []float64
	if err := json.Unmarshal([]byte(b.text(`const e = document.documentElement; scrollTo(0, 0); return JSON.stringify([innerWidth, Math.max(900, Math.min(5000, e.scrollHeight))])`)), &size); err != nil {
		b.t.Fatal(err)
	}
	var picture struct{ Data string }
	b.must(&picture, http.MethodPost, "/goog/cdp/execute", map[string]any{"cmd": "Page.captureScreenshot", "params": map[string]any{
		"captureBeyondViewport": true, "clip": map[string]any{"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}}})
	content, err := base64.StdEncoding.DecodeString(picture.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name+".png"), content, 0o600)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// startAuditBrowser starts a browser with the first of the screens.
func startAuditBrowser(t testing.TB) *browser {
	t.Helper()
	b := startBrowser(t)
	b.setScreen(1440, "light")
	return b
}

// fillMarket gives a venue all that the console can show: a book, trades, a liquidation, and for ANNA a position, open orders, an
// order that was canceled, fills and postings.
func (v *venue) fillMarket() {
	v.t.Helper()
	v.fund("4000", "ANNA")
	v.fund("200000", "BEN")
	index := func(price string) {
		v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]string{"price": price})
	}
	v.limit("BEN", "sell", "65000", "0.5")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders",
		map[string]any{"symbol": "BTCUSDC_PERP", "action": "buy", "type": "market", "amount": "0.5", "leverage": 10})
	v.limit("BEN", "buy", "63400", "0.3")
	index("57000") // part of ANNA's position is liquidated
	waitFor(v.t, "a liquidation", func() bool {
		return strings.Contains(string(v.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/trades", nil).Body), `"liquidation"`)
	})
	index("65000")
	v.must(200, "broker-a", http.MethodDelete, "/v1/customers/BEN/orders", nil)
	v.must(201, "operator", http.MethodPost, "/admin/v1/customers/ANNA/deposits",
		map[string]string{"currency": "USDC", "amount": "20000", "reference_id": "anna-again"})
	for i := range 8 {
		v.limit("BEN", "sell", fmt.Sprintf("%d", 65100+10*i), "0.25")
		v.limit("BEN", "buy", fmt.Sprintf("%d", 64900-10*i), "0.15")
	}
	v.must(201, "broker-a", http.MethodPost, "/v1/customers", map[string]string{"customer_code": "WITH-A-CODE-OF-THIRTY-TWO-SIGNS-"[:32], "name": "A company with as long a name as companies may have, GmbH & Co. K"[:64]})
	order := func(fields map[string]any) answer {
		fields["symbol"] = "BTCUSDC_PERP"
		return v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders", fields)
	}
	gone := order(map[string]any{"action": "buy", "type": "limit", "limit_price": "64000", "amount": "0.1"})
	v.must(200, "broker-a", http.MethodDelete, "/v1/customers/ANNA/orders/"+gone.get("code"), nil)
	order(map[string]any{"action": "buy", "type": "limit", "limit_price": "64900", "amount": "0.1"})
	order(map[string]any{"action": "sell", "type": "stop_loss", "trigger_price": "60000", "amount": "0.1", "reduce_only": true})
	order(map[string]any{"action": "buy", "type": "stop_loss_limit", "trigger_price": "65050", "limit_price": "64850",
		"amount": "0.1"})
	order(map[string]any{"action": "buy", "type": "market", "amount": "0.05"}) // fires the stop above, which then rests
}

// TestConsoleIsAccessible checks the console with each of its tabs, as a trader and as an operator see it.
func TestConsoleIsAccessible(t *testing.T) {
	t.Parallel()
	b := startAuditBrowser(t)
	v := startVenue(t)
	v.fillMarket()
	b.open(v.REST + "/")
	b.sees("#light", "Live")
	b.sees("#asks", "65,100.0")
	b.accessible("/ logged out")
	b.click("#open-login")
	b.keys("#login [name=username]", "broker-a")
	b.keys("#login [name=password]", "wrong"+enter)
	b.sees("#login-result", "wrong")
	b.accessible("/ login")
	b.click("#login [data-close]")
	b.logOutAndIn(v, "broker-a")
	b.sees("#customer", "ANNA")
	b.click(`#customer option[value="ANNA"]`)
	b.sees("#orders-view", "64,900.0", "stop loss", "triggered")
	b.sees("#bids .own", "64,900.0")
	inOrder(t, b.tabThrough(80), "skip", "symbol", "logout", "chart", "price", "tab-trades", "type", "place", "customer", "tab-orders", "cancel-all", "amend", "cancel")
	b.setScreen(400, "light")
	inOrder(t, b.tabThrough(80), "skip", "symbol", "logout", "customer", "tab-orders", "amend", "type", "place", "chart", "price", "tab-trades") // as the panels are shown
	b.accessible("/ open orders")
	for _, tab := range []struct{ id, shows string }{{"positions", "BTCUSDC_PERP"}, {"fills", "liquidation"}, {"history", "canceled"}, {"ledger", "deposit"}} {
		b.click("#tab-" + tab.id)
		b.sees("#"+tab.id+"-view", tab.shows)
		b.accessible("/ " + tab.id)
	}
	b.click("#ledger-view .explain")
	b.sees("#explain-body .arithmetic", "=")
	b.accessible("/ explanation")
	b.click("#explain-dialog [data-close]")
	b.click("#tab-past")
	b.sees("#past-at", "As of trading/0@")
	b.sees("#past-book", "Ask amount")
	b.accessible("/ as of")
	b.click("#tab-liquidations")
	b.sees("#liquidations", "BTC long")
	b.click(`#entry [name=type] option[value="take_profit_stop_loss"]`)
	b.click(`#entry [name=time_in_force] option[value="GTD"]`)
	b.click("#entry .more summary")
	b.fill("#entry [name=amount]", "0.5x"+enter)
	b.sees("#field-amount .fault", "decimal")
	b.accessible("/ liquidations and a refused order")
	b.click("#tab-orders")
	b.click("#orders-view .amend")
	b.fill("#amend [name=amount]", "0"+enter)
	b.seesScript("the fault", `return document.querySelector("#amend .fault")?.textContent ?? ""`)
	b.accessible("/ amend")
	b.click("#amend [data-close]")

	b.logOutAndIn(v, "operator")
	b.sees("#journals", "trading/0", "at the tip")
	b.sees("#chain", "✓")
	b.click("#tab-operator")
	b.fill("#deposit [name=amount]", "a lot"+enter)
	b.sees("#deposit .fault", "decimal")
	b.click("#records-pause")
	b.click("#records li:first-child summary")
	b.sees("#records li:first-child pre", "events")
	b.accessible("/ operator and log")
}

// logOutAndIn has another user log in, if need be after the one who is.
func (b *browser) logOutAndIn(v *venue, user string) {
	b.t.Helper()
	if b.shown("#logout") != "" {
		b.click("#logout")
		b.sees("#open-login", "Log in")
	}
	b.logIn(v, user)
}

// TestCompliancePageIsAccessible checks the queue, a case with answers, documents and deliveries, and what an auditor sees.
func TestCompliancePageIsAccessible(t *testing.T) {
	t.Parallel()
	b := startAuditBrowser(t)
	c := startIntake(t)
	p := c.openCase()
	c.respondInFull(p.of, p.asked, p.document)
	c.act(p.trigger, "request_information", "MORE", `,"questionnaire_ids":["`+p.more+`"]`)
	blocked, _ := c.register("persons", `{"external_id":"ben","first_name":"Ben","last_name":"Roe"}`)
	held := c.trigger(blocked, p.entitlement).text("id")
	c.act(held, "block", "COMPLIANCE_HOLD", "")

	b.open(c.REST + "/compliance")
	b.sees("#logged-out", "Log in as an operator")
	b.accessible("/compliance logged out")
	b.skipsNowhere()
	b.logIn(c.venue, "operator")
	b.sees("#queue", "retail trading", "ongoing", "blocked")
	b.keys("#filter [name=owner_id]", "Ann"+enter)
	b.sees("#filter [data-field=owner_id] .fault", "UUID")
	b.accessible("/compliance queue")
	b.fill("#filter [name=owner_id]", enter)
	b.click(`[data-case="` + p.trigger + `"]`)
	b.sees("#answers", "About you, version 1", "statement.pdf (bank statement)")
	b.sees("#deliveries", "requirementsQuestionnaire", "delivered")
	b.click(`[aria-label="Show passport.png"]`)
	b.seesScript("the picture", `const i = document.querySelector("#shown img"); return i && i.complete && i.naturalWidth === 1 ? "shown" : ""`)
	b.click(`#action option[value="request_information"]`)
	b.keys("#decide [name=reason]", "The statement is too old."+enter)
	b.sees("#field-questionnaires .fault", "at least one")
	inOrder(t, b.tabThrough(60), "skip", "status", "action", "reason", "do", "save", "close-viewer")
	b.accessible("/compliance case")
	b.click(`[aria-label="Show statement.pdf"]`)
	b.seesScript("the PDF", `return document.querySelector("#shown iframe")?.src.startsWith("blob:") ? "shown" : ""`)
	b.accessible("/compliance document")
	b.click(`[data-case="` + held + `"]`)
	b.sees("#case-status", "blocked")
	b.accessible("/compliance blocked case")
	b.logOutAndIn(c.venue, "auditor")
	b.click(`[data-case="` + p.trigger + `"]`)
	b.sees("#answers", "About you, version 1")
	b.sees("#no-actions", "looks only")
	b.accessible("/compliance auditor")
}

// TestApplyPageIsAccessible checks each step of an application: registering, applying, answering, uploading, the outcome.
func TestApplyPageIsAccessible(t *testing.T) {
	t.Parallel()
	b := startAuditBrowser(t)
	c := startIntake(t)
	asked := c.offer()
	b.open(c.REST + "/apply")
	b.sees("#logged-out", "Log in")
	b.accessible("/apply logged out")
	b.skipsNowhere()
	b.logIn(c.venue, "broker-a")
	b.keys("#register [name=first_name]", "Ann"+enter)
	b.sees("#register [data-field=last_name] .fault", "Field required")
	b.accessible("/apply register")
	b.keys("#register [name=last_name]", "Lee")
	b.keys("#register [name=external_id]", "ann"+enter)
	b.sees("#owner", "Ann Lee · ann")
	b.sees("#entitlement", "retail trading")
	b.accessible("/apply choose")
	b.click("#start [type=submit]")
	b.sees("#forms", "About you", "What is your single_choice?")
	at := func(value string) string { return c.fieldset(asked, value) }
	b.keys(at("integer")+"input", "a few")
	b.keys(at("document")+"input[type=file]", passport(t))
	b.sees(at("document")+".result", "passport.pdf is uploaded")
	b.click("#forms [type=submit]")
	b.sees(at("text")+".fault", "has to be answered")
	inOrder(t, b.tabThrough(60), "skip", "kind", "owner", "entitlement", "primary", "primary")
	b.accessible("/apply answer")
	of := "/api/v1/persons/" + c.list("/api/v1/persons")[0].text("id")
	trigger := c.list(of + "/entitlement_triggers")[0].text("id")
	c.respondInFull(of, asked, c.list(of + "/documents")[0].text("id"))
	b.sees("#asked-said", "Nothing is to be answered now.")
	c.act(trigger, "approve", "APPROVED", "")
	b.sees("#cases", "finished, success")
	b.accessible("/apply granted")
}
