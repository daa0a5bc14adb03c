package live_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/websocket"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

func TestATradeOnEveryChannel(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial(v.reader("alpha"))
	c.Subscribe("orders", "trades", "balance-changes", "orderbook-stream:"+btc, "market-trades:"+btc)
	maker := v.place(limit("A1", btc, order.Sell, "1.000", "1000.5"))
	ask := limit("A2", btc, order.Buy, "0.400", "1001")
	ask.ReferenceID = "mine"
	taker := v.place(ask)
	v.do(trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: "A1", OrderCode: maker.Code})
	c.Next("the cancellation", func(m livetest.Message) bool { // a record's change of the book comes behind all else
		return m.Channel == "orderbook-stream:"+btc && strings.Contains(m.Fields()["changes"], "delete")
	})

	states := make(map[string][]string)
	for _, m := range c.On("orders") {
		f := m.Fields()
		states[f["customer_code"]] = append(states[f["customer_code"]], f["status"]+" "+f["filled_amount"]+" "+f["reason"])
	}
	if got := strings.Join(states["A1"], ", "); got != "open 0.000 null, partially_filled 0.400 null, canceled 0.400 user_request" {
		t.Errorf("the maker's order: %s", got)
	}
	if got := strings.Join(states["A2"], ", "); got != "filled 0.400 null" {
		t.Errorf("the taker's order: %s", got)
	}
	for _, m := range c.On("orders") {
		if f := m.Fields(); f["code"] == taker.Code.String() {
			expect(t, f, map[string]string{"type": "update", "order_type": "limit", "limit_price": "1001.0", "average_fill_price": "1000.5",
				"filled_quote": "400.2", "reference_id": "mine", "trigger_price": "null", "time_in_force": "GTC",
				"timestamp": taker.Updated.String(), "created": taker.Created.String(), "amount": "0.400"})
			if _, there := f["cash_amount"]; there {
				t.Error("cash_amount on an order sized in contracts")
			}
		}
	}

	public := c.On("market-trades:" + btc)
	if len(public) != 1 {
		t.Fatalf("%d market trades", len(public))
	}
	trade := public[0].Fields()
	expect(t, trade, map[string]string{"symbol": btc, "price": "1000.5", "amount": "0.400", "action": "buy", "type": "trade"})
	legs := make(map[string]map[string]string)
	for _, m := range c.On("trades") {
		legs[m.Fields()["role"]] = m.Fields()
	}
	expect(t, legs["taker"], map[string]string{"code": trade["code"], "customer_code": "A2", "action": "buy", "fee": "0.2001",
		"trade_type": "trade", "type": "update", "reference_id": "mine", "notional": "400.2", "order_code": taker.Code.String()})
	expect(t, legs["maker"], map[string]string{"code": trade["code"], "customer_code": "A1", "action": "sell", "fee": "0.08004",
		"order_code": maker.Code.String(), "fee_currency": "USDC"})
	rows := make(map[string]map[string]string)
	for _, m := range c.On("balance-changes") {
		rows[m.Fields()["customer_code"]] = m.Fields()
	}
	expect(t, rows["A2"], map[string]string{"code": trade["code"], "transaction_type": "trade_fee", "amount": "-0.2001",
		"balance": "999999.7999", "status": "completed", "symbol": btc, "order_code": taker.Code.String(), "balance_as_of": trade["timestamp"]})
	if got := strings.Join(changes(c.On("orderbook-stream:"+btc)), ", "); got != "new ask 1000.5 1.000, change ask 1000.5 0.600, delete ask 1000.5 0" {
		t.Errorf("book: %s", got)
	}
}

func changes(messages []livetest.Message) []string {
	var out []string
	for _, m := range messages {
		for _, c := range strings.Split(m.Fields()["changes"], "},{") {
			if f := strings.Split(c, `"`); len(f) > 15 {
				out = append(out, f[3]+" "+f[7]+" "+f[11]+" "+f[15])
			}
		}
	}
	return out
}

func expect(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q in %v", name, got[name], value, got)
		}
	}
}

func TestWithdrawalIsPushedTwice(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial(v.reader("alpha"))
	c.Subscribe("balance-changes")
	e := v.do(trading.CommandRequestWithdrawal, &trading.RequestWithdrawal{CustomerCode: "A1", Currency: "USDC", Amount: 5 * fixed.Unit})
	code := e.Record.Events[0].(*trading.WithdrawalRequested).Code
	v.do(trading.CommandCompleteWithdrawal, &trading.CompleteWithdrawal{Code: code})
	v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: "A1", Currency: "USDC", Amount: fixed.Unit / 2})
	first := c.Next("the request", onBalance).Fields()
	expect(t, first, map[string]string{"code": code.String(), "status": "pending", "amount": "-5", "transaction_type": "withdrawal", "symbol": "null"})
	if _, there := first["balance"]; there {
		t.Error("a pending row has a balance")
	}
	expect(t, c.Next("the completion", onBalance).Fields(), map[string]string{"code": code.String(), "status": "completed", "balance": "999995"})
	expect(t, c.Next("the deposit", onBalance).Fields(), map[string]string{"transaction_type": "deposit", "amount": "0.5", "balance": "999995.5"})
}

func onBalance(m livetest.Message) bool { return m.Channel == "balance-changes" && m.Op == "" }

func TestWhoSeesWhat(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	private := []string{"orders", "trades", "balance-changes"}
	readers := map[string]struct {
		client *livetest.Client
		sees   string
	}{
		"broker alpha":       {v.dial(v.reader("alpha")), "A1 A2"},
		"broker beta":        {v.dial(v.reader("beta")), "B1"},
		"customer A2":        {v.dial(v.token("alpha", "A2", time.Hour, access.ScopeRead)), "A2"},
		"operator":           {v.dial(v.token("venue", "", time.Hour, access.ScopeRead, access.ScopeOperator)), "A1 A2 B1"},
		"auditor":            {v.dial(v.token("venue", "", time.Hour, access.ScopeRead, access.ScopeAuditor)), "A1 A2 B1"},
		"alpha, only A1":     {v.dial(v.reader("alpha")), "A1"},
		"operator, only B1":  {v.dial(v.token("venue", "", time.Hour, access.ScopeRead, access.ScopeOperator)), "B1"},
		"a broker of nobody": {v.dial(v.reader("gamma")), ""},
	}
	for name, r := range readers {
		request := livetest.Request{Args: private}
		if _, customer, narrowed := strings.Cut(name, ", only "); narrowed {
			request.Data = map[string]string{"customer_code": customer}
		}
		r.client.SubscribeWith(request)
	}
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("B1", btc, order.Buy, "0.5", "1000"))
	v.place(limit("A2", btc, order.Buy, "0.5", "1000"))
	for name, r := range readers {
		r.client.Ask(livetest.Request{Op: "ping"}) // what came before the answer is all that comes
		for _, topic := range private {
			seen := make(map[string]bool)
			for _, m := range r.client.On(topic) {
				seen[m.Fields()["customer_code"]] = true
			}
			for _, customer := range []string{"A1", "A2", "B1"} {
				if seen[customer] != strings.Contains(r.sees, customer) {
					t.Errorf("%s on %s: %v, want %s", name, topic, seen, r.sees)
				}
			}
		}
	}
}

func TestRefusedSubscriptions(t *testing.T) {
	v := newVenue(t, live.Limits{Subscriptions: 3}, nil)
	anonymous := v.dial("")
	alpha := v.dial(v.reader("alpha"))
	noScope := v.dial(v.token("alpha", "", time.Hour, access.ScopeTrade))
	oneCustomer := v.dial(v.token("alpha", "A1", time.Hour, access.ScopeRead))
	alpha.Subscribe("orders")
	subscribe := func(data any, topics ...string) livetest.Request {
		return livetest.Request{Op: "subscribe", Args: topics, Data: data, ID: 7}
	}
	narrow := func(customer string) any { return map[string]string{"customer_code": customer} }
	for name, c := range map[string]struct {
		client  *livetest.Client
		request livetest.Request
		code    live.Code
	}{
		"unknown topic":               {alpha, subscribe(nil, "weather"), live.UnknownTopic},
		"a later one":                 {alpha, subscribe(nil, "order"), live.UnknownTopic},
		"private with a symbol":       {alpha, subscribe(nil, "orders:"+btc), live.UnknownTopic},
		"public without a symbol":     {alpha, subscribe(nil, "market-trades"), live.UnknownTopic},
		"public with an empty one":    {alpha, subscribe(nil, "market-trades:"), live.UnknownTopic},
		"unknown symbol":              {alpha, subscribe(nil, "orderbook-stream:DOGE"), live.UnknownSymbol},
		"a symbol in lower case":      {alpha, subscribe(nil, "market-trades:btcusdc_perp"), live.UnknownSymbol},
		"control characters":          {alpha, subscribe(nil, "orders\x00\n"), live.UnknownTopic},
		"twice":                       {alpha, subscribe(nil, "orders"), live.AlreadySubscribed},
		"another broker's customer":   {alpha, subscribe(narrow("B1"), "trades"), live.Forbidden},
		"a customer that is not":      {alpha, subscribe(narrow("X9"), "trades"), live.Forbidden},
		"customer_code on a public":   {alpha, subscribe(narrow("A1"), "market-trades:"+btc), live.InvalidMessage},
		"a private one, no token":     {anonymous, subscribe(nil, "balance-changes"), live.AuthenticationRequired},
		"without the scope":           {noScope, subscribe(nil, "orders"), live.Forbidden},
		"another customer":            {oneCustomer, subscribe(narrow("A2"), "orders"), live.Forbidden},
		"not subscribed":              {alpha, livetest.Request{Op: "unsubscribe", Args: []string{"trades"}, ID: 7}, live.NotSubscribed},
		"resuming a book":             {alpha, livetest.Request{Op: "subscribe", Args: []string{"orderbook-stream:" + btc}, ResumeFrom: "trading/0@1", ID: 7}, live.InvalidMessage},
		"resuming from another log":   {alpha, livetest.Request{Op: "subscribe", Args: []string{"trades"}, ResumeFrom: "identity/0@1", ID: 7}, live.InvalidMessage},
		"a token that is not one":     {alpha, livetest.Request{Op: "authenticate", Data: map[string]string{"token": "x"}, ID: 7}, live.AuthenticationFailed},
		"a field that is not known":   {alpha, livetest.Request{Op: "ping", Args: []string{"x"}, ID: 7}, live.InvalidMessage},
		"an operation that is not":    {alpha, livetest.Request{Op: "shout", ID: 7}, live.InvalidMessage},
		"an unknown field in data":    {alpha, subscribe(map[string]any{"depth": 5}, "trades"), live.InvalidMessage},
		"positions as a string":       {alpha, subscribe(map[string]any{"positions": "true"}, "trades"), live.InvalidMessage},
		"resuming from no position":   {alpha, livetest.Request{Op: "subscribe", Args: []string{"trades"}, ResumeFrom: "5", ID: 7}, live.InvalidMessage},
		"resuming before the genesis": {alpha, livetest.Request{Op: "subscribe", Args: []string{"trades"}, ResumeFrom: "trading/0@-2", ID: 7}, live.InvalidMessage},
		"resuming before a record":    {alpha, livetest.Request{Op: "subscribe", Args: []string{"trades"}, ResumeFrom: "trading/0@-1", ID: 7}, live.InvalidMessage},
	} {
		m := c.client.Ask(c.request)
		if m.Op != "error" || m.Code != string(c.code) || m.Fields()["id"] != "7" {
			t.Errorf("%s: %s, want %s", name, m.Raw, c.code)
		}
		if topic := len(c.request.Args) == 1 && c.code != live.InvalidMessage; topic && (len(m.Args) != 1 || m.Args[0] != c.request.Args[0]) {
			t.Errorf("%s: the error is about %q", name, m.Args)
		}
	}
	// One answer for each topic, in their order, whatever happens to the others; and no more subscriptions than allowed.
	alpha.Send(livetest.Request{Op: "subscribe", Args: []string{"trades", "weather", "balance-changes", "market-trades:" + btc}})
	for _, want := range []string{"subscribed trades", "error UNKNOWN_TOPIC", "subscribed balance-changes", "error RATE_LIMITED"} {
		if m := alpha.Next(want, func(m livetest.Message) bool { return m.Op != "" }); m.Op+" "+m.Channel+m.Code != want {
			t.Errorf("%s, want %s", m.Raw, want)
		}
	}
}

func TestUnsubscribedIsTheLast(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial("")
	topic := "orderbook-stream:" + btc
	c.Subscribe(topic)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	if m := c.Ask(livetest.Request{Op: "unsubscribe", Args: []string{topic}, ID: "u"}); m.Op != "unsubscribed" || m.Channel != topic || m.Fields()["id"] != "u" {
		t.Errorf("%s", m.Raw)
	}
	v.place(limit("A1", btc, order.Sell, "1", "1001"))
	if m := c.Ask(livetest.Request{Op: "ping", ID: 1.5}); m.Op != "pong" || m.Fields()["id"] != "1.5" {
		t.Errorf("%s", m.Raw)
	}
	if n := len(c.On(topic)); n != 2 {
		t.Errorf("%d messages, want the snapshot and one update", n)
	}
	c.Subscribe(topic) // again: another snapshot, which holds what happened meanwhile
	m := c.Next("a snapshot", func(m livetest.Message) bool {
		return m.Type == "snapshot" && strings.Contains(string(m.Raw), "1001.0")
	})
	if m.Channel != topic {
		t.Errorf("%s", m.Raw)
	}
}

func TestHandshake(t *testing.T) {
	v := newVenue(t, live.Limits{Connections: 2}, nil)
	if _, response, err := livetest.TryDial(t, v.url, "forged"); err == nil || response == nil || response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a forged token: %v %v", response, err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(v.url, "ws"), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("a plain GET: %d", response.StatusCode)
	}
	v.dial("")
	v.dial("")
	if _, response, err := livetest.TryDial(t, v.url, ""); err == nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one connection too many: %v %v", response, err)
	}
}

// What the WebSocket library refuses in its own words is refused in ours before it sees it.
func TestHandshakeFaults(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	good := base64.StdEncoding.EncodeToString(make([]byte, 16))
	for _, test := range []struct {
		method, query, version, key, body string
		status                            int
		code                              string
	}{
		{"HEAD", "", "13", good, "", http.StatusUpgradeRequired, ""},
		{"GET", "", "8", good, "", http.StatusUpgradeRequired, "UPGRADE_REQUIRED"},
		{"GET", "", "", good, "", http.StatusUpgradeRequired, "UPGRADE_REQUIRED"},
		{"GET", "", "13", "", "", http.StatusBadRequest, "VALIDATION_FAILED"},
		{"GET", "", "13", "abc", "", http.StatusBadRequest, "VALIDATION_FAILED"},
		{"GET", "?token=x", "13", good, "", http.StatusBadRequest, "VALIDATION_FAILED"},
		{"GET", "", "13", good, "body", http.StatusBadRequest, "BODY_NOT_ALLOWED"},
		{"GET", "", "8, 13", good, "", http.StatusSwitchingProtocols, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "http"+strings.TrimPrefix(v.url, "ws")+test.query, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": test.version, "Sec-WebSocket-Key": test.key,
		} {
			if value != "" {
				request.Header.Set(name, value)
			}
		}
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		var problem struct{ Code string }
		if response.StatusCode != http.StatusSwitchingProtocols && test.method != http.MethodHead {
			_ = json.UnmarshalRead(response.Body, &problem, json.MatchCaseInsensitiveNames(true))
		}
		_ = response.Body.Close()
		if response.StatusCode != test.status || problem.Code != test.code {
			t.Errorf("%+v: got %d %q", test, response.StatusCode, problem.Code)
		}
		if test.status == http.StatusUpgradeRequired && response.Header.Get("Sec-WebSocket-Version") != "13" {
			t.Errorf("%+v: the answer does not name the version", test)
		}
	}
}

func TestAuthenticateByMessage(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial("")
	c.Authenticate(v.reader("alpha"))
	c.Subscribe("orders", "market-trades:"+btc)
	c.Authenticate(v.reader("alpha")) // the same reader: the subscription goes on
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	c.Next("the order", func(m livetest.Message) bool { return m.Channel == "orders" && m.Op == "" })
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": v.reader("beta")}}); m.Code != string(live.AuthenticationFailed) {
		t.Errorf("another user: %s", m.Raw)
	}
	v.place(limit("A1", btc, order.Sell, "1", "1001"))
	c.Next("the order, as before", func(m livetest.Message) bool { return m.Channel == "orders" && m.Op == "" })
	// The same user, now for one account.
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": v.token("alpha", "A1", time.Hour, access.ScopeRead)}}); m.Code != string(live.Forbidden) || m.Args[0] != "orders" {
		t.Errorf("before the acknowledgement: %s", m.Raw)
	}
	c.Next("the acknowledgement", func(m livetest.Message) bool { return m.Op == "authenticated" })
	v.place(limit("A1", btc, order.Sell, "1", "1002"))
	v.place(limit("B1", btc, order.Buy, "1", "1000"))
	c.Next("the trade", func(m livetest.Message) bool { return m.Channel == "market-trades:"+btc && m.Op == "" })
	if n := len(c.On("orders")); n != 2 {
		t.Errorf("%d orders, want those of before", n)
	}
}

func TestExpiryEndsPrivateSubscriptions(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial(v.reader("alpha"))
	c.Subscribe("orders", "balance-changes", "orderbook-stream:"+btc)
	for lasts := 50 * time.Millisecond; ; lasts *= 3 { // the same reader, for a shorter time, which a busy machine may need to be longer
		// On a busy machine the token may have ended before it is acknowledged, and the subscriptions with it: their ends have no id.
		c.Send(livetest.Request{Op: "authenticate", Data: map[string]string{"token": v.token("alpha", "", lasts, access.ScopeRead)}, ID: lasts.String()})
		m := c.Next("the answer", func(m livetest.Message) bool { return m.Fields()["id"] == lasts.String() })
		if m.Op == "authenticated" {
			break
		}
		if lasts > time.Minute {
			t.Fatalf("%s", m.Raw)
		}
	}
	for _, topic := range []string{"orders", "balance-changes"} {
		c.Until("the end of "+topic, func(all []livetest.Message) bool {
			return slices.ContainsFunc(all, func(m livetest.Message) bool {
				return m.Code == string(live.AuthenticationRequired) && slices.Equal(m.Args, []string{topic})
			})
		})
	}
	caughtUp(c)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	c.Next("the book", func(m livetest.Message) bool { return m.Type == "update" })
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"orders"}}); m.Code != string(live.AuthenticationRequired) {
		t.Errorf("%s", m.Raw)
	}
	c.Authenticate(v.reader("alpha"))
	c.Subscribe("orders")
	if n := len(c.On("orders")); n != 0 {
		t.Errorf("%d orders after the token's end", n)
	}
}

// keyless takes no API keys, as the verifier of a read-only node.
type keyless struct{ *venue }

func (k keyless) Verify(token, address string) (*access.Principal, error) {
	if strings.HasPrefix(token, access.APIKeyPrefix) {
		return nil, access.ErrKeysRefused
	}
	return k.venue.Verify(token, address)
}

// TestRefusedAPIKeys: a node that takes no API keys says so.
func TestRefusedAPIKeys(t *testing.T) {
	var tokens keyless
	v := newVenue(t, live.Limits{}, nil, func(c *live.Config) { c.Tokens = &tokens })
	tokens.venue = v
	c := v.dial("")
	const says = "takes no API keys"
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": access.APIKeyPrefix + "x"}}); m.Code != string(live.AuthenticationFailed) ||
		!strings.Contains(string(m.Raw), says) {
		t.Errorf("by message: %s", m.Raw)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(v.url, "ws"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Authorization": "Bearer " + access.APIKeyPrefix + "x"} {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusUnauthorized || !strings.Contains(string(body), says) {
		t.Errorf("by header: %d %s (%v)", response.StatusCode, body, err)
	}
}

func TestAuthenticatingInTimeProlongs(t *testing.T) {
	v := newVenue(t, live.Limits{VerifyEvery: 20 * time.Millisecond}, nil)
	first := v.token("alpha", "", time.Hour, access.ScopeRead)
	c := v.dial(first)
	c.Subscribe("orders")
	second := v.reader("alpha")
	c.Authenticate(second)
	v.known.Delete(first)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	c.Next("the order", func(m livetest.Message) bool { return m.Channel == "orders" && m.Op == "" })
	v.known.Delete(second) // the user was deactivated
	if m := c.Next("the end", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.AuthenticationRequired) {
		t.Errorf("%s", m.Raw)
	}
}

// TestScopeTakenAway takes the scope read from a user whose connection stays authenticated.
func TestScopeTakenAway(t *testing.T) {
	v := newVenue(t, live.Limits{VerifyEvery: 20 * time.Millisecond}, nil)
	token := v.token("alpha", "", time.Hour, access.ScopeRead, access.ScopeTrade)
	c := v.dial(token)
	c.Subscribe("orders", "market-trades:"+btc)
	v.known.Store(token, func() *access.Principal {
		return &access.Principal{Username: "u-alpha", Broker: "alpha", Scopes: []string{access.ScopeTrade}, Expires: time.Now().Add(time.Hour)}
	})
	if m := c.Next("the end", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.Forbidden) || m.Args[0] != "orders" {
		t.Errorf("%s", m.Raw)
	}
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"trades"}}); m.Code != string(live.Forbidden) {
		t.Errorf("%s", m.Raw)
	}
	if m := c.Ask(livetest.Request{Op: "unsubscribe", Args: []string{"market-trades:" + btc}}); m.Op != "unsubscribed" {
		t.Errorf("%s", m.Raw)
	}
}

func TestOversizedMessage(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	for _, size := range []int{32<<10 + 1, 4 << 20} {
		c := v.dial("")
		_ = c.Socket().WriteMessage(websocket.TextMessage, []byte(`{"op":"ping","id":"`+strings.Repeat("x", size)+`"}`))
		if m := c.Next("the error", func(m livetest.Message) bool { return m.Op == "error" }); m.Code != string(live.InvalidMessage) {
			t.Errorf("%s", m.Raw)
		}
		if code, text := c.Closed(); code != websocket.CloseMessageTooBig {
			t.Errorf("closed with %d %s", code, text)
		}
	}
	c := v.dial("")
	if m := c.Ask(livetest.Request{Op: "authenticate", Data: map[string]string{"token": strings.Repeat("x", 30<<10)}}); m.Code != string(live.AuthenticationFailed) {
		t.Errorf("a long message: %s", m.Raw)
	}
	if err := c.Socket().WriteMessage(websocket.BinaryMessage, []byte(`{"op":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if m := c.Next("an answer", func(m livetest.Message) bool { return m.Code == string(live.InvalidMessage) }); len(m.Args) != 0 {
		t.Errorf("%s", m.Raw)
	}
}

func TestFloodOfRequests(t *testing.T) {
	v := newVenue(t, live.Limits{RequestsPerSecond: 0.001, RequestBurst: 3, RequestExcess: 5}, nil)
	c := v.dial("")
	for n := range 8 {
		c.Send(livetest.Request{Op: "ping", ID: n})
	}
	c.SendText([]byte(`{"op":"order.cancel_all","id":"e"}`)) // malformed order entry counts as any other request
	if code, reason := c.Closed(); code != websocket.ClosePolicyViolation || reason != string(live.RateLimited) {
		t.Errorf("closed with %d %s", code, reason)
	}
	var got []string
	for _, m := range c.Messages() {
		got = append(got, fmt.Sprint(m.Op, m.Code, m.Fields()["id"]))
	}
	want := "pong0 pong1 pong2"
	for _, id := range []string{"3", "4", "5", "6", "7", "e"} {
		want += " errorRATE_LIMITED" + id
	}
	if strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Binary messages are no way around the rate.
func TestFloodOfBinaryMessages(t *testing.T) {
	v := newVenue(t, live.Limits{RequestsPerSecond: 0.001, RequestBurst: 3, RequestExcess: 5}, nil)
	c := v.dial("")
	for range 9 {
		if err := c.Socket().WriteMessage(websocket.BinaryMessage, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if code, reason := c.Closed(); code != websocket.ClosePolicyViolation || reason != string(live.RateLimited) {
		t.Errorf("closed with %d %s", code, reason)
	}
}

func TestBrokenLogEndsSubscriptions(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial(v.reader("alpha"))
	ends := map[string]live.Code{"orders": live.UpstreamError, "orderbook-stream:" + btc: live.OrderbookUpstreamError,
		"market-trades:" + btc: live.TradesUpstreamError, "positions": live.UpstreamError, "margin": live.UpstreamError, "tickers": live.UpstreamError,
		"instruments": live.UpstreamError}
	for topic := range ends {
		c.Subscribe(topic)
	}
	v.fail(errors.New("LOG_DIVERGED"))
	for range ends {
		m := c.Next("the end of a subscription", func(m livetest.Message) bool { return m.Op == "error" })
		if len(m.Args) != 1 || m.Code != string(ends[m.Args[0]]) {
			t.Errorf("%s", m.Raw)
		}
	}
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"market-trades:" + btc}}); m.Code != string(live.TradesUpstreamError) {
		t.Errorf("%s", m.Raw)
	}
	if m := c.Ask(livetest.Request{Op: "ping"}); m.Op != "pong" {
		t.Errorf("%s", m.Raw)
	}
}

func TestWithdrawnInstrument(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial(v.reader("alpha"))
	c.Subscribe("orders", "orderbook-stream:"+btc, "market-trades:"+btc, "market-trades:"+eth, "ticker:"+btc, "candles:4h:"+btc)
	v.do(trading.CommandDelistInstrument, &trading.DelistInstrument{Symbol: btc})
	for topic, code := range map[string]live.Code{"orderbook-stream:" + btc: live.OrderbookUpstreamReject, "market-trades:" + btc: live.TradesUpstreamReject,
		"ticker:" + btc: live.UnknownSymbol, "candles:4h:" + btc: live.UnknownSymbol} {
		c.Until("the end of "+topic, func(all []livetest.Message) bool {
			for _, m := range all {
				if m.Op == "error" && m.Args[0] == topic && m.Code == string(code) {
					return true
				}
			}
			return false
		})
		c.Send(livetest.Request{Op: "subscribe", Args: []string{topic}, ID: topic})
		if m := c.Next("the answer", func(m livetest.Message) bool { return m.Fields()["id"] == topic }); m.Op != "error" || m.Code != string(code) {
			t.Errorf("%s", m.Raw)
		}
	}
	v.place(limit("A1", eth, order.Sell, "1", "1000"))
	v.place(limit("A2", eth, order.Buy, "1", "1000"))
	c.Next("a trade", func(m livetest.Message) bool { return m.Channel == "market-trades:"+eth && m.Op == "" })
}

// TestNobodySeesTheReplay connects while the node still replays the log: the handshake waits until that is over.
func TestNobodySeesTheReplay(t *testing.T) {
	v := emptyVenue(t, live.Limits{}, nil)
	came := make(chan *livetest.Client)
	go func() {
		c, _, err := livetest.TryDial(t, v.url, v.reader("alpha"))
		if err != nil {
			t.Error(err)
			close(came)
			return
		}
		c.Send(livetest.Request{Op: "subscribe", Args: []string{"balance-changes"}})
		came <- c
	}()
	v.fill()
	select {
	case <-came:
		t.Fatal("connected before the end of the replay")
	default:
	}
	close(v.tip)
	if c := <-came; c != nil {
		c.Next("the acknowledgement", func(m livetest.Message) bool { return m.Op == "subscribed" })
		v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: "A1", Currency: "USDC", Amount: fixed.Unit})
		if m := c.Next("a deposit", onBalance); m.Fields()["amount"] != "1" {
			t.Errorf("%s", m.Raw)
		}
	}
}

// TestStoppingForABrokenLog stops a node whose fold has failed, as main does: clients hear of the reason first.
func TestStoppingForABrokenLog(t *testing.T) {
	v := newVenue(t, live.Limits{}, nil)
	c := v.dial("")
	c.Subscribe("orderbook-stream:" + btc)
	v.fail(errors.New("LOG_DIVERGED"))
	if err := v.hub.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Closed()
	all := c.Messages()
	if last := all[len(all)-1]; last.Code != string(live.OrderbookUpstreamError) {
		t.Errorf("%s", last.Raw)
	}
}
