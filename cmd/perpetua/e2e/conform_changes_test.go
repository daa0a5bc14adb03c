package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/schemas/spec"
)

// versionChecks are those of the change history: what each version added is there, what it removed is not.
func (c *conformance) versionChecks() []check {
	rest, told := c.restOrders(), c.orderMessages()
	profile := c.path("/v1/customers/ANNA/margin-profile")
	checks := []check{
		{"REST paths carry the prefix /v1", "", c.prefix},
		{"The change history follows a changelog with semantic version numbers", "", c.semantic},
		{"1.0.0 · Change: initial public release", "", c.released},
		{"1.1.0 · Change: breaking: snake_case enums", "", c.enums},
		{"1.1.0 · Change: leverage route renamed margin-profile", "", together(c.gone("/v1/customers/ANNA/leverage", "/customers/ANNA/leverage"), c.form("initial_margin", twoDecimals, profile))},
		{"1.1.0 · Change: risk-limits removed", "", c.gone("/v1/customers/ANNA/risk-limits", "/customers/ANNA/risk-limits")},
		{"1.1.0 · Change: realised_pnl removed", "", c.absent("realised_pnl", c.perCustomer("account summaries", "/account-summary"), c.perCustomer("positions", "/positions"), c.perCustomer("transactions", "/transactions"))},
		{"1.1.0 · Change: instrument expiry and Future/Option removed", "", c.noTypes},
		{"1.1.0 · Change: type parameter of /instruments removed", "", func() { c.refused("/v1/instruments?type=future", "type UNKNOWN_PARAMETER") }},
		{"1.1.0 · Change: transaction types changed", "", c.oldTypes},
		{"1.1.0 · Change: added type on customer trades", "", c.tradeTypes},
		{"1.1.0 · Change: initial_margin and maintenance_margin on margin profile", "", func() {
			c.equal("initial_margin", profile.read()[0].text("initial_margin"), "7.70")
			c.equal("maintenance_margin", profile.read()[0].text("maintenance_margin"), "3.85")
		}},
		{"1.1.0 · Change: settlement and funding transactions", "", c.instants},
		{"1.1.0 · Change: before parameter on historical trades", "", c.before},
		{"1.1.0 · Change: fixes: historical trades default to sort asc and require from and to", "", together(c.ascending, c.requiresSpan)},
		{"1.1.0 · Change: USDC shown as currency", "", together(c.among("currency", []string{"USDC"}, c.perCustomer("transactions", "/transactions"), c.perCustomer("account summaries", "/account-summary")),
			c.among("fee_currency", []string{"USDC"}, c.perCustomer("trades", "/trades")))},
		{"1.1.0 · Change: trades topic per-account", "", c.perAccount},
		{"1.2.0 · Change: breaking: stop_price removed everywhere", "", together(c.noStopPrice, c.absent("stop_price", rest, told))},
		{"1.2.0 · Change: added stop_loss_limit", "", func() { c.state("stop_loss_limit", "type", "stop_loss_limit", "status", "open") }},
		{"1.2.0 · Change: take_profit_limit", "", func() { c.state("take_profit_limit", "type", "take_profit_limit", "status", "open") }},
		{"1.2.0 · Change: take_profit_stop_loss", "", func() { c.state("take_profit_stop_loss", "type", "take_profit_stop_loss", "status", "open") }},
		{"1.2.0 · Change: trigger_price", "", func() { c.state("stop_loss", "trigger_price", "60000.0") }},
		{"1.2.0 · Change: stop_loss_price", "", func() { c.state("take_profit_stop_loss", "stop_loss_price", "60000.0") }},
		{"1.2.0 · Change: take_profit_price", "", func() { c.state("take_profit_stop_loss", "take_profit_price", "70000.0") }},
		{"1.2.0 · Change: trigger_price_type", "", func() {
			c.state("stop_loss", "trigger_price_type", "trade_price")
			c.state("take_profit_stop_loss", "trigger_price_type", "mark_price")
		}},
		{"1.2.0 · Change: stop_market and stop_limit in responses", "", together(c.sameTypes, func() {
			c.refusedLike(`"type":"stop_market","amount":"0.01","trigger_price":"60000"`, "type ") // nobody enters them
			c.refusedLike(`"type":"stop_limit","amount":"0.01","trigger_price":"60000","limit_price":"60000"`, "type ")
		})},
		{"1.2.0 · Change: advanced orders in open orders", "", c.advancedAreOpen},
		{"1.2.0 · Change: orders and trades topics need no symbol suffix", "", c.noSuffix("orders", "trades")},
		{"1.3.0 · Change: wildcard filters on tickers and instruments", "", c.wildcards},
		{"1.4.0 · Change: breaking: margin-requirements route removed", "", c.gone("/v1/customers/ANNA/margin-requirements/" + bitcoin)},
		{"1.4.0 · Change: added leverage on order entry and instrument_margins", "", c.overridePersists},
		{"1.4.0 · Change: margin strings with 2 decimals", "", c.marginDecimals},
		{"1.5.0 · Change: breaking: single-instrument and leverage_brackets routes removed", "", c.gone("/v1/instruments/"+bitcoin, "/v1/instruments/"+bitcoin+"/leverage_brackets")},
		{"1.5.0 · Change: Instrument.status changed", "", c.statusMoves},
		{"1.5.0 · Change: added symbol filter", "", together(c.filters("/v1/instruments", "symbol="+bitcoin, bitcoin), c.filters("/v1/instruments", "symbol=NOPE"))},
		{"1.6.0 · Change: added orderbook-stream and market-trades channels and their error codes", "", together(c.batches, c.oneParser, c.rejects, c.fails)},
		{"1.7.0 · Change: added cash_amount", "", func() { c.state("cash", "cash_amount", "700") }},
		{"1.7.0 · Change: filled_quote", "", func() { c.state("taken", "filled_quote", "2600") }},
		{"1.7.0 · Change: fee-profile update", "", c.feeUpdate},
		{"1.7.0 · Change: amount no longer always required", "", c.cashTypes},
		{"1.7.0 · Change: fee values documented as basis points", "", func() { c.feePaid("taken", "2600", "1.3") }},
		{"1.8.0 · Change: breaking: order status partially_filled added", "", together(func() { c.state("partial", "status", "partially_filled") }, func() {
			c.note("open orders in part filled: %d", len(c.all("/v1/customers/ANNA/orders?status=partially_filled")))
		})},
		{"1.8.0 · Change: canceled_partially_filled removed", "", c.canceledInPart},
		{"1.9.0 · Change: added balance-changes channel", "", c.sharedCodes},
		{"Deprecation policy and notice periods: not shown", nothing, func() {
			header := c.must(200, "broker-a", http.MethodGet, "/v1/instruments", nil).Header
			c.equal("Deprecation", header.Get("Deprecation"), "")
			c.equal("Sunset", header.Get("Sunset"), "")
		}},
	}
	for _, f := range spec.Parse(spec.Trading) {
		if f.Section == "Versioning" && f.Column == "Date" {
			checks = append(checks, check{f.Key(), "", func() { c.published(f.Subject, f.Text) }})
		}
	}
	return checks
}

// served returns the description that the venue serves of itself.
func (c *conformance) served() (info object, paths object) {
	c.t.Helper()
	var document struct{ Info, Paths object }
	c.parse(c.must(200, "", http.MethodGet, "/openapi.json", nil).Body, &document)
	return document.Info, document.Paths
}

// published wants the history that the venue tells of itself to have a version of a date, with its changes.
func (c *conformance) published(version, date string) {
	info, _ := c.served()
	text := strings.Join(strings.Fields(info.text("description")), " ")
	entry := "- **" + version + "** (" + date + ")"
	c.note("%s in /openapi.json: %v", entry, strings.Contains(text, entry))
	_, changes, there := strings.Cut(text, entry)
	if !there {
		c.t.Errorf("/openapi.json does not tell of %s", entry)
	}
	changes, _, _ = strings.Cut(changes, "- **")
	for _, f := range spec.Parse(spec.Trading) {
		if f.Section == "Versioning" && f.Subject == version && f.Column == "Change" && !strings.Contains(changes, f.Text) {
			c.t.Errorf("/openapi.json does not tell of %s: %s", version, f.Text)
		}
	}
}

func (c *conformance) semantic() {
	info, _ := c.served()
	var last string
	versions := regexp.MustCompile(`- \*\*(\d+\.\d+\.\d+)\*\*`).FindAllStringSubmatch(info.text("description"), -1)
	for _, v := range versions {
		last = v[1]
	}
	c.equal("the last version", last, info.text("version"))
	c.like("which is", last, `^\d+\.\d+\.\d+$`)
}

func (c *conformance) prefix() {
	_, paths := c.served()
	n := 0
	for _, path := range paths.members() {
		if strings.HasPrefix(path, "/v1/") {
			n++
		}
	}
	c.note("%d paths under /v1", n)
	for _, path := range []string{"/instruments", "/tickers", "/market-trades", "/customers/ANNA/transactions"} {
		c.equal("GET "+path, c.do("broker-a", http.MethodGet, path, nil).get("code"), "NOT_FOUND")
		c.must(200, "broker-a", http.MethodGet, "/v1"+path, nil)
		c.note("/v1%s: 200", path)
	}
}

func (c *conformance) released() {
	for _, path := range []string{"/orders", "/v1/customers/ANNA/fee-profile", "/v1/customers/ANNA/margin-profile", "/v1/customers/ANNA/transactions",
		"/v1/instruments", "/v1/tickers", "/v1/market-trades"} {
		c.must(200, "broker-a", http.MethodGet, path, nil)
		c.note("%s: 200", path)
	}
}

var snakeCase = `^[a-z]+(_[a-z]+)*$`

// enums looks at every value of an enumeration that was seen. time_in_force is the exception.
func (c *conformance) enums() {
	for _, e := range []struct {
		from    source
		members string
	}{
		{c.restOrders(), "action type status reason trigger_price_type"}, {c.orderMessages(), "action order_type status reason trigger_price_type"},
		{c.perCustomer("trades", "/trades"), "action type role"}, {c.perCustomer("transactions", "/transactions?page_size=1000"), "type status"},
		{c.path("/v1/instruments"), "status"}, {c.path("/v1/account-summaries"), "risk_state"}, {c.path("/v1/market-trades"), "action type"}, {c.bookChanges(), "action type"},
	} {
		all := e.from.read()
		for member := range strings.FieldsSeq(e.members) {
			seen := make(map[string]int)
			for _, o := range all {
				if v := o.text(member); v != "" && v != "null" {
					if seen[v]++; !matches(snakeCase, v) {
						c.t.Errorf("%s of %s is %q", member, e.from.name, v)
					}
				}
			}
			c.note("%s of %s: %d values", member, e.from.name, len(seen))
			if len(seen) == 0 {
				c.t.Errorf("%s of %s was never seen", member, e.from.name)
			}
		}
	}
	c.among("time_in_force", []string{"GTC", "IOC", "FOK", "GTD"}, c.restOrders())()
}

func matches(form, text string) bool { return regexp.MustCompile(form).MatchString(text) }

func (c *conformance) marginDecimals() {
	all, profile := c.path("/v1/instruments"), c.path("/v1/customers/ANNA/margin-profile")
	c.form("init_margin_req", twoDecimals, all)()
	c.form("maint_margin_req", twoDecimals, all)()
	c.form("initial_margin", twoDecimals, profile)()
	c.form("maintenance_margin", twoDecimals, profile)()
	c.equal("instrument_margins", profile.read()[0].text("instrument_margins"), c.override(bitcoin, "10", "10.00"))
}

func (c *conformance) advancedAreOpen() {
	for _, path := range []string{"/orders", "/v1/orders", "/v1/customers/BEN/orders"} {
		var kinds []string
		for _, o := range c.all(path) {
			if o.text("customer_code") == "BEN" && slices.Contains(advanced, o.text("type")) {
				kinds = append(kinds, o.text("type"))
			}
		}
		slices.Sort(kinds)
		c.equal(path, strings.Join(kinds, " "), strings.Join(slices.Sorted(slices.Values(advanced)), " "))
	}
}

func (c *conformance) feeUpdate() {
	for _, fees := range [][2]string{{"1.5", "4"}, {"2", "5"}} {
		o := c.send(200, http.MethodPut, "/v1/customers/GUS/fee-profile/"+bitcoin, `{"maker_fee":"`+fees[0]+`","taker_fee":"`+fees[1]+`"}`)
		c.equal("symbol", o.text("symbol"), bitcoin)
		c.equal("maker_fee", o.text("maker_fee"), fees[0])
		c.equal("taker_fee", c.feesOf("GUS", bitcoin).text("taker_fee"), fees[1])
	}
}
