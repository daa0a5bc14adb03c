package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// Of orders, by what they have in common.
func isType(types ...string) func(object) bool {
	return func(o object) bool {
		kind := o.text("order_type")
		if kind == "" {
			kind = o.text("type")
		}
		return slices.Contains(types, kind)
	}
}

var (
	statuses     = []string{"open", "partially_filled", "filled", "canceled", "expired", "rejected"}
	advanced     = []string{"stop_loss", "stop_loss_limit", "take_profit", "take_profit_limit", "take_profit_stop_loss"}
	singles      = isType("stop_loss", "stop_loss_limit", "take_profit", "take_profit_limit", "stop_market", "stop_limit")
	combo        = isType("take_profit_stop_loss")
	conditional  = func(o object) bool { return singles(o) || combo(o) }
	isMarket     = isType("market", "stop_loss", "take_profit", "stop_market", "take_profit_stop_loss")
	orderMembers = "code customer_code symbol action type status amount filled_amount filled_quote limit_price trigger_price stop_loss_price " +
		"take_profit_price triggered average_fill_price time_in_force expire_time post_only reduce_only reference_id reason created updated sequence"
)

// moment is the form of a timestamp: ISO 8601, UTC.
const momentForm = `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`

func (c *conformance) orderChecks() []check {
	rest, told := c.restOrders(), c.orderMessages()
	text, orNull := []string{"string"}, []string{"string", "null"}
	typed := func(member string, kinds []string) func() { return c.typed(member, kinds, rest, told) }
	return []check{
		{"code · Type: string", "", typed("code", text)},
		{"code · Notes: unique order identifier", "", c.uniqueCodes},
		{"customer_code · Type: string", "", typed("customer_code", text)},
		{"customer_code · Notes: customer identifier", "", c.among("customer_code", []string{"ANNA", "BEN", "FAY", "GUS", "LENA", "OTTO", "ZOE"}, rest)},
		{"symbol · Type: string", "", typed("symbol", text)},
		{"symbol · Notes: instrument symbol", "", func() {
			instruments := make(map[string]int)
			for _, o := range rest.read() {
				if instruments[o.text("symbol")]++; len(c.all("/v1/instruments?symbol="+o.text("symbol"))) != 1 {
					c.t.Errorf("%s is no instrument's", o.text("symbol"))
				}
			}
			c.note("%v", instruments)
		}},
		{"action · Type: string", "", typed("action", text)},
		{"action · Notes: buy or sell", "", c.among("action", []string{"buy", "sell"}, rest, told)},
		{"order_type · Type: string", "", together(c.typed("order_type", text, told), c.typed("type", text, rest))},
		{"order_type · Notes: market, limit, stop_market, stop_limit, take_profit_stop_loss on the WebSocket", "",
			c.among("order_type", []string{"market", "limit", "stop_market", "stop_limit", "take_profit_stop_loss"}, told)},
		{"order_type · Notes: in REST the same field is named type, which also uses stop_loss, stop_loss_limit, take_profit and take_profit_limit", "", together(
			c.among("type", append([]string{"market", "limit"}, advanced...), rest), c.sameTypes)},
		{"status · Type: string", "", typed("status", text)},
		{"status · Notes: open, partially_filled, filled, canceled, expired, rejected", "", c.among("status", statuses, rest, told)},
		{"amount · Type: string", "", typed("amount", text)},
		{"amount · Notes: original order size in contracts", "", func() { c.state("offer", "amount", "0.100", "filled_amount", "0.050", "status", "canceled") }},
		{"filled_amount · Type: string", "", typed("filled_amount", text)},
		{"filled_amount · Notes: cumulative filled amount", "", func() { c.history("partial", "filled_amount", "0.000", "0.005", "0.011") }},
		{"cash_amount · Type: string", "", typed("cash_amount", text)},
		{"cash_amount · Notes: requested notional in the quote currency", "", func() { c.state("cash", "cash_amount", "700", "filled_quote", "650") }},
		{"cash_amount · Notes: present only for orders placed with cash_amount, omitted for contract-sized orders", "",
			c.only("cash_amount", "", func(o object) bool { return c.cash[o.text("code")] }, rest, told)},
		{"filled_quote · Type: string", "", typed("filled_quote", text)},
		{"filled_quote · Notes: cumulative filled notional in the quote currency (quote actually spent or received)", "", func() {
			c.history("partial", "filled_quote", "0", "326", "717.2")
			c.state("market", "filled_amount", "0.040", "filled_quote", "2603")
		}},
		{"limit_price · Type: string or null", "", typed("limit_price", orNull)},
		{"limit_price · Notes: null for market orders", "", c.only("limit_price", "null", func(o object) bool { return !isMarket(o) }, rest, told)},
		{"trigger_price · Type: string or null", "", typed("trigger_price", orNull)},
		{"trigger_price · Notes: trigger for stop_loss, stop_loss_limit, take_profit, take_profit_limit and the mechanical stop_market and stop_limit types", "", func() {
			c.state("stop_loss", "trigger_price", "60000.0")
			c.state("stop_loss_limit", "trigger_price", "60000.0", "limit_price", "59900.0")
			c.state("take_profit", "trigger_price", "70000.0")
			c.state("take_profit_limit", "trigger_price", "70000.0", "limit_price", "70000.0")
			c.state("fired", "status", "filled", "trigger_price", "64500.0", "average_fill_price", "64500.0")
		}},
		{"trigger_price · Notes: null for non-stop orders", "", c.only("trigger_price", "null", singles, rest, told)},
		{"stop_loss_price · Type: string or null", "", typed("stop_loss_price", orNull)},
		{"stop_loss_price · Notes: for take_profit_stop_loss combo orders", "", func() { c.state("take_profit_stop_loss", "stop_loss_price", "60000.0") }},
		{"stop_loss_price · Notes: null otherwise", "", c.only("stop_loss_price", "null", combo, rest, told)},
		{"take_profit_price · Type: string or null", "", typed("take_profit_price", orNull)},
		{"take_profit_price · Notes: for take_profit_stop_loss combo orders", "", func() { c.state("take_profit_stop_loss", "take_profit_price", "70000.0") }},
		{"take_profit_price · Notes: null otherwise", "", c.only("take_profit_price", "null", combo, rest, told)},
		{"trigger_price_type · Type: string", "", typed("trigger_price_type", text)},
		{"trigger_price_type · Notes: trade_price (stop and take-profit types) or mark_price (combo type)", "", func() {
			for _, kind := range advanced {
				c.state(kind, "trigger_price_type", map[bool]string{true: "mark_price", false: "trade_price"}[kind == "take_profit_stop_loss"])
			}
			c.only("trigger_price_type", "", conditional, rest, told)()
		}},
		{"average_fill_price · Type: string or null", "", typed("average_fill_price", orNull)},
		{"average_fill_price · Notes: volume-weighted average fill price", "", func() { // (0.01 × 65000 + 0.03 × 65100) ÷ 0.04
			c.state("market", "average_fill_price", "65075.0", "filled_amount", "0.040")
		}},
		{"average_fill_price · Notes: null when there are no fills", "",
			c.only("average_fill_price", "null", func(o object) bool { return strings.Trim(o.text("filled_amount"), "0.") != "" }, rest, told)},
		{"time_in_force · Type: string", "", typed("time_in_force", text)},
		{"time_in_force · Notes: GTC, IOC, FOK, GTD", "", c.among("time_in_force", []string{"GTC", "IOC", "FOK", "GTD"}, rest, told)},
		{"expire_time · Type: timestamp or null", "", together(typed("expire_time", orNull), c.form("expire_time", momentForm, rest, told))},
		{"expire_time · Notes: expiry for GTD orders", "", together(c.only("expire_time", "null", func(o object) bool { return o.text("time_in_force") == "GTD" }, rest, told), c.expiry)},
		{"reference_id · Type: string", "", typed("reference_id", text)},
		{"reference_id · Notes: client-assigned order identifier", "", func() {
			c.state("offer", "reference_id", "anna-offer")
			c.equal("found by it", c.one("/v1/customers/ANNA/orders/by-reference/anna-offer").text("code"), c.code("offer"))
		}},
		{"reason · Type: string or null", "", typed("reason", orNull)},
		{"reason · Notes: rejection or cancellation reason", "", func() {
			c.state("rejected", "status", "rejected", "reason", "post_only_would_cross")
			c.state("offer", "status", "canceled", "reason", "user_request")
			c.state("unmet", "status", "canceled", "reason", "fok_not_fillable")
			c.state("at once", "status", "canceled", "reason", "ioc_remainder")
			c.only("reason", "null", func(o object) bool { return o.text("status") == "canceled" || o.text("status") == "rejected" }, rest, told)()
		}},
		{"timestamp · Type: timestamp", "", together(c.typed("timestamp", text, told), c.form("timestamp", momentForm, told))},
		{"timestamp · Notes: WebSocket only: server-side event time, ISO 8601 UTC", "", together(c.form("timestamp", momentForm, told), c.absent("timestamp", rest), c.absent("updated", told), c.eventTimes)},
		{"timestamp · Notes: equals the REST field updated", "", c.updatedIsTimestamp},
		{"The field stop_price no longer exists in any order schema", "", together(c.absent("stop_price", rest, told), c.noStopPrice)},
		{"Other fields of the REST order schema: not shown", "- Order (REST): code, customer_code, symbol, action, type, status, amount, filled_amount, [cash_amount], filled_quote,",
			c.exactly(orderMembers, "cash_amount trigger_price_type", rest)},
	}
}

func (c *conformance) stateChecks() []check {
	rest, told := c.restOrders(), c.orderMessages()
	return []check{
		{"Order status values: open, partially_filled, filled, canceled, expired, rejected", "", c.among("status", statuses, rest, told)},
		{"open · Moved by: partial execution", "", func() { c.history("partial", "status", "open", "partially_filled", "partially_filled") }},
		{"open · Condition: the order is partially executed and keeps resting on the book", "", func() {
			c.state("partial", "status", "partially_filled", "amount", "0.200", "filled_amount", "0.011")
			c.rests("65200.0", "0.189")
		}},
		{"open · Next state: partially_filled", "", func() { c.state("partial", "status", "partially_filled") }},
		{"open · Also happens: an orders message is pushed", "", func() { c.history("partial", "filled_amount", "0.000", "0.005", "0.011") }},
		{"open or partially_filled · Moved by: cancellation", "", func() { c.history("offer", "status", "open", "partially_filled", "partially_filled", "canceled") }},
		{"open or partially_filled · Condition: some quantity was executed before the cancellation", "", func() { c.history("offer", "filled_amount", "0.000", "0.040", "0.050", "0.050") }},
		{"open or partially_filled · Next state: canceled", "", func() { c.state("offer", "status", "canceled") }},
		{"open or partially_filled · Also happens: filled_amount (and filled_quote) show the executed part", "", func() {
			c.state("offer", "filled_amount", "0.050", "filled_quote", "3250", "average_fill_price", "65000.0")
		}},
		{"open or partially_filled · Also happens: the former status canceled_partially_filled does not exist", "", c.canceledInPart},
		{"Every order state change is pushed as a full order state on the orders channel", "", c.fullMessages},
		{"Other transitions (to filled, expired, rejected, and from other states): not shown", "Transitions: new → open | partially_filled (when the rest then rests) | filled | canceled | rejected", func() {
			c.history("taken", "status", "filled")
			c.history("expired", "status", "open", "expired")
			c.history("rejected", "status", "rejected")
			c.history("fired", "status", "open", "filled")
			for _, name := range []string{"offer", "taken", "expired", "rejected"} { // terminal: neither canceled nor amended again
				for method, body := range map[string]any{http.MethodDelete: nil, http.MethodPatch: `{"amount":"0.2"}`} {
					a := c.do("broker-a", method, c.at(name), body)
					c.equal(method+" "+name, fmt.Sprint(a.Status), "409")
				}
			}
		}},
		{"Instrument status (post_only, trade_halt and others): what moves an instrument between them: not shown",
			"**Instrument status** = the strictest of the operator's status and automatic guards", c.statusMoves},
	}
}

func (c *conformance) entryChecks() []check {
	rest := c.restOrders()
	return []check{
		{"amount · Rules: contract size", "", func() { c.state("partial", "amount", "0.200") }},
		{"amount · Rules: required for all order types except market and limit orders that use cash_amount", "", func() {
			for _, kind := range slices.Sorted(maps.Keys(leanest)) {
				body := leanest[kind]
				c.refusedEntry(`"type":"`+kind+`"`+body, "400 amount REQUIRED")
			}
			c.entered(`"type":"limit","limit_price":"65200","cash_amount":"100"`, "201 filled")
			c.entered(`"type":"market","cash_amount":"100"`, "201 filled")
		}},
		{"cash_amount · Rules: positive number, notional in the quote currency", "", func() {
			for _, cash := range []string{`"0"`, `"-5"`, `"x"`} {
				c.refusedLike(`"type":"market","cash_amount":`+cash, "^400 cash_amount ")
			}
			c.state("cash", "cash_amount", "700", "filled_quote", "650")
		}},
		{"cash_amount · Rules: market and limit orders only", "", c.cashTypes},
		{"cash_amount · Rules: exactly one of amount and cash_amount is required for market and limit orders", "", func() {
			for _, kind := range []string{`"type":"market"`, `"type":"limit","limit_price":"65200"`} {
				c.refusedLike(kind, "^400 amount REQUIRED$")
				c.refusedLike(kind+`,"amount":"0.001","cash_amount":"100"`, "^400 .*amount ")
				c.entered(kind+`,"amount":"0.001"`, "201 filled")
				c.entered(kind+`,"cash_amount":"100"`, "201 filled")
			}
		}},
		{"cash_amount · Rules: requires time_in_force IOC (the default when omitted)", "", func() {
			c.state("cash", "time_in_force", "IOC")
			c.entered(`"type":"market","cash_amount":"100","time_in_force":"IOC"`, "201 filled")
		}},
		{"cash_amount · Rules: FOK and GTC are rejected", "", c.cashInForce},
		{"cash_amount · Rules: not supported for stop or take-profit types", "", c.cashTypes},
		{"cash_amount · Rules: the notional is converted to a contract quantity and filled immediately", "", func() { // 700 ÷ 65000, down to the step
			c.state("cash", "amount", "0.010", "filled_amount", "0.010", "status", "filled", "average_fill_price", "65000.0")
			c.history("cash", "status", "filled")
		}},
		{"leverage · Rules: optional positive integer matching ^[1-9][0-9]*$, range 1 to 13", "", c.leverageRange},
		{"leverage · Rules: sets a per-instrument initial margin override on the subaccount before the order is placed", "", func() {
			c.equal("instrument_margins of ANNA", c.one("/v1/customers/ANNA/margin-profile").text("instrument_margins"), c.override(bitcoin, "10", "10.00"))
			c.equal("instrument_margins of GUS", c.one("/v1/customers/GUS/margin-profile").text("instrument_margins"), "[]")
		}},
		{"leverage · Rules: the override persists for later orders on that instrument until another leverage is supplied", "", c.overridePersists},
		{"trigger_price · Rules: for stop_loss, stop_loss_limit, take_profit, take_profit_limit", "", func() {
			for _, kind := range advanced[:4] {
				c.refusedLike(`"type":"`+kind+`","amount":"0.001","limit_price":"60000"`, "trigger_price REQUIRED")
			}
			for _, kind := range []string{`"type":"market"`, `"type":"limit","limit_price":"60000"`, `"type":"take_profit_stop_loss","stop_loss_price":"60000","take_profit_price":"70000"`} {
				c.refusedLike(kind+`,"amount":"0.001","trigger_price":"60000"`, "trigger_price ")
			}
		}},
		{"stop_loss_price, take_profit_price · Rules: for take_profit_stop_loss", "", func() {
			c.refusedEntry(`"type":"take_profit_stop_loss","amount":"0.001"`, "400 stop_loss_price REQUIRED, take_profit_price REQUIRED")
			c.refusedLike(`"type":"stop_loss","amount":"0.001","trigger_price":"60000","stop_loss_price":"60000"`, "stop_loss_price ")
			c.refusedLike(`"type":"limit","amount":"0.001","limit_price":"60000","take_profit_price":"70000"`, "take_profit_price ")
		}},
		{"trigger_price_type · Rules: trade_price or mark_price per order type", "", together(c.among("trigger_price_type", []string{"trade_price", "mark_price"}, rest), c.triggerTypes)},
		{"The server validates required fields and the allowed trigger price type per order type", "", together(c.requiredFields, c.triggerTypes)},
		{"Amend-order requests no longer accept stop_price", "", func() {
			a := c.do("broker-a", http.MethodPatch, c.at("resting"), `{"stop_price":"60000","limit_price":"65999"}`)
			c.equal("PATCH", strings.Join(c.faults(a), ", "), "stop_price UNKNOWN_FIELD")
			c.state("resting", "limit_price", "66000.0")
		}},
	}
}

// leanest is what orders of each type that has to have an amount need beside it.
var leanest = map[string]string{
	"stop_loss": `,"trigger_price":"60000"`, "stop_loss_limit": `,"trigger_price":"60000","limit_price":"60000"`,
	"take_profit": `,"trigger_price":"70000"`, "take_profit_limit": `,"trigger_price":"70000","limit_price":"70000"`,
	"take_profit_stop_loss": `,"stop_loss_price":"60000","take_profit_price":"70000"`,
	"market":                "", "limit": `,"limit_price":"60000"`,
}

// at is the path of an order.
func (c *conformance) at(name string) string {
	o := c.orders[name]
	return "/v1/customers/" + o.text("customer_code") + "/orders/" + o.text("code")
}

// state reads an order by REST and wants members to be so, given in pairs.
func (c *conformance) state(name string, pairs ...string) {
	c.t.Helper()
	o := c.one(c.at(name))
	for i := 0; i < len(pairs); i += 2 {
		c.equal(name+"."+pairs[i], o.text(pairs[i]), pairs[i+1])
	}
}

// history wants a member of an order to have had these values, one message after the other.
func (c *conformance) history(name, member string, want ...string) {
	c.t.Helper()
	code := c.code(name)
	read := func() (got []string) {
		for _, m := range c.on(c.private, "orders") {
			if m.text("code") == code {
				got = append(got, m.text(member))
			}
		}
		return got
	}
	waitFor(c.t, "the messages of the order "+name, func() bool { return len(read()) >= len(want) })
	c.equal(name+"."+member, strings.Join(read(), " "), strings.Join(want, " "))
}

// rests wants an ask of the public book.
func (c *conformance) rests(price, amount string) {
	c.t.Helper()
	for _, level := range c.book().asks {
		if level.Price == price {
			c.equal("asked at "+price, level.Amount, amount)
			return
		}
	}
	c.t.Errorf("nothing is asked at %s", price)
}

func (c *conformance) uniqueCodes() {
	seen := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(c.orders)) {
		code := c.code(name)
		if seen[code] != "" {
			c.t.Errorf("%s and %s have the code %s", name, seen[code], code)
		}
		seen[code] = name
		c.like(name, code, `^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	}
}

// sameTypes holds the type of each order in REST against that on the channel.
func (c *conformance) sameTypes() {
	mechanical := map[string]string{"stop_loss": "stop_market", "take_profit": "stop_market", "stop_loss_limit": "stop_limit", "take_profit_limit": "stop_limit"}
	for _, name := range append([]string{"cash", "resting"}, advanced...) {
		kind := c.one(c.at(name)).text("type")
		want := mechanical[kind]
		if want == "" {
			want = kind
		}
		code := c.code(name)
		m := c.told(c.private, "orders", name, func(o object) bool { return o.text("code") == code })
		c.equal("type "+kind+", order_type", m.text("order_type"), want)
		c.equal("type of the message", m.text("type"), "update")
	}
}

// form is a check of a member: where it is a string, it looks like this.
func (c *conformance) form(member, form string, from ...source) func() {
	return func() {
		for _, s := range from {
			n := 0
			for _, o := range s.read() {
				if o.kind(member) != "string" {
					continue
				}
				if n++; n == 1 {
					c.note("%s=%s", member, o.text(member))
				}
				if !matches(form, o.text(member)) {
					c.t.Errorf("%s of %s is %q", member, s.name, o.text(member))
				}
			}
			c.note("×%d in %s", n, s.name)
			if n == 0 {
				c.t.Errorf("no %s in %s", member, s.name)
			}
		}
	}
}

// absent is a check: none of the objects, of which there are some, has such a member, at any depth.
func (c *conformance) absent(member string, from ...source) func() {
	return func() {
		for _, s := range from {
			all := s.read()
			for _, o := range all {
				if strings.Contains(object{"all": map[string]any(o)}.text("all"), `"`+member+`":`) {
					c.t.Errorf("%s has %s: %v", s.name, member, o)
				}
			}
			c.note("%s in none of %d %s", member, len(all), s.name)
			if len(all) == 0 {
				c.t.Errorf("there are no %s", s.name)
			}
		}
	}
}

func (c *conformance) expiry() {
	o := c.one(c.at("expired"))
	c.equal("status", o.text("status"), "expired")
	c.equal("expire_time", o.text("expire_time"), c.orders["expired"].text("expire_time"))
	c.note("updated=%s", o.text("updated"))
	if o.text("updated") < o.text("expire_time") {
		c.t.Errorf("expired at %s, before %s", o.text("updated"), o.text("expire_time"))
	}
}

// last waits for the message of the state that REST shows of an order, and returns both.
func (c *conformance) last(path string) (o, m object) {
	c.t.Helper()
	o = c.one(path)
	return o, c.told(c.private, "orders", "the state of "+path, func(m object) bool {
		return m.text("code") == o.text("code") && m.text("sequence") == o.text("sequence")
	})
}

// updatedIsTimestamp holds the last message of orders against what REST shows.
func (c *conformance) updatedIsTimestamp() {
	for _, name := range []string{"offer", "taken", "rejected", "expired", "partial", "fired", "stop_loss", "amended"} {
		o, m := c.last(c.at(name))
		c.equal("updated and timestamp of "+name, o.text("updated"), m.text("timestamp"))
	}
}

// eventTimes says that messages come with the times of their events, which never go back.
func (c *conformance) eventTimes() {
	all := c.on(c.private, "orders")
	if !slices.IsSortedFunc(all, func(a, b object) int { return strings.Compare(a.text("timestamp"), b.text("timestamp")) }) {
		c.t.Error("timestamps go back")
	}
	c.note("from %s to %s", all[0].text("timestamp"), all[len(all)-1].text("timestamp"))
}

func (c *conformance) noStopPrice() {
	c.equal("entry", c.place(bitcoin, `"action":"sell","type":"stop_loss","amount":"0.01","stop_price":"60000","trigger_price":"60000"`), "400 stop_price UNKNOWN_FIELD")
	a := c.do("broker-a", http.MethodPatch, c.at("resting"), `{"stop_price":"60000","limit_price":"65999"}`)
	c.equal("amendment", strings.Join(c.faults(a), ", "), "stop_price UNKNOWN_FIELD")
}

// fullMessages holds the messages of every order that came to its end against the order in REST: nothing but the two renamed
// fields differs. And each change of it came.
func (c *conformance) fullMessages() {
	want := strings.Fields(strings.NewReplacer(" type ", " order_type ", " updated ", " timestamp ").Replace(orderMembers) + " channel type")
	told := make(map[string]bool)
	for _, m := range c.on(c.private, "orders") {
		got := slices.DeleteFunc(m.members(), func(name string) bool { return name == "cash_amount" || name == "trigger_price_type" })
		if !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			c.t.Fatalf("a message has %v, want %v", got, want)
		}
		if record := m.text("code") + " " + m.text("sequence"); told[record] {
			c.t.Errorf("one record tells of the order twice: %v", m)
		} else {
			told[record] = true
		}
	}
	c.note("%d messages with %d members each", len(c.on(c.private, "orders")), len(want))
	c.history("offer", "status", "open", "partially_filled", "partially_filled", "canceled")
	c.history("amended", "limit_price", "61000.0", "61000.5")
	for _, name := range []string{"offer", "amended", "expired", "rejected", "cash", "fired"} {
		o, last := c.last(c.at(name))
		for _, member := range o.members() {
			if member != "type" && member != "updated" && o.text(member) != last.text(member) {
				c.t.Errorf("%s of %s: %s in REST, %s on the channel", member, name, o.text(member), last.text(member))
			}
		}
		c.note("%s the same, status=%s", name, last.text("status"))
	}
}

func (c *conformance) canceledInPart() {
	c.refused("/v1/customers/ANNA/orders/history?status=canceled_partially_filled", "status INVALID_VALUE")
	c.state("offer", "status", "canceled", "filled_amount", "0.050")
	for _, m := range c.on(c.private, "orders") {
		if m.text("status") == "canceled_partially_filled" {
			c.t.Errorf("%v", m)
		}
	}
}

// refusedEntry wants an order of BEN's to buy to be refused with these words.
func (c *conformance) refusedEntry(body, want string) {
	c.t.Helper()
	c.equal("{"+body+"}", c.place(bitcoin, `"action":"buy",`+body), want)
}

// refusedLike is refusedEntry for a form of words.
func (c *conformance) refusedLike(body, form string) {
	c.t.Helper()
	got := c.place(bitcoin, `"action":"buy",`+body)
	c.like("{"+body+"}", got, form)
	if !strings.HasPrefix(got, "400 ") {
		c.t.Errorf("{%s}: %s", body, got)
	}
}

// entered wants an order of BEN's to buy to be taken.
func (c *conformance) entered(body, want string) {
	c.t.Helper()
	c.equal("{"+body+"}", c.place(bitcoin, `"action":"buy",`+body), want)
}

func (c *conformance) cashTypes() {
	for _, kind := range slices.Sorted(maps.Keys(leanest)) {
		body := leanest[kind]
		if kind != "market" && kind != "limit" {
			c.refusedLike(`"type":"`+kind+`"`+body+`,"cash_amount":"100"`, "^400 .*cash_amount ")
		}
	}
	c.entered(`"type":"limit","limit_price":"65200","cash_amount":"100"`, "201 filled")
	c.entered(`"type":"market","cash_amount":"100"`, "201 filled")
}

func (c *conformance) cashInForce() {
	for _, force := range []string{"FOK", "GTC"} {
		for _, kind := range []string{`"type":"market"`, `"type":"limit","limit_price":"65200"`} {
			c.refusedLike(kind+`,"cash_amount":"100","time_in_force":"`+force+`"`, "^400 time_in_force ")
		}
	}
}

func (c *conformance) requiredFields() {
	for kind, needs := range map[string]string{"limit": "limit_price", "stop_loss": "trigger_price", "stop_loss_limit": "limit_price, trigger_price", "take_profit": "trigger_price",
		"take_profit_limit": "limit_price, trigger_price", "take_profit_stop_loss": "stop_loss_price, take_profit_price"} {
		want := "400 " + strings.ReplaceAll(needs, ",", " REQUIRED,") + " REQUIRED"
		c.refusedEntry(`"type":"`+kind+`","amount":"0.001"`, want)
	}
	a := c.do("broker-a", http.MethodPost, bensOrders, `{}`)
	c.equal("{}", strings.Join(c.faults(a), ", "), "symbol REQUIRED, action REQUIRED, type REQUIRED")
}

func (c *conformance) triggerTypes() {
	for _, kind := range advanced {
		wrong := "mark_price"
		if kind == "take_profit_stop_loss" {
			wrong = "trade_price"
		}
		c.refusedLike(`"type":"`+kind+`"`+leanest[kind]+`,"amount":"0.001","trigger_price_type":"`+wrong+`"`, "^400 trigger_price_type ")
		c.refusedLike(`"type":"`+kind+`"`+leanest[kind]+`,"amount":"0.001","trigger_price_type":"index_price"`, "^400 trigger_price_type ")
	}
}

func (c *conformance) leverageRange() {
	for _, leverage := range []string{"0", "14", "-1", "1.5", `"01"`, `"+3"`, `"14"`, `"x"`, "1e1"} {
		c.refusedLike(`"type":"limit","amount":"0.001","limit_price":"60000","leverage":`+leverage, "^400 leverage ")
	}
	for _, leverage := range []string{"1", "13", `"1"`, `"13"`} {
		c.entered(`"type":"limit","amount":"0.001","limit_price":"60000","time_in_force":"IOC","leverage":`+leverage, "201 canceled ioc_remainder")
	}
	c.entered(`"type":"limit","amount":"0.001","limit_price":"60000","time_in_force":"IOC"`, "201 canceled ioc_remainder") // optional
}

// override is the text of instrument_margins with one entry.
func (c *conformance) override(symbol, leverage, margin string) string {
	return `[{"initial_margin":"` + margin + `","leverage":"` + leverage + `","symbol":"` + symbol + `"}]`
}

func (c *conformance) overridePersists() {
	const orders = "/v1/customers/ZOE/orders"
	place := func(leverage string) {
		c.send(201, http.MethodPost, orders, `{"symbol":"`+ether+`","action":"buy","type":"limit","amount":"0.01","limit_price":"2900","time_in_force":"IOC"`+leverage+`}`)
	}
	read := func() string { return c.one("/v1/customers/ZOE/margin-profile").text("instrument_margins") }
	place(`,"leverage":8`)
	c.equal("with 8", read(), c.override(ether, "8", "12.50"))
	place("")
	c.equal("with none", read(), c.override(ether, "8", "12.50"))
	place(`,"leverage":4`)
	c.equal("with 4", read(), c.override(ether, "4", "25.00"))
}

// statusMoves has the operator move DOTUSDC_PERP through the statuses, and tells what each takes. Before its first index
// price an instrument is post_only by itself.
func (c *conformance) statusMoves() {
	resting := `"action":"buy","type":"limit","amount":"1","limit_price":"4.9"`
	for _, status := range []string{"post_only", "cancel_only", "trade_halt", "open"} {
		c.sendAs(200, "operator", http.MethodPatch, "/admin/v1/instruments/"+polkadot, `{"status":"`+status+`"}`)
		c.equal("status", c.all("/v1/instruments?symbol=" + polkadot)[0].text("status"), status)
		want := "422 rejected instrument_halted"
		if status == "open" || status == "post_only" {
			want = "201 open"
		}
		c.equal("a limit order in "+status, c.place(polkadot, resting), want)
	}
	c.send(200, http.MethodDelete, bensOrders+"?symbol="+polkadot, "")
}

// subscribed returns a socket with a token on some topics.
func (c *conformance) subscribed(user string, topics ...string) *livetest.Client {
	token := ""
	if user != "" {
		token = c.token(user)
	}
	socket := livetest.Dial(c.t, c.WebSocket, token)
	socket.Subscribe(topics...)
	return socket
}
