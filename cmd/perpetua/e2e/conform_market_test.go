package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

const (
	instrumentMembers = "symbol underlying base_currency quote_currency settlement_currency status price_tick amount_step min_amount max_amount contract_size init_margin_req maint_margin_req " +
		"max_leverage margin_tiers maker_fee taker_fee price_band limit_band funding_interval_seconds created"
	tickerMembers = "symbol underlying quote_currency last_price mark_price index_price best_bid best_bid_amount best_ask best_ask_amount open_24h high_24h low_24h change_24h " +
		"volume_24h turnover_24h open_interest funding_rate next_funding_time timestamp"
	publicTradeMembers = "code symbol price amount action type timestamp sequence ordinal"
	twoDecimals        = `^\d+\.\d\d$`
)

func (c *conformance) instrumentChecks() []check {
	all, text := c.path("/v1/instruments"), []string{"string"}
	return []check{
		{"symbol · Type: string", "", c.typed("symbol", text, all)},
		{"underlying · Type: string", "", c.typed("underlying", text, all)},
		{"underlying · Notes: filterable", "", c.filters("/v1/instruments", "underlying=ETH", ether)},
		{"quote_currency · Type: string", "", c.typed("quote_currency", text, all)},
		{"quote_currency · Notes: filterable", "", together(c.filters("/v1/instruments", "quote_currency=USDC", bitcoin, polkadot, ether, solana), c.filters("/v1/instruments", "quote_currency=EUR"))},
		{"status · Type: string", "", c.typed("status", text, all)},
		{"status · Notes: post_only (limit orders only, matching disabled), trade_halt (new orders rejected)", "", c.statusRules},
		{"status · Notes: further allowed values: not shown", "status (open, post_only, cancel_only, trade_halt)", func() {
			for _, status := range []string{"open", "post_only", "cancel_only", "trade_halt"} {
				c.note("?status=%s: %d", status, len(c.all("/v1/instruments?status="+status)))
			}
			c.refused("/v1/instruments?status=halted", "status INVALID_VALUE")
			c.among("status", []string{"open"}, all)()
		}},
		{"init_margin_req · Type: string", "", c.typed("init_margin_req", text, all)},
		{"init_margin_req · Notes: initial margin requirement, 2 decimals", "", c.form("init_margin_req", twoDecimals, all)},
		{"maint_margin_req · Type: string", "", c.typed("maint_margin_req", text, all)},
		{"maint_margin_req · Notes: maintenance margin requirement, 2 decimals", "", c.form("maint_margin_req", twoDecimals, all)},
		{"max_leverage · Type: number", "", c.typed("max_leverage", []string{"number"}, all)},
		{"Instrument types Future and Option and the expiry field do not exist", "", c.noTypes},
		{"The status value settled does not exist", "", func() { c.refused("/v1/instruments?status=settled", "status INVALID_VALUE") }},
		{"Other instrument fields: not shown", "base_currency, quote_currency, settlement_currency, status (open, post_only, cancel_only, trade_halt), price_tick", c.exactly(instrumentMembers, "", all)},
	}
}

func (c *conformance) filterChecks() []check {
	return []check{
		{"1. symbol, underlying and quote_currency accept exact values, pipe-separated lists, and the wildcard * (any sequence of characters, including empty)", "", c.wildcards},
		{"1. Matching is case-insensitive and anchored to the full string", "", func() {
			for _, path := range []string{"/v1/instruments", "/v1/tickers"} {
				together(c.filters(path, "symbol=btcusdc_perp", bitcoin), c.filters(path, "underlying=eTh", ether), c.filters(path, "quote_currency=usdc", bitcoin, polkadot, ether, solana),
					c.filters(path, "symbol=BTC"), c.filters(path, "symbol=USDC_PERP"), c.filters(path, "underlying=ET"), c.filters(path, "symbol=b*perp", bitcoin), c.filters(path, "symbol=B*USDC"))()
			}
		}},
		{"2. GET /v1/instruments?symbol=<symbol> replaces the single-instrument route and returns a list with the matching instrument", "", together(
			c.filters("/v1/instruments", "symbol="+bitcoin, bitcoin), c.gone("/v1/instruments/"+bitcoin))},
		{"2. for an unknown symbol the result is an empty list or a 400, as for /v1/tickers", "", c.unknownSymbol},
		{"3. The status filter on /v1/instruments uses the Instrument status values", "", func() {
			together(c.filters("/v1/instruments", "status=open", bitcoin, polkadot, ether, solana), c.filters("/v1/instruments", "status=trade_halt"),
				c.filters("/v1/instruments", "status=trade_halt%7Copen&symbol=B*", bitcoin))()
			c.refused("/v1/instruments?status=settled", "status INVALID_VALUE")
		}},
		{"4. Historical trades accept the parameters from, to (both required), before, and sort (default asc)", "", together(c.requiresSpan, c.before, c.ascending)},
	}
}

func (c *conformance) removedChecks() []check {
	return []check{
		{"GET /v1/instruments/{symbol}", "", c.gone("/v1/instruments/" + bitcoin)},
		{"GET /v1/instruments/{symbol}/leverage_brackets", "", c.gone("/v1/instruments/" + bitcoin + "/leverage_brackets")},
		{"GET /v1/customers/{code}/margin-requirements/{symbol}", "", c.gone("/v1/customers/ANNA/margin-requirements/" + bitcoin)},
		{"/customers/{code}/risk-limits", "", c.gone("/v1/customers/ANNA/risk-limits", "/customers/ANNA/risk-limits")},
		{"/customers/{code}/leverage (now margin-profile)", "", together(c.gone("/v1/customers/ANNA/leverage", "/customers/ANNA/leverage"), func() {
			c.like("margin-profile", c.one("/v1/customers/ANNA/margin-profile").text("initial_margin"), twoDecimals)
		})},
		{"type query parameter of instruments", "", func() { c.refused("/v1/instruments?type=future", "type UNKNOWN_PARAMETER") }},
	}
}

func (c *conformance) publicTradeChecks() []check {
	return []check{
		{"Returned by GET /v1/market-trades", "", func() {
			trades := c.all("/v1/market-trades?symbol=" + bitcoin)
			c.note("%d trades, the last at %s", len(trades), trades[0].text("price"))
		}},
		{"Fields of the PublicTrade schema: not shown", "PublicTrade: code, symbol, price, amount, action (taker side), type (trade, liquidation, auto_deleveraging), timestamp, sequence, ordinal",
			together(c.exactly(publicTradeMembers, "", c.path("/v1/market-trades")), c.among("type", []string{"trade", "liquidation", "auto_deleveraging"}, c.path("/v1/market-trades?symbol="+solana)))},
	}
}

func (c *conformance) bookChangeChecks() []check {
	changes, text := c.bookChanges(), []string{"string"}
	return []check{
		{"action · Type: string", "", c.typed("action", text, changes)},
		{"action · Notes: new, change, delete", "", c.among("action", []string{"new", "change", "delete"}, changes)},
		{"type · Type: string", "", c.typed("type", text, changes)},
		{"type · Notes: bid or ask", "", c.among("type", []string{"bid", "ask"}, changes)},
		{"price · Type: string", "", c.typed("price", text, changes)},
		{"amount · Type: string", "", c.typed("amount", text, changes)},
		{`amount · Notes: "0" when action is delete`, "", func() {
			deleted := 0
			for _, change := range changes.read() {
				if change.text("action") == "delete" {
					deleted++
				}
				if (change.text("action") == "delete") != (change.text("amount") == "0") {
					c.t.Errorf("%v", change)
				}
			}
			c.note(`%d changes delete, with the amount "0", and no others have it`, deleted)
			if deleted == 0 {
				c.t.Error("nothing was deleted")
			}
		}},
	}
}

func (c *conformance) bookStreamChecks() []check {
	const topic = "orderbook-stream:" + bitcoin
	return []check{
		{"A multi-level snapshot first, then update messages", "", func() {
			socket := c.subscribed("", topic)
			first := socket.Next("a snapshot", func(m livetest.Message) bool { return m.Channel == topic && m.Op == "" })
			var o object
			c.parse(first.Raw, &o)
			c.equal("the first", o.text("type"), "snapshot")
			bids, _ := o["bids"].([]any)
			asks, _ := o["asks"].([]any)
			c.note("%d bids, %d asks", len(bids), len(asks))
			if len(bids) < 2 || len(asks) < 2 {
				c.t.Errorf("%s", first.Raw)
			}
			c.stir()
			c.equal("then", c.told(socket, topic, "an update", func(o object) bool { return o.text("type") != "snapshot" }).text("type"), "update")
		}},
		{"each update carries one or more changes (see Order book change) that are applied together as one batch", "", c.batches},
		{"Shape of the snapshot message: not shown", `{channel,type:"snapshot",symbol,sequence,bids:[{price,amount}],asks:[…],timestamp}`,
			c.exactly("channel type symbol sequence bids asks timestamp", "", source{"snapshots", func() []object {
				return slices.DeleteFunc(c.on(c.public, topic), func(o object) bool { return o.text("type") != "snapshot" })
			}})},
	}
}

func (c *conformance) marketTradesChecks() []check {
	return []check{{"One message per trade, with the field set of the REST PublicTrade schema, so one parser serves both", "", c.oneParser}}
}

// gone is a check: no method is known at these paths.
func (c *conformance) gone(paths ...string) func() {
	return func() {
		for _, path := range paths {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				var body any
				if method != http.MethodGet && method != http.MethodDelete {
					body = "{}"
				}
				a := c.do("broker-a", method, path, body)
				c.equal(method+" "+path, fmt.Sprint(a.Status, " ", a.get("code")), "404 NOT_FOUND")
			}
		}
	}
}

// filters is a check: a query narrows a list down to these symbols.
func (c *conformance) filters(path, query string, symbols ...string) func() {
	return func() {
		var got []string
		for _, o := range c.all(path + "?" + query) {
			got = append(got, o.text("symbol"))
		}
		slices.Sort(got)
		c.equal(path+"?"+query, strings.Join(got, " "), strings.Join(symbols, " "))
	}
}

func (c *conformance) wildcards() {
	for _, path := range []string{"/v1/instruments", "/v1/tickers"} {
		for query, symbols := range map[string][]string{
			"symbol=" + bitcoin: {bitcoin}, "symbol=" + ether + "%7C" + bitcoin: {bitcoin, ether}, "symbol=*": {bitcoin, polkadot, ether, solana},
			"symbol=BTC*": {bitcoin}, "symbol=*BTC*": {bitcoin}, "symbol=*PERP": {bitcoin, polkadot, ether, solana}, "symbol=E*H*_P*": {ether}, "symbol=BTCUSDC*_PERP": {bitcoin},
			"symbol=E*%7CS*": {ether, solana}, "underlying=B*C": {bitcoin}, "underlying=BTC%7CSO*": {bitcoin, solana}, "quote_currency=U*": {bitcoin, polkadot, ether, solana},
			"symbol=.*": nil, "underlying=B%3FC": nil,
		} {
			c.filters(path, query, symbols...)()
		}
	}
}

func (c *conformance) unknownSymbol() {
	c.filters("/v1/instruments", "symbol=NOPE")()
	c.filters("/v1/tickers", "symbol=NOPE")()
}

// statusRules holds DOTUSDC_PERP's status against what orders may do. Nobody's order trades in it.
func (c *conformance) statusRules() {
	set := func(status string) {
		c.sendAs(200, "operator", http.MethodPatch, "/admin/v1/instruments/"+polkadot, `{"status":"`+status+`"}`)
	}
	c.enterOn(polkadot, "dot", "ANNA", `"action":"sell","type":"limit","amount":"1","limit_price":"5.1"`)
	const halted = "422 rejected instrument_halted"
	set("post_only")
	c.equal("post_only: a limit order that rests", c.place(polkadot, `"action":"buy","type":"limit","amount":"1","limit_price":"4.9"`), "201 open")
	c.equal("post_only: one that would match", c.place(polkadot, `"action":"buy","type":"limit","amount":"1","limit_price":"5.1"`), halted)
	c.equal("post_only: a market order", c.place(polkadot, `"action":"buy","type":"market","amount":"1"`), halted)
	c.equal("post_only: a stop", c.place(polkadot, `"action":"buy","type":"stop_loss","amount":"1","trigger_price":"6"`), halted)
	set("trade_halt")
	c.equal("trade_halt: a limit order", c.place(polkadot, `"action":"buy","type":"limit","amount":"1","limit_price":"4.9"`), halted)
	c.equal("trade_halt: a market order", c.place(polkadot, `"action":"buy","type":"market","amount":"1"`), halted)
	c.equal("the order before", c.one(c.at("dot")).text("status"), "open")
	set("open")
	c.send(200, http.MethodDelete, annasOrders+"?symbol="+polkadot, "")
	c.send(200, http.MethodDelete, bensOrders+"?symbol="+polkadot, "")
}

func (c *conformance) noTypes() {
	c.absent("expiry", c.path("/v1/instruments"))()
	c.absent("type", c.path("/v1/instruments"))()
	c.refused("/v1/instruments?type=future", "type UNKNOWN_PARAMETER")
	a := c.do("operator", http.MethodPost, "/admin/v1/instruments",
		`{"symbol":"OLDUSDC_F","underlying":"OLD","price_tick":"0.1","amount_step":"1","max_amount":"10","init_margin_req":"5","maint_margin_req":"2.5","type":"future","expiry":"2030-01-01T00:00:00Z"}`)
	c.equal("listing a future", strings.Join(c.faults(a), ", "), "type UNKNOWN_FIELD, expiry UNKNOWN_FIELD")
}

func (c *conformance) requiresSpan() {
	c.refused("/v1/customers/BEN/trades/history", "from REQUIRED", "to REQUIRED")
	c.refused("/v1/customers/BEN/trades/history?from=0", "to REQUIRED")
	c.note("with both: %d trades", len(c.all("/v1/customers/BEN/trades/history"+always)))
}

// always is a span of time that holds everything.
const always = "?from=0&to=2100-01-01T00:00:00Z"

// before asks for the trades before a time, which is exclusive.
func (c *conformance) before() {
	history := "/v1/customers/BEN/trades/history" + always
	all := c.all(history)
	last := all[len(all)-1].text("timestamp")
	early := c.all(history + "&before=" + url.QueryEscape(last))
	same := 0
	for _, trade := range all {
		if trade.text("timestamp") == last {
			same++
		}
	}
	c.equal("before "+last, strconv.Itoa(len(early)), strconv.Itoa(len(all)-same))
	c.equal("the first of them", early[0].text("code"), all[0].text("code"))
}

func (c *conformance) ascending() {
	history := "/v1/customers/BEN/trades/history" + always
	for sort, direction := range map[string]int{"": 1, "&sort=asc": 1, "&sort=desc": -1} {
		all := c.all(history + sort)
		if !slices.IsSortedFunc(all, func(a, b object) int { return direction * strings.Compare(a.text("timestamp"), b.text("timestamp")) }) {
			c.t.Errorf("%s: %v", sort, all)
		}
		c.note("%q: %s … %s", sort, all[0].text("timestamp"), all[len(all)-1].text("timestamp"))
		if (all[0].text("timestamp") < all[len(all)-1].text("timestamp")) != (direction > 0) {
			c.t.Errorf("%s: the first is not before the last", sort)
		}
	}
}

// levels is the order book, best first.
type levels struct{ bids, asks []livetest.Level }

func (c *conformance) book() levels {
	c.t.Helper()
	var b struct{ Bids, Asks []livetest.Level }
	c.parse(c.must(200, "", http.MethodGet, "/v1/orderbook/"+bitcoin, nil, c.written()...).Body, &b)
	return levels{b.Bids, b.Asks}
}

// stir moves the book of BTCUSDC_PERP: a level comes, and goes.
func (c *conformance) stir() (code string) {
	o := c.enter("stirred", "ANNA", `"action":"buy","type":"limit","amount":"0.003","limit_price":"60100"`)
	c.send(200, http.MethodDelete, annasOrders+"/"+o.text("code"), "")
	return o.text("code")
}

// batches applies every update, whole, to the book of the snapshot: it is never crossed in between, and in the end it is that of
// REST. One order that takes two levels is one update with two changes.
func (c *conformance) batches() {
	c.stir()
	want := c.book()
	socket, most := c.public, 0
	var rebuilt livetest.Book
	waitFor(c.t, "the book", func() bool {
		rebuilt, most = livetest.Book{}, 0
		for _, m := range socket.On("orderbook-stream:" + bitcoin) {
			if err := rebuilt.Apply(m); err != nil {
				c.t.Fatal(err)
			}
			var o object
			c.parse(m.Raw, &o)
			changes, _ := o["changes"].([]any)
			if most = max(most, len(changes)); o.text("type") == "update" && len(changes) == 0 {
				c.t.Fatalf("nothing changes: %s", m.Raw)
			}
		}
		return slices.Equal(rebuilt.Bids(), want.bids) && slices.Equal(rebuilt.Asks(), want.asks)
	})
	c.note("up to %d changes in one update; in the end %d bids and %d asks, as in REST", most, len(want.bids), len(want.asks))
	if most < 2 {
		c.t.Errorf("no update has two changes")
	}
}

// oneParser reads public trades with one type, those of REST and those of the channel, and finds the same in both.
func (c *conformance) oneParser() {
	type publicTrade struct {
		Code, Symbol, Price, Amount, Action, Type, Timestamp string
		Sequence, Ordinal                                    int64
	}
	for _, symbol := range []string{bitcoin, solana} {
		told := c.all("/v1/market-trades?symbol=" + symbol)
		for _, rest := range told {
			code := rest.text("code")
			m := c.told(c.public, "market-trades:"+symbol, "the trade "+code, func(o object) bool { return o.text("code") == code })
			delete(m, "channel")
			if !slices.Equal(m.members(), rest.members()) {
				c.t.Errorf("the channel has %v, REST %v", m.members(), rest.members())
			}
			var a, b publicTrade
			c.parse([]byte(object{"": map[string]any(rest)}.text("")), &a)
			c.parse([]byte(object{"": map[string]any(m)}.text("")), &b)
			if a != b || a.Code == "" || a.Type == "" || a.Sequence == 0 {
				c.t.Errorf("REST: %+v, the channel: %+v", a, b)
			}
		}
		if n := len(c.on(c.public, "market-trades:"+symbol)); n < len(told) {
			c.t.Errorf("%d messages of %d trades", n, len(told))
		} else {
			c.note("%s: %d trades, %d messages, e.g. %s", symbol, len(told), n, told[0].text("price"))
		}
	}
}
