package main

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// changelog is a running venue on which something of everything has happened, and who listened to it.
type changelog struct {
	*venue
	t               *testing.T
	private, public *livetest.Client
	orders          map[string]fields // what was entered, by what it is called here
}

// TestChangelog holds the interface against every line of its changelog, in the line's own words: what it added is there,
// what it removed is not.
func TestChangelog(t *testing.T) {
	v := startVenue(t, "--demo=false")
	v.fund("10000", "ANNA", "BEN")
	v.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/ETHUSDC_PERP", map[string]string{"price": "3000"})
	c := &changelog{venue: v, t: t, orders: make(map[string]fields), private: livetest.Dial(t, v.WebSocket, v.token("broker-a")), public: livetest.Dial(t, v.WebSocket, "")}
	c.private.Subscribe("orders", "trades", "balance-changes")
	c.public.Subscribe("orderbook-stream:"+bitcoin, "market-trades:"+bitcoin, "orderbook-stream:"+ether, "market-trades:"+ether)
	c.happen()
	for _, line := range []struct {
		version, change string
		holds           func(*testing.T)
	}{
		{"1.0.0", "initial public release", c.released},
		{"1.1.0", "snake_case enums", c.enums},
		{"1.1.0", "leverage route renamed margin-profile", c.renamed("leverage", "margin-profile")},
		{"1.1.0", "risk-limits removed", c.gone("/v1/customers/ANNA/risk-limits", "/customers/ANNA/risk-limits")},
		{"1.1.0", "realised_pnl removed", c.without("realised_pnl", "/v1/customers/ANNA/account-summary", "/v1/customers/ANNA/positions", "/v1/customers/ANNA/transactions")},
		{"1.1.0", "instrument expiry and Future/Option removed", c.without("expiry", "/v1/instruments")},
		{"1.1.0", "type parameter of /instruments removed", c.refused("/v1/instruments?type=future", "type UNKNOWN_PARAMETER")},
		{"1.1.0", "transaction types changed", c.transactionTypes},
		{"1.1.0", "added type on customer trades", c.every("/v1/customers/ANNA/trades", "type", "^(trade|liquidation|auto_deleveraging)$")},
		{"1.1.0", "added initial_margin and maintenance_margin on margin profile", c.marginProfile},
		{"1.1.0", "added settlement and funding transactions", c.answers("/v1/customers/ANNA/transactions?type=settlement%7Cfunding")},
		{"1.1.0", "added before parameter on historical trades", c.before},
		{"1.1.0", "fix: historical trades default to sort asc", c.ascending},
		{"1.1.0", "fix: historical trades require from and to", c.refused("/v1/customers/ANNA/trades/history", "from REQUIRED", "to REQUIRED")},
		{"1.1.0", "fix: USDC shown as currency", c.every("/v1/customers/ANNA/transactions", "currency", "^USDC$")},
		{"1.1.0", "fix: trades topic per-account", c.perAccount},
		{"1.2.0", "stop_price removed everywhere", c.noStopPrice},
		{"1.2.0", "added stop_loss_limit, take_profit_limit, take_profit_stop_loss", c.advanced},
		{"1.2.0", "added trigger_price, stop_loss_price, take_profit_price, trigger_price_type", c.triggers},
		{"1.2.0", "added stop_market and stop_limit in responses", c.mechanical},
		{"1.2.0", "advanced orders in open orders", c.open},
		{"1.2.0", "orders and trades topics need no symbol suffix", c.noSuffix},
		{"1.3.0", "wildcard filters on tickers and instruments", c.wildcards},
		{"1.4.0", "margin-requirements route removed", c.gone("/v1/customers/ANNA/margin-requirements/" + bitcoin)},
		{"1.4.0", "added leverage on order entry and instrument_margins", c.leverage},
		{"1.4.0", "margin strings with 2 decimals", c.twoDecimals},
		{"1.5.0", "single-instrument and leverage_brackets routes removed", c.gone("/v1/instruments/"+bitcoin, "/v1/instruments/"+bitcoin+"/leverage_brackets")},
		{"1.5.0", "Instrument.status changed", c.statuses},
		{"1.5.0", "added symbol filter", c.symbolFilter},
		{"1.6.0", "added orderbook-stream and market-trades channels", c.streams},
		{"1.6.0", "and their error codes", c.upstreamReject},
		{"1.7.0", "added cash_amount, filled_quote", c.cash},
		{"1.7.0", "added fee-profile update", c.fees},
		{"1.7.0", "amount no longer always required", c.amounts},
		{"1.7.0", "fee values documented as basis points", c.basisPoints},
		{"1.8.0", "order status partially_filled added", c.partiallyFilled},
		{"1.8.0", "canceled_partially_filled removed", c.canceledInPart},
		{"1.9.0", "added balance-changes channel", c.balanceChanges},
	} {
		t.Run(line.version+" "+strings.ReplaceAll(line.change, "/", "∕"), line.holds)
	}
}

// enter places an order of a customer.
func (c *changelog) enter(name, customer, body string) {
	c.t.Helper()
	var o fields
	c.must(201, "broker-a", http.MethodPost, "/v1/customers/"+customer+"/orders", `{"symbol":"`+bitcoin+`",`+body+`}`).decode(c.t, &o)
	c.orders[name] = o
}

func (c *changelog) happen() {
	c.enter("offer", "ANNA", `"action":"sell","type":"limit","amount":"0.1","limit_price":"65000"`)
	c.enter("taken", "BEN", `"action":"buy","type":"limit","amount":"0.04","limit_price":"65000"`)
	c.enter("cash", "BEN", `"action":"buy","type":"market","cash_amount":"700"`)
	c.enter("stop_loss", "BEN", `"action":"sell","type":"stop_loss","amount":"0.01","trigger_price":"60000"`)
	c.enter("stop_loss_limit", "BEN", `"action":"sell","type":"stop_loss_limit","amount":"0.01","trigger_price":"60000","limit_price":"59900"`)
	c.enter("take_profit", "BEN", `"action":"sell","type":"take_profit","amount":"0.01","trigger_price":"70000"`)
	c.enter("take_profit_limit", "BEN", `"action":"sell","type":"take_profit_limit","amount":"0.01","trigger_price":"70000","limit_price":"70000"`)
	c.enter("take_profit_stop_loss", "BEN", `"action":"sell","type":"take_profit_stop_loss","amount":"0.01","stop_loss_price":"60000","take_profit_price":"70000"`)
	c.must(200, "broker-a", http.MethodDelete, annasOrders+"/"+c.orders["offer"]["code"], nil)
	c.enter("resting", "ANNA", `"action":"sell","type":"limit","amount":"0.02","limit_price":"66000","leverage":10`)
}

// list reads a list, bare or a page of records, as of all that was written.
func (c *changelog) list(t *testing.T, path string) []fields {
	t.Helper()
	at := c.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/state", nil).Header.Get("X-Log-Position")
	a := c.must(200, "broker-a", http.MethodGet, path, nil, "X-Min-Log-Position", at)
	var out []fields
	if strings.HasPrefix(string(a.Body), "[") {
		a.decode(t, &out)
		return out
	}
	var page struct {
		Records []fields `json:"records"`
	}
	a.decode(t, &page)
	return page.Records
}

func (c *changelog) released(t *testing.T) {
	for _, path := range []string{"/orders", "/v1/customers/ANNA/fee-profile", "/v1/customers/ANNA/margin-profile", "/v1/customers/ANNA/transactions",
		"/v1/instruments", "/v1/tickers", "/v1/market-trades"} {
		c.must(200, "broker-a", http.MethodGet, path, nil)
	}
}

var word = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

func (c *changelog) enums(t *testing.T) {
	for path, members := range map[string][]string{
		"/v1/customers/BEN/orders/history": {"action", "type", "status", "reason", "trigger_price_type"},
		"/v1/customers/BEN/trades":         {"action", "type", "role"},
		"/v1/customers/BEN/transactions":   {"type", "status"},
		"/v1/instruments":                  {"status"},
		"/v1/account-summaries":            {"risk_state"},
	} {
		for _, record := range c.list(t, path) {
			for _, name := range members {
				if value, there := record[name]; there && value != "null" && !word.MatchString(value) {
					t.Errorf("%s of %s is %q", name, path, value)
				}
			}
		}
	}
	for _, o := range c.list(t, "/v1/customers/BEN/orders/history") { // the one exception
		if !slices.Contains([]string{"GTC", "IOC", "FOK", "GTD"}, o["time_in_force"]) {
			t.Errorf("time_in_force is %q", o["time_in_force"])
		}
	}
}

func (c *changelog) gone(paths ...string) func(*testing.T) {
	return func(t *testing.T) {
		for _, path := range paths {
			if a := c.do("broker-a", http.MethodGet, path, nil); a.Status != 404 || a.get("code") != "NOT_FOUND" {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
	}
}

func (c *changelog) renamed(old, now string) func(*testing.T) {
	return func(t *testing.T) {
		c.gone("/v1/customers/ANNA/"+old, "/customers/ANNA/"+old)(t)
		c.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/"+now, nil)
	}
}

func (c *changelog) without(member string, paths ...string) func(*testing.T) {
	return func(t *testing.T) {
		for _, path := range paths {
			if a := c.must(200, "broker-a", http.MethodGet, path, nil); strings.Contains(string(a.Body), `"`+member+`"`) {
				t.Errorf("%s has %s: %s", path, member, a.Body)
			}
		}
	}
}

// refused says that a GET is a 400 with these faults.
func (c *changelog) refused(path string, faults ...string) func(*testing.T) {
	return func(t *testing.T) {
		var problem struct {
			Errors []struct{ Field, Code string } `json:"errors"`
		}
		c.must(400, "broker-a", http.MethodGet, path, nil).decode(t, &problem)
		var got []string
		for _, e := range problem.Errors {
			got = append(got, e.Field+" "+e.Code)
		}
		if !slices.Equal(got, faults) {
			t.Errorf("%s: %v, want %v", path, got, faults)
		}
	}
}

func (c *changelog) answers(path string) func(*testing.T) {
	return func(*testing.T) { c.must(200, "broker-a", http.MethodGet, path, nil) }
}

// every says that all records of a list, of which there are some, have a member of a form.
func (c *changelog) every(path, member, form string) func(*testing.T) {
	return func(t *testing.T) {
		records := c.list(t, path)
		if len(records) == 0 {
			t.Errorf("%s is empty", path)
		}
		for _, r := range records {
			if !regexp.MustCompile(form).MatchString(r[member]) {
				t.Errorf("%s of %s is %q", member, path, r[member])
			}
		}
	}
}

func (c *changelog) transactionTypes(t *testing.T) {
	c.every("/v1/customers/BEN/transactions", "type", "^(deposit|withdrawal|transfer|trade|trade_fee|funding|settlement|liquidation|liquidation_fee|auto_deleveraging|insurance)$")(t)
	for _, old := range []string{"funding_payment", "realised_pnl", "adjustment"} {
		c.refused("/v1/customers/BEN/transactions?type="+old, "type INVALID_VALUE")(t)
	}
}

func (c *changelog) marginProfile(t *testing.T) {
	var profile fields
	c.must(200, "broker-a", http.MethodGet, "/v1/customers/BEN/margin-profile", nil).decode(t, &profile)
	profile.has(t, "initial_margin", "7.70", "maintenance_margin", "3.85")
}

// always is a span of time that holds everything.
const always = "?from=0&to=2100-01-01T00:00:00Z"

func (c *changelog) before(t *testing.T) {
	history := "/v1/customers/BEN/trades/history" + always
	all := c.list(t, history)
	if len(all) < 2 {
		t.Fatalf("%d trades", len(all))
	}
	early := c.list(t, history+"&before="+url.QueryEscape(all[len(all)-1]["timestamp"]))
	if len(early) != len(all)-1 || early[0]["code"] != all[0]["code"] {
		t.Errorf("before %s: %v of %v", all[len(all)-1]["timestamp"], early, all)
	}
}

func (c *changelog) ascending(t *testing.T) {
	all := c.list(t, "/v1/customers/BEN/trades/history"+always)
	if len(all) < 2 || !slices.IsSortedFunc(all, func(a, b fields) int { return strings.Compare(a["timestamp"], b["timestamp"]) }) || all[0]["timestamp"] == all[len(all)-1]["timestamp"] {
		t.Errorf("%v", all)
	}
}

// message waits for a message that has come since the beginning, or comes.
func message(t *testing.T, from *livetest.Client, what string, is func(fields) bool) (found fields) {
	t.Helper()
	waitFor(t, what, func() bool {
		for _, m := range from.Messages() {
			if f := fields(m.Fields()); is(f) {
				found = f
				return true
			}
		}
		return false
	})
	return found
}

func (c *changelog) perAccount(t *testing.T) {
	for _, customer := range []string{"ANNA", "BEN"} {
		message(t, c.private, "a trade of "+customer, func(m fields) bool { return m["channel"] == "trades" && m["customer_code"] == customer })
	}
	only := livetest.Dial(t, c.WebSocket, c.token("broker-a"))
	ack := only.Ask(livetest.Request{Op: "subscribe", Args: []string{"trades"}, Data: map[string]string{"customer_code": "ANNA"}})
	if ack.Op != "subscribed" || ack.Channel != "trades" {
		t.Errorf("%s", ack.Raw)
	}
}

func (c *changelog) noStopPrice(t *testing.T) {
	for _, request := range []struct{ method, path, body string }{
		{http.MethodPost, bensOrders, `{"symbol":"` + bitcoin + `","action":"sell","type":"stop_loss","amount":"0.01","stop_price":"60000","trigger_price":"60000"}`},
		{http.MethodPatch, annasOrders + "/" + c.orders["resting"]["code"], `{"stop_price":"60000"}`},
	} {
		if a := c.do("broker-a", request.method, request.path, request.body); a.Status != 400 || !strings.Contains(string(a.Body), `"stop_price"`) {
			t.Errorf("%s: %d %s", request.method, a.Status, a.Body)
		}
	}
	c.without("stop_price", "/v1/customers/BEN/orders/history", "/v1/customers/BEN/orders")(t)
	for _, m := range c.private.Messages() {
		if strings.Contains(string(m.Raw), "stop_price") {
			t.Errorf("%s", m.Raw)
		}
	}
}

func (c *changelog) advanced(t *testing.T) {
	for _, kind := range []string{"stop_loss", "stop_loss_limit", "take_profit", "take_profit_limit", "take_profit_stop_loss"} {
		c.orders[kind].has(t, "type", kind, "status", "open")
	}
}

func (c *changelog) triggers(t *testing.T) {
	c.orders["stop_loss_limit"].has(t, "trigger_price", "60000.0", "limit_price", "59900.0", "stop_loss_price", "null", "take_profit_price", "null", "trigger_price_type", "trade_price")
	c.orders["take_profit_stop_loss"].has(t, "trigger_price", "null", "stop_loss_price", "60000.0", "take_profit_price", "70000.0", "trigger_price_type", "mark_price")
	c.orders["resting"].has(t, "trigger_price", "null", "stop_loss_price", "null", "take_profit_price", "null")
}

func (c *changelog) mechanical(t *testing.T) {
	for kind, mechanical := range map[string]string{"stop_loss": "stop_market", "take_profit": "stop_market", "stop_loss_limit": "stop_limit",
		"take_profit_limit": "stop_limit", "take_profit_stop_loss": "take_profit_stop_loss", "cash": "market", "resting": "limit"} {
		code := c.orders[kind]["code"]
		m := message(t, c.private, "the order "+kind, func(m fields) bool { return m["channel"] == "orders" && m["code"] == code })
		m.has(t, "type", "update", "order_type", mechanical)
	}
	for _, kind := range []string{"stop_market", "stop_limit"} { // nobody enters them
		if a := c.do("broker-a", http.MethodPost, bensOrders, fmt.Sprintf(`{"symbol":%q,"action":"sell","type":%q,"amount":"0.01","trigger_price":"60000"}`, bitcoin, kind)); a.Status != 400 {
			t.Errorf("%s: %d %s", kind, a.Status, a.Body)
		}
	}
}

func (c *changelog) open(t *testing.T) {
	for _, path := range []string{"/orders", "/v1/orders", "/v1/customers/BEN/orders"} {
		kinds := map[string]bool{}
		for _, o := range c.list(t, path) {
			kinds[o["type"]] = true
		}
		for _, kind := range []string{"stop_loss", "stop_loss_limit", "take_profit", "take_profit_limit", "take_profit_stop_loss"} {
			if !kinds[kind] {
				t.Errorf("%s has no %s: %v", path, kind, kinds)
			}
		}
	}
}

func (c *changelog) noSuffix(t *testing.T) {
	client := livetest.Dial(t, c.WebSocket, c.token("broker-a"))
	for _, topic := range []string{"orders", "trades"} {
		if m := client.Ask(livetest.Request{Op: "subscribe", Args: []string{topic}}); m.Op != "subscribed" || m.Channel != topic {
			t.Errorf("%s", m.Raw)
		}
		if m := client.Ask(livetest.Request{Op: "subscribe", Args: []string{topic + ":" + bitcoin}}); m.Code != "UNKNOWN_TOPIC" {
			t.Errorf("%s", m.Raw)
		}
	}
}

func (c *changelog) wildcards(t *testing.T) {
	for _, path := range []string{"/v1/tickers", "/v1/instruments"} {
		for filter, want := range map[string]int{"symbol=*": 3, "symbol=btc*": 1, "symbol=BTC": 0, "symbol=ETH*%7CBTC*": 2, "underlying=B*C": 1, "quote_currency=us*": 3} {
			if got := c.list(t, path+"?"+filter); len(got) != want {
				t.Errorf("%s?%s: %d, want %d", path, filter, len(got), want)
			}
		}
	}
}

func (c *changelog) leverage(t *testing.T) {
	a := c.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/margin-profile", nil)
	if want := `"instrument_margins":[{"symbol":"` + bitcoin + `","leverage":"10","initial_margin":"10.00"}]`; !strings.Contains(string(a.Body), want) {
		t.Errorf("%s", a.Body)
	}
}

func (c *changelog) twoDecimals(t *testing.T) {
	c.every("/v1/instruments", "init_margin_req", `^\d+\.\d\d$`)(t)
	c.every("/v1/instruments", "maint_margin_req", `^\d+\.\d\d$`)(t)
	var profile fields
	c.must(200, "broker-a", http.MethodGet, "/v1/customers/ANNA/margin-profile", nil).decode(t, &profile)
	profile.has(t, "initial_margin", "7.70", "maintenance_margin", "3.85")
}

func (c *changelog) statuses(t *testing.T) {
	c.every("/v1/instruments", "status", "^(open|post_only|cancel_only|trade_halt)$")(t)
	c.refused("/v1/instruments?status=settled", "status INVALID_VALUE")(t)
	if got := c.list(t, "/v1/instruments?status=open%7Cpost_only"); len(got) != 3 {
		t.Errorf("%v", got)
	}
}

func (c *changelog) symbolFilter(t *testing.T) {
	if got := c.list(t, "/v1/instruments?symbol="+bitcoin); len(got) != 1 || got[0]["symbol"] != bitcoin {
		t.Errorf("%v", got)
	}
	if got := c.list(t, "/v1/instruments?symbol=NOPE"); len(got) != 0 {
		t.Errorf("of an unknown symbol: %v", got)
	}
}

func (c *changelog) streams(t *testing.T) {
	book := "orderbook-stream:" + bitcoin
	message(t, c.public, "a snapshot", func(m fields) bool { return m["channel"] == book && m["type"] == "snapshot" })
	message(t, c.public, "an update", func(m fields) bool { return m["channel"] == book && m["type"] == "update" })
	c.oneParser(t)
}

// oneParser reads public trades with one type, those of REST and those of the channel, and finds the same in both.
func (c *changelog) oneParser(t *testing.T) {
	type publicTrade struct {
		Code, Symbol, Price, Amount, Action, Type, Timestamp string
		Sequence, Ordinal                                    int64
	}
	parse := func(f fields) (p publicTrade) {
		_, err := fmt.Sscan(f["sequence"]+" "+f["ordinal"], &p.Sequence, &p.Ordinal)
		p.Code, p.Symbol, p.Price, p.Amount, p.Action, p.Type, p.Timestamp = f["code"], f["symbol"], f["price"], f["amount"], f["action"], f["type"], f["timestamp"]
		if err != nil || p.Code == "" || p.Symbol == "" || p.Price == "" || p.Amount == "" || p.Action == "" || p.Type == "" || p.Timestamp == "" {
			t.Errorf("%v lacks something (%v)", f, err)
		}
		return p
	}
	told := c.list(t, "/v1/market-trades?symbol="+bitcoin)
	if len(told) < 2 {
		t.Fatalf("%d trades", len(told))
	}
	for _, rest := range told {
		m := message(t, c.public, "the trade "+rest["code"], func(m fields) bool { return m["channel"] == "market-trades:"+bitcoin && m["code"] == rest["code"] })
		if a, b := parse(rest), parse(m); a != b {
			t.Errorf("REST: %+v, the channel: %+v", a, b)
		}
		delete(m, "channel")
		if len(m) != len(rest) {
			t.Errorf("the channel has %v, REST %v", m, rest)
		}
	}
}

// upstreamReject withdraws an instrument: its streams end, and they alone. The two codes of an upstream that fails
// are caused in handlers/live (TestOverTheJournal), where a log can be lost.
func (c *changelog) upstreamReject(t *testing.T) {
	c.must(200, "operator", http.MethodDelete, "/admin/v1/instruments/"+ether, nil)
	for topic, code := range map[string]string{"orderbook-stream:" + ether: "ORDERBOOK_STREAM_UPSTREAM_REJECT", "market-trades:" + ether: "MARKET_TRADES_UPSTREAM_REJECT"} {
		message(t, c.public, code, func(m fields) bool {
			return m["op"] == "error" && m["code"] == code && strings.Contains(m["args"], topic)
		})
	}
	c.public.Send(livetest.Request{Op: "subscribe", Args: []string{"market-trades:" + bitcoin}})
	message(t, c.public, "that the other subscription is there", func(m fields) bool { return m["code"] == "ALREADY_SUBSCRIBED" })
}

func (c *changelog) cash(t *testing.T) {
	c.orders["cash"].has(t, "cash_amount", "700", "filled_quote", "650", "filled_amount", "0.010")
	if _, there := c.orders["taken"]["cash_amount"]; there {
		t.Error("an order sized in contracts has a cash_amount")
	}
	c.orders["taken"].has(t, "filled_quote", "2600")
}

func (c *changelog) fees(t *testing.T) {
	c.answered(t, http.MethodPut, "/v1/customers/ANNA/fee-profile/"+bitcoin, `{"maker_fee":"1.5","taker_fee":"4"}`).has(t, "symbol", bitcoin, "maker_fee", "1.5", "taker_fee", "4")
	c.every("/v1/customers/ANNA/fee-profile", "taker_fee", "^(4|5)$")(t)
}

func (c *changelog) answered(t *testing.T, method, path, body string) (f fields) {
	t.Helper()
	c.must(200, "broker-a", method, path, body).decode(t, &f)
	return f
}

func (c *changelog) amounts(t *testing.T) {
	for body, status := range map[string]int{
		`"type":"limit","limit_price":"66000","cash_amount":"700"`: 201, // IOC, the default
		`"type":"market","cash_amount":"700","amount":"1"`:         400,
		`"type":"market"`: 400,
		`"type":"market","cash_amount":"700","time_in_force":"GTC"`:          400,
		`"type":"market","cash_amount":"700","time_in_force":"FOK"`:          400,
		`"type":"stop_loss","trigger_price":"60000","cash_amount":"700"`:     400,
		`"type":"take_profit","trigger_price":"70000"`:                       400,
		`"type":"market","cash_amount":"0"`:                                  400,
		`"type":"limit","limit_price":"66000","amount":"1","leverage":"014"`: 400,
	} {
		c.must(status, "broker-a", http.MethodPost, bensOrders, `{"symbol":"`+bitcoin+`","action":"buy",`+body+`}`)
	}
}

// basisPoints: a taker's fee of 5 is 0.05 % of the notional, 1.3 of 2600.
func (c *changelog) basisPoints(t *testing.T) {
	for _, trade := range c.list(t, "/v1/customers/BEN/trades?order_code="+c.orders["taken"]["code"]) {
		trade.has(t, "notional", "2600", "fee", "1.3")
	}
}

func (c *changelog) partiallyFilled(t *testing.T) {
	code := c.orders["offer"]["code"]
	message(t, c.private, "the order while it rests in part", func(m fields) bool {
		return m["channel"] == "orders" && m["code"] == code && m["status"] == "partially_filled" && m["filled_amount"] == "0.040"
	})
	c.answers("/v1/customers/ANNA/orders?status=partially_filled")(t)
}

func (c *changelog) canceledInPart(t *testing.T) {
	for _, o := range c.list(t, "/v1/customers/ANNA/orders/history?order_code="+c.orders["offer"]["code"]) {
		o.has(t, "status", "canceled", "reason", "user_request", "filled_amount", "0.050", "filled_quote", "3250")
	}
	c.refused("/v1/customers/ANNA/orders/history?status=canceled_partially_filled", "status INVALID_VALUE")(t)
}

func (c *changelog) balanceChanges(t *testing.T) {
	for _, row := range c.list(t, "/v1/customers/BEN/transactions?type=trade_fee") {
		m := message(t, c.private, "the movement "+row["id"], func(m fields) bool { return m["channel"] == "balance-changes" && m["id"] == row["id"] })
		m.has(t, "type", "update", "transaction_type", "trade_fee", "code", row["code"], "amount", row["amount"], "balance", row["balance"], "balance_as_of", row["balance_as_of"])
		message(t, c.private, "the trade of it", func(m fields) bool { return m["channel"] == "trades" && m["code"] == row["code"] })
	}
}
