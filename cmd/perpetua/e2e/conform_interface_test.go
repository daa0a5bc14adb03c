package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// checks returns the checks of every section.
func (c *conformance) checks() map[string][]check {
	return map[string][]check{
		"Derivatives Trading Interface":                          c.introChecks(),
		"What the service does":                                  c.serviceChecks(),
		"Resources and their fields":                             c.conventionChecks(),
		"Order (WebSocket orders message and REST order schema)": c.orderChecks(),
		"Instrument":                               c.instrumentChecks(),
		"FeeProfileItem":                           c.feeChecks(),
		"MarginProfile":                            c.marginChecks(),
		"Customer trade":                           c.customerTradeChecks(),
		"Transaction (balance ledger row)":         c.transactionChecks(),
		"Public trade":                             c.publicTradeChecks(),
		"Order book change":                        c.bookChangeChecks(),
		"States and transitions":                   c.stateChecks(),
		"Endpoints":                                c.endpointChecks(),
		"Order entry fields":                       c.entryChecks(),
		"Filter rules for instruments and tickers": c.filterChecks(),
		"Removed routes (must not exist)":          c.removedChecks(),
		"WebSocket requests":                       c.requestChecks(),
		"Authentication":                           c.authenticationChecks(),
		"Events":                                   {{"All channels push JSON messages", "", c.allJSON}},
		"orders":                                   c.ordersChannelChecks(),
		"balance-changes":                          c.balanceChangeChecks(),
		"orderbook-stream:{symbol}":                c.bookStreamChecks(),
		"market-trades:{symbol}":                   c.marketTradesChecks(),
		"trades":                                   c.tradesChannelChecks(),
		"Errors":                                   c.errorChecks(),
		"Limits":                                   c.limitChecks(),
		"Versioning":                               c.versionChecks(),
	}
}

func (c *conformance) introChecks() []check {
	return []check{
		{"This document covers the derivatives trading interface: order entry and order state, customer fee and margin profiles, instruments, tickers, market trades, balances, and the WebSocket channels, together with the change history that fixes their shape", "",
			together(c.released, c.allJSON, c.semantic)},
		{"The onboarding service (documents, questionnaires, entitlements, webhooks, login) is covered by the other document", "", func() {
			_, paths := c.served()
			trading := 0
			for _, path := range paths.members() {
				for _, word := range []string{"document", "questionnaire", "entitlement", "webhook", "login"} {
					if strings.HasPrefix(path, "/v1/") && strings.Contains(path, word) {
						c.t.Errorf("%s is of the other document", path)
					}
				}
				if strings.HasPrefix(path, "/v1/") {
					trading++
				}
			}
			c.note("%d paths of trading, none of onboarding", trading)
		}},
		{"Addresses: {base_url} is the base address of REST calls, whose paths begin with /v1", "", func() {
			c.equal(c.REST+"/v1/time", fmt.Sprint(c.do("", http.MethodGet, "/v1/time", nil).Status), "200")
		}},
		{"The WebSocket address is {ws_url}", "", func() {
			c.equal(c.WebSocket, livetest.Dial(c.t, c.WebSocket, "").Ask(livetest.Request{Op: "ping"}).Op, "pong")
		}},
	}
}

func (c *conformance) serviceChecks() []check {
	return []check{
		{"Lets a broker place and track orders for its customers on perpetual derivative instruments (market, limit, stop and take-profit types), including orders sized by notional value in the quote currency", "", func() {
			for _, name := range append([]string{"market", "resting", "cash"}, advanced...) {
				o := c.one(c.at(name))
				c.note("%s: %s %s", o.text("customer_code"), o.text("type"), o.text("status"))
			}
			c.state("cash", "cash_amount", "700")
		}},
		{"Exposes per-customer fee profiles, margin profiles, trades and balance ledger transactions", "", func() {
			for _, route := range []string{"fee-profile", "margin-profile", "trades", "transactions"} {
				c.note("%s: %d", route, len(c.path("/v1/customers/BEN/"+route).read()))
			}
		}},
		{"Exposes market data: instruments, tickers and anonymous market trades", "", func() {
			for _, path := range []string{"/v1/instruments", "/v1/tickers", "/v1/market-trades"} {
				a := c.must(200, "", http.MethodGet, path, nil) // without a token
				c.note("%s: %d bytes", path, len(a.Body))
			}
			c.absent("customer_code", c.path("/v1/market-trades"))()
		}},
		{"Pushes real-time updates over WebSocket: private order updates, private balance changes, public order book and public market trades", "", c.allJSON},
		{"Complete list of operations and a description of the service beyond those named in this document: not shown", "## Routes (all under /v1)", func() {
			_, paths := c.served()
			operations := 0
			for _, path := range paths.members() {
				methods, _ := paths[path].(map[string]any)
				for method := range methods {
					if slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
						operations++
					}
				}
			}
			c.note("%d operations in /openapi.json", operations)
			for _, path := range []string{"/v1/customers/{customer_code}/state", "/v1/customers/{customer_code}/orders/batch", "/v1/candles/{symbol}", "/v1/funding-rates", "/v1/limits", "/v1/status", "/v1/api-keys"} {
				c.equal(path, paths.kind(path), "object")
			}
		}},
	}
}

func (c *conformance) conventionChecks() []check {
	return []check{
		{"Conventions: amounts and prices are strings holding decimal numbers", "", func() {
			for _, e := range []struct {
				from    source
				members string
			}{
				{c.restOrders(), "amount filled_amount filled_quote limit_price trigger_price stop_loss_price take_profit_price average_fill_price cash_amount"},
				{c.perCustomer("trades", "/trades"), "price amount notional fee"}, {c.perCustomer("transactions", "/transactions"), "amount balance"},
				{c.path("/v1/tickers"), "last_price mark_price index_price best_bid best_ask volume_24h turnover_24h open_interest"}, {c.path("/v1/market-trades"), "price amount"}, {c.bookChanges(), "price amount"},
			} {
				for member := range strings.FieldsSeq(e.members) {
					c.form(member, `^-?\d+(\.\d+)?$`, e.from)()
					for _, o := range e.from.read() {
						if kind := o.kind(member); kind == "number" {
							c.t.Errorf("%s of %s is a number", member, e.from.name)
						}
					}
				}
			}
			c.refusedLike(`"type":"limit","amount":0.001,"limit_price":"60000"`, "^400 amount ")
		}},
		{"All enumerated values are lowercase snake_case", "", c.enums},
		{"Currency fields use USDC as the settlement currency", "", together(c.among("settlement_currency", []string{"USDC"}, c.path("/v1/instruments")), c.among("quote_currency", []string{"USDC"}, c.path("/v1/instruments"), c.path("/v1/tickers")),
			c.among("currency", []string{"USDC"}, c.perCustomer("transactions", "/transactions"), c.perCustomer("account summaries", "/account-summary")))},
	}
}

func (c *conformance) endpointChecks() []check {
	none := func(path string) func() {
		return func() {
			a := c.must(200, "broker-a", http.MethodGet, path, nil)
			c.note("GET %s: %d, %d bytes", path, a.Status, len(a.Body))
			c.refused(path+"?no_such=1", "no_such UNKNOWN_PARAMETER")
		}
	}
	const fees = "PUT /v1/customers/{code}/fee-profile/{symbol} · "
	return []check{
		{"Paths are relative to {base_url}", "", func() {
			c.note("%s/v1/instruments: %d", c.REST, c.do("", http.MethodGet, "/v1/instruments", nil).Status)
		}},
		{"POST /v1/customers/{customer_code}/orders · Request: order entry, fields below", "", func() {
			c.entered(`"type":"limit","amount":"0.001","limit_price":"60000","time_in_force":"IOC"`, "201 canceled ioc_remainder")
			c.refusedLike(`"type":"limit","amount":"0.001","limit_price":"60000","size":"1"`, "^400 size UNKNOWN_FIELD$")
		}},
		{"POST /v1/customers/{customer_code}/orders · Response: an order", "", c.exactly(orderMembers, "cash_amount trigger_price_type", source{"answers to order entry", func() []object {
			return []object{c.orders["offer"], c.orders["cash"], c.orders["stop_loss"]}
		}})},
		{"GET /orders (open orders; the REST base path of this route) · Request: none", "", none("/orders")},
		{"GET /orders (open orders; the REST base path of this route) · Response: current orders, including advanced (stop and take-profit) orders", "", together(c.advancedAreOpen, c.sameOpenOrders)},
		{fees + "Request: JSON: maker_fee, taker_fee (basis points)", "", func() {
			c.feeUpdate()
			a := c.do("broker-a", http.MethodPut, "/v1/customers/GUS/fee-profile/"+bitcoin, `{"maker_fee":"1"}`)
			c.equal("without taker_fee", strings.Join(c.faults(a), ", "), "taker_fee REQUIRED")
		}},
		{fees + "Response: the updated FeeProfileItem for the symbol", "", func() {
			o := c.send(200, http.MethodPut, "/v1/customers/GUS/fee-profile/"+bitcoin, `{"maker_fee":"2","taker_fee":"5"}`)
			c.equal("the answer", object{"o": map[string]any(o)}.text("o"), `{"maker_fee":"2","symbol":"`+bitcoin+`","taker_fee":"5"}`)
		}},
		{"GET /v1/customers/{code}/fee-profile · Request: none", "", none("/v1/customers/ANNA/fee-profile")},
		{"GET /v1/customers/{code}/fee-profile · Response: fee profile items", "", c.exactly("symbol maker_fee taker_fee", "", c.path("/v1/customers/ANNA/fee-profile"))},
		{"GET /v1/customers/{code}/margin-profile · Request: none", "", none("/v1/customers/ANNA/margin-profile")},
		{"GET /v1/customers/{code}/margin-profile · Response: MarginProfile", "", c.exactly("leverage initial_margin maintenance_margin instrument_margins", "", c.path("/v1/customers/ANNA/margin-profile"))},
		{"GET /v1/customers/{code}/transactions · Request: none", "", none("/v1/customers/ANNA/transactions")},
		{"GET /v1/customers/{code}/transactions · Response: ledger rows", "", c.typed("amount", []string{"string"}, c.path("/v1/customers/ANNA/transactions"))},
		{"GET /v1/instruments · Request: query: symbol, status, underlying, quote_currency", "", together(c.filters("/v1/instruments", "symbol="+ether, ether), c.filters("/v1/instruments", "status=post_only"),
			c.filters("/v1/instruments", "underlying=SOL", solana), c.filters("/v1/instruments", "quote_currency=USDC&symbol=B*", bitcoin), func() { c.refused("/v1/instruments?base=BTC", "base UNKNOWN_PARAMETER") })},
		{"GET /v1/instruments · Response: list of instruments", "", c.exactly(instrumentMembers, "", c.path("/v1/instruments"))},
		{"GET /v1/tickers · Request: query: symbol, underlying, quote_currency", "", together(c.filters("/v1/tickers", "symbol="+ether, ether), c.filters("/v1/tickers", "underlying=SOL", solana),
			c.filters("/v1/tickers", "quote_currency=USDC&symbol=B*", bitcoin), func() { c.refused("/v1/tickers?status=open", "status UNKNOWN_PARAMETER") })},
		{"GET /v1/tickers · Response: tickers", "", c.exactly(tickerMembers, "", c.path("/v1/tickers"))},
		{"GET /v1/market-trades · Request: none", "", none("/v1/market-trades")},
		{"GET /v1/market-trades · Response: list of public trades", "", c.exactly(publicTradeMembers, "", c.path("/v1/market-trades"))},
	}
}

func (c *conformance) requestChecks() []check {
	return []check{
		{"Subscribe message: JSON with op set to subscribe and args an array holding the topic names", "", func() {
			socket := livetest.Dial(c.t, c.WebSocket, "")
			socket.SendText([]byte(`{"op":"subscribe","args":["orderbook-stream:` + bitcoin + `","market-trades:` + bitcoin + `"]}`))
			for range 2 {
				m := socket.Next("an acknowledgement", func(m livetest.Message) bool { return m.Op != "" })
				c.equal(m.Channel, m.Op, "subscribed")
			}
			m := socket.Ask(map[string]any{"op": "subscribe", "args": "orders"})
			c.equal("args that are no array", m.Code, "INVALID_MESSAGE")
		}},
		{"orders · Access: private, per account", "", together(c.private401("orders"), c.ordersPerAccount)},
		{"orders · Notes: no symbol suffix", "", c.noSuffix("orders")},
		{"trades · Access: private, per account", "", together(c.private401("trades"), c.perAccount)},
		{"trades · Notes: no symbol suffix", "", c.noSuffix("trades")},
		{"balance-changes · Access: private, broker-scoped", "", together(c.private401("balance-changes"), c.brokerScoped)},
		{"balance-changes · Notes: all customers under the broker", "", func() {
			c.told(c.private, "balance-changes", "BEN's", func(o object) bool { return o.text("customer_code") == "BEN" })
			c.among("customer_code", alphas, source{"what broker-a is told", func() []object { return c.on(c.private, "balance-changes") }})()
		}},
		{"orderbook-stream:{symbol} · Access: public", "", c.isPublic("orderbook-stream:" + bitcoin)},
		{"market-trades:{symbol} · Access: public", "", c.isPublic("market-trades:" + bitcoin)},
		{"Not shown for this area. Request field names of order entry other than those named above: not shown", "Order entry adds symbol, action, type, limit_price, time_in_force, expire_time, post_only, reduce_only, reference_id to the fields named", func() {
			const all = `"type":"limit","amount":"0.001","limit_price":"60000","time_in_force":"GTD","expire_time":"2090-01-01T00:00:00Z","post_only":true,"reduce_only":false,"reference_id":"every-field"`
			c.entered(all, "201 open")
			c.send(200, http.MethodDelete, bensOrders+"/by-reference/every-field", "")
		}},
		{"Not shown for this area. Paths of the trades, historical trades, account summary, amend and cancel routes: not shown", "GET /customers/{customer_code}/trades · /trades/history?from=&to=&before=&sort=", func() {
			for _, path := range []string{"/v1/customers/BEN/trades", "/v1/customers/BEN/trades/history" + always, "/v1/customers/BEN/account-summary"} {
				c.note("GET %s: %d", path, len(c.all(path)))
			}
			o := c.enter("moved", "BEN", `"action":"buy","type":"limit","amount":"0.001","limit_price":"60000"`)
			c.equal("PATCH", c.send(200, http.MethodPatch, bensOrders+"/"+o.text("code"), `{"limit_price":"60001"}`).text("limit_price"), "60001.0")
			c.equal("DELETE", c.send(200, http.MethodDelete, bensOrders+"/"+o.text("code"), "").text("status"), "canceled")
		}},
		{"Not shown for this area. WebSocket connection address and handshake details: not shown", "## WebSocket, path /v1/ws", func() {
			c.like("address", c.WebSocket, `^ws://127\.0\.0\.1:\d+/v1/ws$`)
			_, response, err := livetest.TryDial(c.t, c.WebSocket, "no token")
			if err == nil || response == nil {
				c.t.Fatal("a bad token was taken")
			}
			c.equal("with a bad token", fmt.Sprint(response.StatusCode), "401")
		}},
		{"Not shown for this area. Response bodies of REST endpoints beyond the named fields: not shown", "Position: customer_code, symbol, amount (signed), entry_price, mark_price, notional, unrealised_pnl, initial_margin, maintenance_margin, leverage, liquidation_price (or null), updated", together(
			c.exactly("customer_code symbol amount entry_price mark_price notional unrealised_pnl initial_margin maintenance_margin leverage liquidation_price updated", "", c.perCustomer("positions", "/positions")),
			c.exactly(tickerMembers, "", c.path("/v1/tickers")))},
		{"Not shown for this area. Pagination parameter names: not shown", "`page_size` (default 100, 1–1000), `after`, `before`, `sort` (asc|desc)", func() {
			var page struct {
				Records  []object
				Metadata object `json:"response_metadata"`
			}
			path := "/v1/customers/BEN/transactions?page_size=2&sort=asc"
			c.parse(c.must(200, "broker-a", http.MethodGet, path, nil).Body, &page)
			c.equal("records", fmt.Sprint(len(page.Records)), "2")
			c.equal("response_metadata", strings.Join(page.Metadata.members(), " "), "end_cursor has_next has_previous start_cursor")
			first := page.Records[0].text("id")
			page.Records = nil
			c.parse(c.must(200, "broker-a", http.MethodGet, path+"&after="+page.Metadata.text("end_cursor"), nil).Body, &page)
			cursor := page.Metadata.text("start_cursor")
			page.Records = nil
			c.parse(c.must(200, "broker-a", http.MethodGet, path+"&before="+cursor, nil).Body, &page)
			c.equal("there and back", page.Records[0].text("id"), first)
		}},
	}
}

func (c *conformance) authenticationChecks() []check {
	return []check{
		{"The orders channel requires an authenticated connection", "", c.private401("orders")},
		{"balance-changes is private and broker-scoped", "", together(c.private401("balance-changes"), c.brokerScoped)},
		{"orderbook-stream:{symbol} and market-trades:{symbol} are public and need no authentication", "", together(c.isPublic("orderbook-stream:"+bitcoin), c.isPublic("market-trades:"+bitcoin))},
		{"Authentication scheme of REST calls: not shown", "Bearer JWT from the login endpoint", func() {
			if !matches(`^[\w-]+\.[\w-]+\.[\w-]+$`, c.token("broker-a")) { // which is for no report
				c.t.Error("the token is no JWT")
			}
			c.equal("without", fmt.Sprint(c.do("", http.MethodGet, "/v1/orders", nil).Status), "401")
			c.equal("a bad one", fmt.Sprint(c.do("", http.MethodGet, "/v1/orders", nil, "Authorization", "Bearer x").Status), "401")
			c.equal("of another broker", fmt.Sprint(c.do("broker-b", http.MethodGet, annasOrders, nil).Status), "404")
			c.equal("a good one", fmt.Sprint(c.do("broker-a", http.MethodGet, annasOrders, nil).Status), "200")
		}},
		{"How a WebSocket connection is authenticated: not shown", "Authentication: the Authorization header on the upgrade, or `{\"op\":\"authenticate\",\"data\":{\"token\":…}}`", func() {
			c.equal("by header", livetest.Dial(c.t, c.WebSocket, c.token("broker-a")).Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}}).Op, "subscribed")
			socket := livetest.Dial(c.t, c.WebSocket, "")
			c.equal("by message", socket.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": c.token("broker-a")}}).Op, "authenticated")
			c.equal("then", socket.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}}).Op, "subscribed")
		}},
	}
}

func (c *conformance) ordersChannelChecks() []check {
	return []check{
		{"1. No initial snapshot is sent on subscribe", "", func() {
			c.folded() // or what came before would come to it after all
			socket := c.subscribed("broker-a", "orders")
			c.equal("after a ping", socket.Ask(livetest.Request{Op: "ping"}).Op, "pong")
			c.note("%d orders are open, %d messages came", len(c.all("/v1/orders")), len(socket.On("orders")))
			if len(socket.On("orders")) != 0 {
				c.t.Errorf("%s", socket.On("orders")[0].Raw)
			}
		}},
		{"1. current state comes from the REST open orders route", "", c.sameOpenOrders},
		{"2. A message is pushed on each order state change and is a full replacement of the order, never a partial delta", "", c.fullMessages},
		{"3. Envelope: channel (orders), type (update), then the Order fields with order_type in place of the REST type and timestamp in place of the REST updated", "", func() {
			for _, m := range c.private.On("orders") {
				if !strings.HasPrefix(string(m.Raw), `{"channel":"orders","type":"update","code":`) {
					c.t.Fatalf("%s", m.Raw)
				}
			}
			c.note("%.60s…", c.private.On("orders")[0].Raw)
			c.fullMessages()
		}},
		{"4. Statuses reported: see States and transitions", "", c.among("status", statuses, c.orderMessages())},
	}
}

func (c *conformance) errorChecks() []check {
	return []check{
		{"WebSocket ORDERBOOK_STREAM_UPSTREAM_ERROR · Condition: upstream failure on orderbook-stream", "", c.fails},
		{"WebSocket ORDERBOOK_STREAM_UPSTREAM_REJECT · Condition: upstream reject on orderbook-stream", "", c.rejects},
		{"WebSocket MARKET_TRADES_UPSTREAM_ERROR · Condition: upstream failure on market-trades", "", c.fails},
		{"WebSocket MARKET_TRADES_UPSTREAM_REJECT · Condition: upstream reject on market-trades", "", c.rejects},
		{"REST order entry rejection · Condition: cash_amount used with FOK or GTC", "", c.cashInForce},
		{"REST order entry rejection · Condition: cash_amount with a stop or take-profit type", "", c.cashTypes},
		{"REST order entry rejection · Condition: missing required fields", "", c.requiredFields},
		{"REST order entry rejection · Condition: trigger price type not allowed for the order type", "", c.triggerTypes},
		{"GET /v1/instruments, /v1/tickers 400 · Condition: possible for an unknown symbol (an empty list is the alternative)", "", c.unknownSymbol},
		{"Rules 1. The four WebSocket codes are channel-scoped: only the affected subscription is torn down, not the client connection", "", c.onlyThose},
		{"Rules 1. The client re-issues subscribe to recover", "", c.recovers},
		{"Rules 2. Shape of REST error bodies: not shown", "Errors: RFC 9457 `application/problem+json` with type, title, status, detail, instance, `code` (UPPER_SNAKE)", func() {
			a := c.do("broker-a", http.MethodPost, bensOrders, `{"symbol":"`+bitcoin+`"}`)
			var o object
			c.parse(a.Body, &o)
			c.equal("Content-Type", a.Header.Get("Content-Type"), "application/problem+json")
			c.equal("members", strings.Join(o.members(), " "), "code detail errors instance request_id status title type")
			c.like("code", o.text("code"), `^[A-Z]+(_[A-Z]+)*$`)
			c.like("errors", o.text("errors"), `"code":"REQUIRED","field":"action","message":`)
		}},
		{"Rules 3. Error codes of order validation failures: not shown", "422 rejected by the engine", func() {
			c.equal("a fault of the request", c.place(bitcoin, `"action":"buy","type":"limit","amount":"0.001"`), "400 limit_price REQUIRED")
			a := c.do("broker-a", http.MethodPost, bensOrders, `{"symbol":"`+bitcoin+`","action":"buy","type":"limit","amount":"0.001","limit_price":"65200","post_only":true}`)
			c.equal("a rejection", fmt.Sprint(a.Status, " ", a.get("code")), "422 POST_ONLY_WOULD_CROSS")
		}},
		{"Rules 4. Shape of WebSocket error messages: not shown", "Errors `{\"op\":\"error\",\"code\",\"message\",\"args\":[topic]}`", func() {
			m := livetest.Dial(c.t, c.WebSocket, "").Ask(livetest.Request{Op: "subscribe", Args: []string{"market-trades:NOPE"}})
			var o object
			c.parse(m.Raw, &o)
			c.equal("members", strings.Join(o.members(), " "), "args code message op")
			c.equal("code", o.text("code"), "UNKNOWN_SYMBOL")
			c.equal("args", o.text("args"), `["market-trades:NOPE"]`)
		}},
	}
}

func (c *conformance) limitChecks() []check {
	return []check{
		{"leverage · Applies to: order entry", "", c.overridePersists},
		{"leverage · Value: integer 1 to 13", "", c.leverageRange},
		{"cash_amount · Applies to: order entry", "", c.cashTypes},
		{"cash_amount · Value: positive", "", func() {
			c.refusedLike(`"type":"market","cash_amount":"0"`, "^400 cash_amount ")
			c.refusedLike(`"type":"market","cash_amount":"-100"`, "^400 cash_amount ")
			c.entered(`"type":"market","cash_amount":"100"`, "201 filled")
		}},
		{"cash_amount · Value: time_in_force IOC only", "", together(c.cashInForce, func() {
			c.refusedLike(`"type":"limit","limit_price":"65200","cash_amount":"100","time_in_force":"GTD","expire_time":"2090-01-01T00:00:00Z"`, "^400 time_in_force ")
			c.entered(`"type":"limit","limit_price":"65200","cash_amount":"100","time_in_force":"IOC"`, "201 filled")
		})},
		{"margin string precision · Applies to: margin fields", "", c.marginDecimals},
		{"margin string precision · Value: 2 decimals", "", c.marginDecimals},
		{"Rate limits: not shown", "Rate limits: a token bucket per user where the operator set one (none by default), with RateLimit headers", func() {
			limit, _ := c.one("/v1/limits")["rate_limit"].(map[string]any)
			c.equal("per_second, burst", object(limit).text("per_second")+", "+object(limit).text("burst"), "none, none")
			c.rateLimited()
		}},
		{"Maximum order sizes and number of subscriptions: not shown", "/limits`: the limits in force, \"none\" included", func() {
			most := c.all("/v1/instruments?symbol=" + bitcoin)[0].text("max_amount")
			a := c.do("broker-a", http.MethodPost, bensOrders, `{"symbol":"`+bitcoin+`","action":"buy","type":"limit","amount":"`+most+`.001","limit_price":"60000"}`)
			c.equal("an amount of "+most+".001", fmt.Sprint(a.Status, " ", a.get("code")), "400 AMOUNT_ABOVE_MAXIMUM")
			limits := c.one("/v1/limits")
			sockets, _ := limits["sockets"].(map[string]any)
			c.like("subscriptions", object(sockets).text("subscriptions"), `^\d+$`)
			orders, _ := limits["orders"].(map[string]any)
			c.equal("leverage", object(orders).text("leverage"), "13")
		}},
	}
}

// allJSON looks at everything that every socket was told, and at each channel that pushed.
func (c *conformance) allJSON() {
	channels := make(map[string]int)
	for _, socket := range []*livetest.Client{c.private, c.other, c.anna, c.public} {
		for _, m := range socket.Messages() {
			if !json.Valid(m.Raw) {
				c.t.Errorf("no JSON: %s", m.Raw)
			}
			if m.Op == "" {
				channels[m.Channel]++
			}
		}
	}
	for _, channel := range []string{"orders", "trades", "balance-changes", "orderbook-stream:" + bitcoin, "market-trades:" + bitcoin} {
		c.note("%s: %d messages", channel, channels[channel])
		if channels[channel] == 0 {
			c.t.Errorf("nothing came on %s", channel)
		}
	}
}

// sameOpenOrders holds the three routes of open orders against each other.
func (c *conformance) sameOpenOrders() {
	read := func(path string) string {
		return string(c.must(200, "broker-a", http.MethodGet, path, nil, c.written()...).Body)
	}
	if read("/orders") != read("/v1/orders") {
		c.t.Error("/orders and /v1/orders differ")
	}
	n := 0
	for _, customer := range alphas {
		n += len(c.all("/v1/customers/" + customer + "/orders"))
	}
	c.equal("open orders", fmt.Sprint(len(c.all("/orders"))), fmt.Sprint(n))
	for _, o := range c.all("/orders") {
		if s := o.text("status"); s != "open" && s != "partially_filled" {
			c.t.Errorf("%v", o)
		}
	}
}

// private401 is a check: nobody without a token may subscribe.
func (c *conformance) private401(topic string) func() {
	return func() {
		c.equal("without a token", livetest.Dial(c.t, c.WebSocket, "").Ask(livetest.Request{Op: "subscribe", Args: []string{topic}}).Code, "AUTHENTICATION_REQUIRED")
		c.equal("with one", livetest.Dial(c.t, c.WebSocket, c.token("broker-a")).Ask(livetest.Request{Op: "subscribe", Args: []string{topic}}).Op, "subscribed")
	}
}

func (c *conformance) isPublic(topic string) func() {
	return func() {
		c.equal(topic+" without a token", livetest.Dial(c.t, c.WebSocket, "").Ask(livetest.Request{Op: "subscribe", Args: []string{topic}}).Op, "subscribed")
	}
}

// noSuffix is a check: topics that are about no symbol take none.
func (c *conformance) noSuffix(topics ...string) func() {
	return func() {
		socket := livetest.Dial(c.t, c.WebSocket, c.token("broker-a"))
		for _, topic := range topics {
			c.equal(topic, socket.Ask(livetest.Request{Op: "subscribe", Args: []string{topic}}).Op, "subscribed")
			c.equal(topic+":"+bitcoin, socket.Ask(livetest.Request{Op: "subscribe", Args: []string{topic + ":" + bitcoin}}).Code, "UNKNOWN_TOPIC")
		}
	}
}

// ordersPerAccount says whose orders come to whom.
func (c *conformance) ordersPerAccount() {
	c.told(c.anna, "orders", "an order of ANNA", func(o object) bool { return o.text("customer_code") == "ANNA" })
	c.among("customer_code", []string{"ANNA"}, source{"what ANNA's user is told", func() []object { return c.on(c.anna, "orders") }})()
	c.among("customer_code", []string{"ANNA", "BEN", "FAY", "GUS", "LENA", "OTTO", "ZOE"}, c.orderMessages())()
	c.equal("broker-b", fmt.Sprint(len(c.on(c.other, "orders"))), "0")
}

// brokerScoped says that a broker is told of the balances of its own customers only, and a user of one account of that one.
func (c *conformance) brokerScoped() {
	one := c.subscribed("anna", "balance-changes")
	c.deposit("CARL", "1")
	c.deposit("BEN", "1")
	c.deposit("ANNA", "1")
	of := func(socket *livetest.Client, customer string) object {
		return c.told(socket, "balance-changes", "the deposit of "+customer, func(o object) bool { return o.text("customer_code") == customer && o.text("amount") == "1" })
	}
	c.equal("broker-b is told of", of(c.other, "CARL").text("customer_code"), "CARL")
	c.equal("broker-a is told of", of(c.private, "BEN").text("customer_code")+" "+of(c.private, "ANNA").text("customer_code"), "BEN ANNA")
	of(one, "ANNA")
	c.among("customer_code", []string{"CARL"}, source{"what broker-b is told", func() []object { return c.on(c.other, "balance-changes") }})()
	c.among("customer_code", []string{"ANNA"}, source{"what ANNA's user is told", func() []object { return c.on(one, "balance-changes") }})()
	for _, m := range c.on(c.private, "balance-changes") {
		if m.text("customer_code") == "CARL" {
			c.t.Errorf("broker-a is told of CARL: %v", m)
		}
	}
}

func (c *conformance) keepAlive() {
	socket := c.subscribed("", "market-trades:"+bitcoin)
	c.equal("ping", socket.Ask(livetest.Request{Op: "ping"}).Op, "pong")
	m := socket.Ask(livetest.Request{Op: "unsubscribe", Args: []string{"market-trades:" + bitcoin}})
	c.equal("unsubscribe "+m.Channel, m.Op, "unsubscribed")
}

// withdrawnSymbol is the instrument that is withdrawn under its subscriptions.
const withdrawnSymbol = "XRPUSDC_PERP"

// rateLimited has the operator set a limit for a user, who passes it with a batch of orders that the engine rejects: they
// count, too, each as one. A batch owes more than the slowest machine pays back before the next request.
func (c *conformance) rateLimited() {
	const password = "a second a request"
	made := c.must(201, "operator", http.MethodPost, "/admin/v1/users", map[string]any{"username": "hasty", "password": password, "broker": "alpha",
		"scopes": []string{"read", "trade"}, "is_active": true, "is_verified": true, "rate_limit": map[string]any{"per_second": 1, "burst": 10}})
	c.tokens["hasty"] = c.login("hasty", password, made)
	const crossing = `{"symbol":"` + bitcoin + `","action":"buy","type":"limit","amount":"0.001","limit_price":"65200","post_only":true}`
	batch := `{"orders":[` + crossing + strings.Repeat(","+crossing, 49) + `]}`
	decided := false
	waitFor(c.t, "a request to be refused for the rate", func() bool {
		a := c.do("hasty", http.MethodPost, bensOrders+"/batch", batch)
		c.note("%d %s RateLimit=%s", a.Status, a.get("code"), a.Header.Get("RateLimit"))
		switch {
		case a.busy(): // which may have cost as much, and rejected nothing
			return false
		case a.Status == 200 && strings.Count(string(a.Body), `"code":"POST_ONLY_WOULD_CROSS"`) == 50:
			decided = true
		case a.Status == 429:
			c.like("Retry-After", a.Header.Get("Retry-After"), `^\d+$`)
		default:
			c.t.Fatalf("%d %s", a.Status, a.Body)
		}
		if a.Header.Get("RateLimit") == "" || a.Header.Get("RateLimit-Policy") == "" {
			c.t.Errorf("%d %v", a.Status, a.Header)
		}
		return decided && a.Status == 429
	})
}
