package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// logIn logs a user in at a page.
func (b *browser) logIn(v *venue, user string) {
	b.t.Helper()
	b.click("#open-login")
	b.fill("#login [name=username]", user)
	b.fill("#login [name=password]", v.password(user)+enter)
	b.sees("#who", user)
}

// trader logs broker-a in and turns to a customer.
func (b *browser) trader(v *venue, customer string) {
	b.t.Helper()
	b.logIn(v, "broker-a")
	b.sees("#customer", customer)
	b.click(`#customer option[value="` + customer + `"]`)
	b.sees("#entry-customer", customer)
}

// loseUpdates lets the page's WebSocket lose one update of the book when it is told to.
const loseUpdates = `const listen = WebSocket.prototype.addEventListener;
WebSocket.prototype.addEventListener = function (name, listener) {
  listen.call(this, name, (event) => {
    if (window.lose && name === "message" && event.data.includes('"prev_sequence"')) window.lose = false;
    else listener(event);
  });
};`

// TestConsole does what a trader does: log in, place, watch it fill, amend, cancel.
func TestConsole(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	b.before(loseUpdates)
	v := startVenue(t)
	v.fund("100000", "ANNA", "BEN")
	b.open(v.REST + "/")
	b.sees("#light", "Live")
	b.sees("#spread", "The book is empty")
	b.sees("#mark", "65,000.0")
	b.trader(v, "ANNA")
	b.sees("#summary", "100,000.00")

	// A fault is shown at its field, which gets the focus.
	b.fill("#entry [name=limit_price]", "65,000.0") // as the page prints it
	b.fill("#entry [name=amount]", "0.5x"+enter)
	b.sees("#field-amount .fault", "decimal")
	if at := b.text("return document.activeElement.name"); at != "amount" {
		t.Errorf("the focus is on %s", at)
	}
	if n := len(v.openOrders("ANNA")); n != 0 {
		t.Errorf("%d orders", n)
	}
	b.fill("#entry [name=amount]", "0.5")
	b.sees(".sums", "32,500.00 USDC", "≤ 16.25 USDC", "≤ 2,502.50 USDC") // 5 basis points, and 7.70 % as the account has it
	b.click(`#entry [name=leverage] option[value="4"]`)
	b.sees(".sums", "≤ 8,125.00 USDC")
	b.click(`#entry [name=leverage] option[value=""]`)
	b.click("#entry [name=post_only]")
	b.sees("#order-fee", "6.50 USDC") // 2 basis points, as maker
	b.click("#entry [name=post_only]")
	b.keys("#entry [name=amount]", enter)
	b.sees("#entry-result", "Buy 0.500 BTCUSDC_PERP: open at 65,000.0")
	if b.shown(".fault") != "" {
		t.Errorf("faults are left: %s", b.shown(".fault"))
	}

	// A year of six digits, as the field lets people type it, is refused where it is.
	b.click(`#entry [name=time_in_force] option[value="GTD"]`)
	b.text(`document.querySelector("#entry [name=expire_time]").value = "202612-11-29T09:30"`)
	b.click("#place")
	b.sees("#field-expire .fault", "RFC 3339")
	b.click(`#entry [name=time_in_force] option[value="GTC"]`)
	b.sees("#orders-view", "65,000.0", "0.500", "open")
	b.sees("#bids .own", "65,000.0", "0.500")

	// Another broker's customer sells, in two steps.
	v.must(201, "broker-b", http.MethodPost, "/v1/customers", map[string]string{"customer_code": "CARL"})
	v.must(201, "operator", http.MethodPost, "/admin/v1/customers/CARL/deposits",
		map[string]string{"currency": "USDC", "amount": "100000", "reference_id": "carl"})
	cancelStays := b.stays("#orders-view .cancel")
	v.sell("CARL", "0.2")
	b.sees("#orders-view", "partially filled", "0.200")
	cancelStays()
	b.sees("#bids", "0.300")
	b.sees("#trades", "0.200")
	v.sell("CARL", "0.3")
	b.sees("#orders-view", "No open orders")
	b.sees("#spread", "The book is empty")
	b.click("#tab-positions")
	b.sees("#positions-view", "BTCUSDC_PERP", "0.500", "65,000.0")
	b.click("#tab-fills")
	b.sees("#fills-view", "0.200", "0.300", "maker")
	b.click("#tab-orders")

	// Amend and cancel.
	b.fill("#entry [name=limit_price]", "64000")
	b.fill("#entry [name=amount]", "0.1"+enter)
	b.click("#orders-view .amend")
	b.fill("#amend [name=limit_price]", "64100.05"+enter)
	b.sees("#amend .fault", "multiple of 0.1")
	amendStays := b.stays("#orders-view .amend")
	b.fill("#amend [name=limit_price]", "64100"+enter)
	b.sees("#orders-view", "64,100.0")
	b.sees("#bids", "64,100.0")
	amendStays()
	b.click("#orders-view .amend") // the button acts on the order as it is now
	if price := b.text(`return document.querySelector("#amend [name=limit_price]").value`); price != "64100.0" {
		t.Errorf("the dialog offers the price %s", price)
	}
	b.click("#amend-dialog [data-close]")
	b.click("#orders-view .cancel")
	b.sees("#account-result", "canceled, user request")
	b.sees("#orders-view", "No open orders")
	b.sees("#spread", "The book is empty")
	waitFor(t, "the order to be gone from the rows, too", func() bool { return len(v.openOrders("ANNA")) == 0 })

	// A position is closed with one button.
	v.bid("BEN", "64900")
	v.bid("BEN", "64800")
	b.click("#tab-positions")
	closeStays := b.stays("#positions-view .close")
	b.click("#positions-view .close")
	b.sees("#account-result", "Sell 0.500 BTCUSDC_PERP: canceled, ioc remainder", "0.200 at 64,850.0 filled")
	b.sees("#positions-view", "0.300")
	closeStays()
	v.bid("BEN", "64900")
	v.bid("BEN", "64900")
	v.bid("BEN", "64900")
	b.click("#positions-view .close")
	b.sees("#account-result", "Sell 0.300 BTCUSDC_PERP: filled")
	b.sees("#positions-view", "No positions")
	b.click("#tab-orders")

	// What the engine rejects is said in its words.
	b.click(`#entry [name=type] option[value="market"]`)
	b.fill("#entry [name=amount]", "1"+enter)
	b.sees("#field-amount .fault", "no liquidity")
	b.sees("#entry-result", "NO_LIQUIDITY")

	// A lost update is noticed with the next one, and the book asked for anew.
	b.text("window.lose = true")
	v.bid("BEN", "61000")
	v.bid("BEN", "62000")
	b.sees("#bids", "61,000.0", "62,000.0")
	b.sees("#book-sequence", "resynced 1×")

	b.click("#logout")
	b.sees("#logged-out", "Log in")
	if b.shown("#account, #records-box, #who") != "" {
		t.Error("after logging out there is still something to see")
	}
	b.wantNoComplaints()
}

// TestConsoleForANewcomer opens the console of a venue with its demo, as its start says: the customer that is there has
// money, and the first order fills. On a narrow screen the account comes first.
func TestConsoleForANewcomer(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t, "--demo")
	waitFor(t, "the start to say whom to be", func() bool {
		return strings.Contains(v.output.said(), "as broker-a and choose its customer NEWCOMER, who got 100000 USDC")
	})
	if a := v.do("broker-a", http.MethodGet, "/v1/customers/NEWCOMER/account-summary", nil); a.Status != 200 || !strings.Contains(string(a.Body), `"balance":"100000"`) {
		t.Errorf("the start invites the newcomer, who has no money: %d %s", a.Status, a.Body)
	}
	b.open(v.REST + "/")
	b.trader(v, "NEWCOMER")
	b.sees("#summary", "100,000.00")
	b.sees("#asks", ".")
	b.click(`#entry [name=type] option[value="market"]`)
	b.fill("#entry [name=amount]", "0.010")
	b.sees("#order-fee", "≈")
	b.keys("#entry [name=amount]", enter)
	b.sees("#entry-result", "Buy 0.010 BTCUSDC_PERP: filled")
	b.click("#tab-positions")
	b.sees("#positions-view", "BTCUSDC_PERP", "Close")
	b.screenshot("wide")
	b.narrow()
	const first = `const top = (id) => document.getElementById(id).getBoundingClientRect().top;
		return String(["entry", "chart", "book", "trades", "log"].every((other) => top("account-panel") < top(other + "-panel")))`
	if b.text(first) != "true" {
		t.Error("on a narrow screen something comes before the account")
	}
	if wide := b.text("return String(document.documentElement.scrollWidth - innerWidth)"); wide != "0" {
		t.Errorf("the page is %s pixels wider than the screen", wide)
	}
	b.screenshot("narrow")
	b.click("#positions-view .close")
	b.sees("#account-result", "Sell 0.010 BTCUSDC_PERP: filled")
	b.wantNoComplaints()
}

// TestConsoleLog shows an auditor the journals and the last records, whose chain the page checks itself.
func TestConsoleLog(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("1000", "ANNA")
	b.open(v.REST + "/")
	b.sees("#journals", "trading")
	b.logIn(v, "auditor")
	b.sees("#journals", "trading/0", "identity/0", "projections", "at the tip")
	records := v.records("trading")
	var last struct{ Sequence int64 }
	if err := json.Unmarshal([]byte(records[len(records)-1]), &last); err != nil {
		t.Fatal(err)
	}
	b.sees("#records", "deposit.make", "journal.genesis")
	b.sees("#chain", "✓")
	v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]string{"price": "64999.9"})
	b.sees("#records li:first-child", "index.set", "index.updated")
	b.click("#records li:first-child summary")
	b.sees("#records li:first-child pre", "64999.9")
	b.sees("#chain", "✓")
	b.wantNoComplaints()
}

// TestConsoleSaysWhatIsWrong stops the log under a venue, and then the venue under the page.
func TestConsoleSaysWhatIsWrong(t *testing.T) {
	t.Parallel() // for most of its time it waits until the venue gives up
	b := startBrowser(t)
	host := newVenue(t)
	host.keepLog() // a log that can be stopped has to be this test's own
	host.start()
	t.Cleanup(host.stop)
	v := newVenue(t, "--kafka-brokers", strings.Join(host.Kafka, ","))
	v.prefix = "console-"
	v.start()
	t.Cleanup(v.stop)
	v.fund("100000", "ANNA")
	b.open(v.REST + "/")
	b.trader(v, "ANNA")
	b.sees("#light", "Live")

	host.cmd.Process.Signal(syscall.SIGSTOP)
	defer host.cmd.Process.Signal(syscall.SIGCONT)
	b.sees("#banner", "Log away", "trading") // nobody has to write for it
	if state := v.must(503, "", http.MethodGet, "/readyz", nil); !strings.Contains(string(state.Body), `"log_away":{`) {
		t.Errorf("/readyz says %s", state.Body)
	}
	host.cmd.Process.Signal(syscall.SIGCONT)
	waitFor(t, "the venue to be ready again", func() bool { return v.do("", http.MethodGet, "/readyz", nil).Status == 200 })
	b.seesNot("#banner", "Log away")

	// The order is sent as soon as the log is away: some seconds later the node owns nothing any more, and takes none.
	b.fill("#entry [name=limit_price]", "60000")
	b.fill("#entry [name=amount]", "0.1")
	host.cmd.Process.Signal(syscall.SIGSTOP)
	b.keys("#entry [name=amount]", enter)
	b.sees("#banner", "Waiting for the log")
	b.sees("#banner", "Log stopped", "OUTCOME_UNKNOWN")
	b.sees("#entry-result", "not known", "Repeat")
	b.fill("#entry [name=amount]", "0.2"+enter)
	b.sees("#banner", "Log stopped", "NOT_ACCEPTED")
	b.sees("#entry-result", "NOT_ACCEPTED")

	host.cmd.Process.Signal(syscall.SIGCONT)
	b.sees("#orders-view", "60,000.0", "0.100") // the first order, whose outcome was not known
	b.seesNot("#banner", "Log stopped")
	b.seesNot("#banner", "Log away")
	b.sees("#light", "Live")

	host.cmd.Process.Signal(syscall.SIGSTOP)
	b.sees("#banner", "Not ready")
	v.kill()
	host.cmd.Process.Signal(syscall.SIGCONT)
	b.sees("#banner", "Connection lost", "Server unreachable")
	b.seesNot("#banner", "Not ready")
	b.wantNoComplaints()
}

// sell sells at the market for a customer of broker-b.
func (v *venue) sell(customer, amount string) {
	v.t.Helper()
	v.must(201, "broker-b", http.MethodPost, "/v1/customers/"+customer+"/orders",
		map[string]string{"symbol": "BTCUSDC_PERP", "action": "sell", "type": "market", "amount": amount})
}

// bid places an order of a customer of broker-a that rests.
func (v *venue) bid(customer, price string) {
	v.t.Helper()
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/"+customer+"/orders",
		map[string]string{"symbol": "BTCUSDC_PERP", "action": "buy", "type": "limit", "limit_price": price, "amount": "0.1"})
}

// openOrders returns the open orders of a customer of broker-a.
func (v *venue) openOrders(customer string) (list []fields) {
	v.t.Helper()
	if err := json.Unmarshal(v.must(200, "broker-a", http.MethodGet, "/v1/customers/"+customer+"/orders", nil).Body, &list); err != nil {
		v.t.Fatal(err)
	}
	return list
}

// TestConsoleShowsRisk follows a trader with leverage: the chart, a stop that is refused, changed and fires, a take profit
// and stop loss, the funding that is due, and the liquidation, which everybody sees.
func TestConsoleShowsRisk(t *testing.T) {
	t.Parallel()
	b := startBrowser(t)
	v := startVenue(t)
	v.fund("4000", "ANNA")
	v.fund("100000", "BEN")
	v.limit("BEN", "sell", "65000", "0.5")
	b.open(v.REST + "/")
	b.trader(v, "ANNA")
	b.sees("#summary", "4,000.00")
	b.sees("#no-candles", "No candles yet")
	b.click(`#entry [name=type] option[value="market"]`)
	b.click(`#entry [name=leverage] option[value="10"]`)
	b.fill("#entry [name=amount]", "0.5")
	for _, now := range [][2]string{{"65010", "≈ 32,505.00"}, {"65000", "≈ 32,500.00"}} { // it is valued anew with each price
		v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]string{"price": now[0]})
		b.sees("#order-value", now[1])
	}
	b.keys("#entry [name=amount]", enter)
	b.sees("#entry-result", "Buy 0.500 BTCUSDC_PERP: filled, 0.500 at 65,000")
	b.seesFirstCandle("O 65,000.0", "C 65,000.0", "Vol 0.500")
	b.click("#tab-positions")
	b.sees("#positions-view", "BTCUSDC_PERP", "65,000", "10×", "TP/SL")
	b.sees("#positions-view .risk", ",") // a liquidation price
	b.sees("#order-position", "0.500 BTC")
	b.sees("#funding-in", ":")

	// The crosshair goes with the arrow keys, and says what is under it.
	b.keys("#chart", "\ue012")
	b.sees("#chart-said", "open 65000.0, high 65000.0, low 65000.0, close 65000.0")
	b.click(`#intervals input[value="5m"]`)
	b.seesFirstCandle("O 65,000.0", "Vol 0.500")
	b.click(`#chart-price option[value="mark"]`)
	b.sees("#candle", "C 65,000.0")

	// A stop on the wrong side is refused at its field. One on the right side waits, and is amended.
	b.click(`#entry .sell input`)
	b.click(`#entry [name=type] option[value="stop_loss"]`)
	b.sees("#entry-hint", "or below")
	b.fill("#entry [name=trigger_price]", "66000")
	b.fill("#entry [name=amount]", "0.1"+enter)
	b.sees("#field-trigger-price .fault", "trigger would fire immediately")
	b.fill("#entry [name=trigger_price]", "64000"+enter)
	b.sees("#entry-result", "waits for 64,000.0")
	b.click("#tab-orders")
	b.sees("#orders-view", "stop loss", "64,000.0")
	b.click("#orders-view .amend")
	b.fill("#amend [name=trigger_price]", "63500"+enter)
	b.sees("#orders-view", "63,500.0")

	// It fires with a trade, and closes its part of the position. A stop limit that fires then rests: this can be seen.
	v.limit("BEN", "buy", "63400", "0.3")
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/ANNA/orders", map[string]any{"symbol": "BTCUSDC_PERP", "action": "sell",
		"type": "stop_loss_limit", "trigger_price": "63450", "limit_price": "64500", "amount": "0.1", "reduce_only": true})
	b.sees("#orders-view", "stop limit", "64,500.0")
	if b.shown("#orders-view .chip, #asks .own") != "" {
		t.Error("a stop that waits is shown as one that fired")
	}
	v.must(201, "broker-b", http.MethodPost, "/v1/customers", map[string]string{"customer_code": "CARL"})
	v.must(201, "operator", http.MethodPost, "/admin/v1/customers/CARL/deposits",
		map[string]string{"currency": "USDC", "amount": "100000", "reference_id": "carl"})
	v.sell("CARL", "0.1")
	b.sees("#orders-view .chip", "triggered")
	b.sees("#asks .own", "64,500.0")
	b.click("#orders-view .cancel")
	b.sees("#orders-view", "No open orders")
	b.sees("#order-position", "0.400 BTC")
	b.click("#tab-history")
	b.sees("#history-view", "stop loss", "filled", "63,500.0", "triggered")

	// Loss and profit are limited with one order, for the whole position.
	b.click("#tab-positions")
	b.click("#positions-view .protect")
	b.fill("#entry [name=take_profit_price]", "70000")
	b.fill("#entry [name=stop_loss_price]", "50000"+enter)
	b.sees("#entry-result", "Sell 0.400 BTCUSDC_PERP: waits for 50,000.0 or 70,000.0")

	// The price falls further than the margin goes.
	v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/BTCUSDC_PERP", map[string]string{"price": "57000"})
	b.sees("#tab-liquidations", "Liquidations (")
	b.click("#tab-liquidations")
	b.sees("#liquidations", "BTC long", "63,400.0", "0.080") // a fifth of it, to the best bid
	b.click("#tab-fills")
	b.sees("#fills-view", "liquidation")
	b.click("#tab-history")
	b.sees("#history-view", "canceled", "liquidation")
	b.screenshot("risk")
	b.wantNoComplaints()
}

// stays remembers an element, and returns a check that the page still has it and not one that was made in its place. A click that
// begins before an update and ends after it would be lost on the latter.
func (b *browser) stays(selector string) (check func()) {
	b.t.Helper()
	b.text(`(window.remembered ??= {})[arguments[0]] = document.querySelector(arguments[0]); return ""`, selector)
	return func() {
		b.t.Helper()
		if b.text(`return String(window.remembered[arguments[0]] === document.querySelector(arguments[0]))`, selector) != "true" {
			b.t.Errorf("the page has replaced %s", selector)
		}
	}
}

// seesFirstCandle waits until the chart says each of the texts of its first candle, to which the Home key goes. The last one
// may be another: the next interval begins with a candle without trades.
func (b *browser) seesFirstCandle(texts ...string) {
	b.t.Helper()
	waitFor(b.t, fmt.Sprintf("the first candle to show %q", texts), func() bool {
		b.keys("#chart", home)
		shown := b.shown("#candle")
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(shown, text) })
	})
}

// limit places a limit order of a customer of broker-a that rests.
func (v *venue) limit(customer, action, price, amount string) {
	v.t.Helper()
	v.must(201, "broker-a", http.MethodPost, "/v1/customers/"+customer+"/orders",
		map[string]string{"symbol": "BTCUSDC_PERP", "action": action, "type": "limit", "limit_price": price, "amount": amount})
}
