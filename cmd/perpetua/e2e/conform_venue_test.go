package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/cmd/perpetua/e2e/altered"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

const solana, polkadot = "SOLUSDC_PERP", "DOTUSDC_PERP"

// conformance is a running venue on which something of everything has happened, and who listened to it.
type conformance struct {
	*reading
	root       *testing.T // for what lasts longer than a check
	references int        // that were given to deposits and withdrawals

	private *livetest.Client  // of broker-a, whose customers are all but CARL
	other   *livetest.Client  // of broker-b
	anna    *livetest.Client  // of a user who sees ANNA's account only
	public  *livetest.Client  // without a token
	orders  map[string]object // the answers to order entry, by what the orders are called here
	cash    map[string]bool   // codes of orders that were sized by cash_amount

	withdrawn func() *livetest.Client // takes an instrument off the listings, once, and returns who was subscribed to it
	lost      func() loss             // loses the log of another venue, once
}

// open brings the venue up. Its clock is set so that eight in the morning, when positions are settled, passes
// between its two starts, and the end of a minute, when ETHUSDC_PERP has its funding, comes soon after the second.
func (c *conformance) open() {
	c.withdrawn = sync.OnceValue(c.withdraw)
	c.lost = sync.OnceValue(c.loseAnother)
	eight := time.Now().UTC().Truncate(24 * time.Hour).Add(8 * time.Hour)
	if time.Until(eight) > -time.Hour { // real brokers take no times of the future
		eight = eight.Add(-24 * time.Hour)
	}
	c.startAt(eight.Add(-10 * time.Minute))
	c.fundAll()
	c.stop()
	c.startAt(eight.Add(45 * time.Second))
	c.t.Cleanup(c.stop)
	c.listen()
	c.happen()
	c.heard()
}

// startAt starts the venue with a clock that shows the given time.
func (c *conformance) startAt(at time.Time) {
	c.env = slices.DeleteFunc(c.env, func(v string) bool { return strings.HasPrefix(v, altered.ClockAhead) })
	c.env = append(c.env, altered.ClockAhead+"="+time.Until(at).String())
	c.start()
}

// fundAll opens the accounts, and two of them a position in ETHUSDC_PERP that gains 30 before it is settled.
func (c *conformance) fundAll() {
	for symbol, price := range map[string]string{bitcoin: "65000", ether: "3000", solana: "100"} {
		c.index(symbol, price)
	}
	for _, customer := range []string{"ANNA", "BEN", "FAY", "GUS", "LENA", "OTTO", "ZOE", "CARL"} {
		c.must(201, c.brokerOf(customer), http.MethodPost, "/v1/customers", map[string]string{"customer_code": customer})
		c.deposit(customer, map[bool]string{true: "1000", false: "100000"}[customer == "LENA"])
	}
	c.must(200, "operator", http.MethodPatch, "/admin/v1/instruments/"+ether, `{"funding_interval_seconds":60}`)
	c.enterOn(ether, "given", "GUS", `"action":"sell","type":"limit","amount":"1","limit_price":"3000"`)
	c.enterOn(ether, "had", "FAY", `"action":"buy","type":"limit","amount":"1","limit_price":"3000"`)
	c.index(ether, "3030")
}

func (c *conformance) deposit(customer, amount string) {
	c.t.Helper()
	c.references++
	c.must(201, "operator", http.MethodPost, "/admin/v1/customers/"+customer+"/deposits",
		map[string]string{"currency": "USDC", "amount": amount, "reference_id": fmt.Sprint("deposit-", c.references)})
}

func (c *conformance) brokerOf(customer string) string {
	if customer == "CARL" {
		return "broker-b"
	}
	return "broker-a"
}

// known waits until the fold that sockets follow knows of an instrument: what is answered comes from the engine, which may be ahead.
func (c *conformance) known(symbol string) {
	c.t.Helper()
	waitFor(c.t, symbol+" to be known", func() bool { return c.do("", http.MethodGet, "/v1/orderbook/"+symbol, nil).Status == 200 })
}

func (c *conformance) index(symbol, price string) {
	c.t.Helper()
	c.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+symbol, map[string]string{"price": price})
}

// listen connects everybody, once DOTUSDC_PERP is listed.
func (c *conformance) listen() {
	c.must(201, "operator", http.MethodPost, "/admin/v1/instruments", `{"symbol":"`+polkadot+`","underlying":"DOT","price_tick":"0.001","amount_step":"0.1","max_amount":"100000","init_margin_req":"5","maint_margin_req":"2.5"}`)
	c.known(polkadot)
	const password = "for ANNA's eyes only"
	made := c.must(201, "operator", http.MethodPost, "/admin/v1/users", map[string]any{"username": "anna", "password": password, "broker": "alpha",
		"customer_code": "ANNA", "scopes": []string{"read", "trade"}, "is_active": true, "is_verified": true})
	c.tokens["anna"] = c.login("anna", password, made)
	c.private = livetest.Dial(c.t, c.WebSocket, c.token("broker-a"))
	c.other = livetest.Dial(c.t, c.WebSocket, "")
	c.other.Authenticate(c.token("broker-b")) // the other way to do it
	c.anna = livetest.Dial(c.t, c.WebSocket, c.token("anna"))
	c.public = livetest.Dial(c.t, c.WebSocket, "")
	c.private.Subscribe("orders", "trades", "balance-changes")
	c.other.Subscribe("orders", "trades", "balance-changes")
	c.anna.Subscribe("orders", "trades")
	c.public.Subscribe("orderbook-stream:"+bitcoin, "market-trades:"+bitcoin, "market-trades:"+solana, "orderbook-stream:"+polkadot, "market-trades:"+polkadot)
}

// enter places an order on BTCUSDC_PERP and keeps the answer under a name.
func (c *conformance) enter(name, customer, body string) object {
	c.t.Helper()
	return c.enterOn(bitcoin, name, customer, body)
}

func (c *conformance) enterOn(symbol, name, customer, body string) object {
	c.t.Helper()
	o := c.sendAs(201, c.brokerOf(customer), http.MethodPost, "/v1/customers/"+customer+"/orders", `{"symbol":"`+symbol+`",`+body+`}`)
	c.orders[name] = o
	c.sized(o, body)
	return o
}

// sized remembers whether an order was sized by cash_amount.
func (c *conformance) sized(o object, body string) {
	if strings.Contains(body, `"cash_amount"`) {
		c.cash[o.text("code")] = true
	}
}

// place places an order on an instrument for BEN, whatever comes of it, and returns status, the order's state and its reason, or
// what was wrong with the request.
func (c *conformance) place(symbol, body string) string {
	c.t.Helper()
	a := c.do("broker-a", http.MethodPost, bensOrders, `{"symbol":"`+symbol+`",`+body+`}`)
	var o object
	c.parse(a.Body, &o)
	switch a.Status {
	case 400:
		return "400 " + strings.Join(c.faults(a), ", ")
	case 422:
		if of, ok := o["order"].(map[string]any); ok {
			return "422 " + object(of).text("status") + " " + object(of).text("reason")
		}
	}
	c.sized(o, body)
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", o.text("status"), " ", strings.TrimPrefix(o.text("reason"), "null")))
}

// now is the time of the venue's clock in so many seconds. The interface tells the time of the machine's, so it is read off a record.
func (c *conformance) now(in time.Duration) string {
	c.t.Helper()
	o := c.enter("clock", "ANNA", `"action":"buy","type":"limit","amount":"0.001","limit_price":"60000"`)
	c.send(200, http.MethodDelete, annasOrders+"/"+o.text("code"), "")
	at, err := time.Parse(time.RFC3339, o.text("created"))
	if err != nil {
		c.t.Fatal(err)
	}
	return at.Add(in).Format("2006-01-02T15:04:05.000000Z")
}

// happen has something of everything happen on BTCUSDC_PERP, and a liquidation on SOLUSDC_PERP.
func (c *conformance) happen() {
	for symbol, price := range map[string]string{bitcoin: "65000", solana: "100", polkadot: "5"} {
		c.index(symbol, price)
	}
	// Both sides of the book have what a sample of the premium takes.
	c.enterOn(ether, "low", "FAY", `"action":"buy","type":"limit","amount":"5","limit_price":"3000"`)
	c.enterOn(ether, "high", "GUS", `"action":"sell","type":"limit","amount":"5","limit_price":"3060"`)
	c.index(ether, "3030")

	c.enter("offer", "ANNA", `"action":"sell","type":"limit","amount":"0.1","limit_price":"65000","reference_id":"anna-offer"`)
	c.enter("taken", "BEN", `"action":"buy","type":"limit","amount":"0.04","limit_price":"65000"`)
	c.enter("cash", "BEN", `"action":"buy","type":"market","cash_amount":"700"`)
	c.send(200, http.MethodDelete, annasOrders+"/"+c.orders["offer"].text("code"), "")
	c.enter("near", "ANNA", `"action":"sell","type":"limit","amount":"0.01","limit_price":"65000"`)
	c.enter("far", "ANNA", `"action":"sell","type":"limit","amount":"0.03","limit_price":"65100"`)
	c.enter("market", "BEN", `"action":"buy","type":"market","amount":"0.04"`)
	c.enter("partial", "ANNA", `"action":"sell","type":"limit","amount":"0.2","limit_price":"65200"`)
	c.enter("bite", "BEN", `"action":"buy","type":"limit","amount":"0.005","limit_price":"65200"`)
	c.enter("second bite", "BEN", `"action":"buy","type":"limit","amount":"0.006","limit_price":"65200"`)
	c.enter("unmet", "BEN", `"action":"buy","type":"limit","amount":"5","limit_price":"65200","time_in_force":"FOK"`)
	c.enter("at once", "BEN", `"action":"buy","type":"limit","amount":"0.001","limit_price":"60000","time_in_force":"IOC"`)
	rejected := c.send(422, http.MethodPost, bensOrders, `{"symbol":"`+bitcoin+`","action":"buy","type":"limit","amount":"0.001","limit_price":"65200","post_only":true}`)
	c.orders["rejected"], _ = rejected["order"].(map[string]any)
	c.enterExpiring("expired")
	c.wait()
	c.enter("resting", "ANNA", `"action":"sell","type":"limit","amount":"0.02","limit_price":"66000","leverage":10`)
	c.enter("lower", "BEN", `"action":"buy","type":"limit","amount":"0.02","limit_price":"60500"`)
	c.enter("amended", "ANNA", `"action":"buy","type":"limit","amount":"0.02","limit_price":"61000"`)
	c.orders["amended"] = c.send(200, http.MethodPatch, annasOrders+"/"+c.orders["amended"].text("code"), `{"limit_price":"61000.5","amount":"0.03"}`)
	c.liquidate()
	c.told(c.private, "orders", "the order to expire", func(o object) bool {
		return o.text("code") == c.orders["expired"].text("code") && o.text("status") == "expired"
	})
}

// enterExpiring has ANNA enter an order that expires soon. On a busy machine that time may have passed when the order is
// decided, which is refused: then it gets twice as long.
func (c *conformance) enterExpiring(name string) {
	c.t.Helper()
	in := 5 * time.Second
	waitFor(c.t, "an order that is entered before it expires", func() bool {
		body := `{"symbol":"` + bitcoin + `","action":"buy","type":"limit","amount":"0.001","limit_price":"60000","time_in_force":"GTD","expire_time":"` + c.now(in) + `"}`
		a := c.insist(201, func() answer { return c.do("broker-a", http.MethodPost, annasOrders, body) })
		if in *= 2; a.Status == 400 && slices.Equal(c.faults(a), []string{"expire_time INVALID_EXPIRE_TIME"}) {
			return false
		}
		if a.Status != 201 {
			c.t.Fatalf("%d %s", a.Status, a.Body)
		}
		var o object
		c.parse(a.Body, &o)
		c.orders[name] = o
		return true
	})
}

// heard waits until everybody has heard of what happened: an order comes and goes, and the sockets tell of that.
func (c *conformance) heard() {
	code := c.stir()
	last := c.told(c.private, "orders", "the last order", func(o object) bool { return o.text("code") == code && o.text("status") == "canceled" })
	c.told(c.public, "orderbook-stream:"+bitcoin, "the last change of the book", func(o object) bool { return o.text("sequence") == last.text("sequence") })
}

// wait has BEN's stops and take profits wait for their prices, and one of them fire.
func (c *conformance) wait() {
	c.enter("fired", "BEN", `"action":"sell","type":"stop_loss","amount":"0.01","trigger_price":"64500"`)
	c.enter("below", "ANNA", `"action":"buy","type":"limit","amount":"0.02","limit_price":"64500"`)
	c.enter("firing", "BEN", `"action":"sell","type":"limit","amount":"0.01","limit_price":"64500"`)
	c.enter("stop_loss", "BEN", `"action":"sell","type":"stop_loss","amount":"0.01","trigger_price":"60000"`)
	c.enter("stop_loss_limit", "BEN", `"action":"sell","type":"stop_loss_limit","amount":"0.01","trigger_price":"60000","limit_price":"59900"`)
	c.enter("take_profit", "BEN", `"action":"sell","type":"take_profit","amount":"0.01","trigger_price":"70000"`)
	c.enter("take_profit_limit", "BEN", `"action":"sell","type":"take_profit_limit","amount":"0.01","trigger_price":"70000","limit_price":"70000"`)
	c.enter("take_profit_stop_loss", "BEN", `"action":"sell","type":"take_profit_stop_loss","amount":"0.01","stop_loss_price":"60000","take_profit_price":"70000"`)
}

// liquidate has LENA, who holds 100 SOL bought at 100 with 995 USDC, meet an index of 93.5: 345 are left and 359.6 are needed.
// The first step finds ZOE's bid; the next finds nobody, and the insurance fund has too little, so OTTO's gains pay.
func (c *conformance) liquidate() {
	c.enterOn(solana, "short", "OTTO", `"action":"sell","type":"limit","amount":"100","limit_price":"100"`)
	c.enterOn(solana, "long", "LENA", `"action":"buy","type":"limit","amount":"100","limit_price":"100"`)
	c.enterOn(solana, "bid", "ZOE", `"action":"buy","type":"limit","amount":"20","limit_price":"91"`)
	c.index(solana, "93.5")
	c.told(c.private, "trades", "the deleveraging of LENA", func(o object) bool {
		return o.text("customer_code") == "LENA" && o.text("trade_type") == "auto_deleveraging"
	})
}

// code returns the code of an order by what it is called here.
func (c *conformance) code(name string) string {
	c.t.Helper()
	code := c.orders[name].text("code")
	if code == "" {
		c.t.Fatalf("there is no order %s", name)
	}
	return code
}

// customers of broker-a.
var alphas = []string{"ANNA", "BEN", "FAY", "GUS", "LENA", "OTTO", "ZOE"}

// perCustomer is a source of what a route tells of each customer of broker-a.
func (c *conformance) perCustomer(name, route string) source {
	return source{name, func() (out []object) {
		for _, customer := range alphas {
			out = append(out, c.all("/v1/customers/"+customer+route)...)
		}
		return out
	}}
}

// restOrders is every order of broker-a as REST tells of it: the history, and what is open.
func (c *conformance) restOrders() source {
	history := c.perCustomer("", "/orders/history?page_size=1000")
	return source{"REST orders", func() []object {
		all := append(history.read(), c.all("/v1/orders")...)
		slices.SortStableFunc(all, func(a, b object) int { return cmp.Compare(a.text("code"), b.text("code")) })
		return slices.CompactFunc(all, func(a, b object) bool { return a.text("code") == b.text("code") })
	}}
}

// orderMessages is everything that was told on the channel of orders.
func (c *conformance) orderMessages() source {
	return source{"orders messages", func() []object { return c.on(c.private, "orders") }}
}

// bookChanges is every change of the order book that was told.
func (c *conformance) bookChanges() source {
	return source{"changes of the book", func() (out []object) {
		for _, m := range c.on(c.public, "orderbook-stream:"+bitcoin) {
			changes, _ := m["changes"].([]any)
			for _, change := range changes {
				o, _ := change.(map[string]any)
				out = append(out, o)
			}
		}
		return out
	}}
}

// path is a source of what one route answers: a list, or an object.
func (c *conformance) path(path string) source {
	return source{path, func() []object {
		var first any
		c.parse(c.must(200, "broker-a", http.MethodGet, path, nil, c.written()...).Body, &first)
		if o, ok := first.(map[string]any); ok && o["records"] == nil {
			return []object{o}
		}
		return c.all(path)
	}}
}
