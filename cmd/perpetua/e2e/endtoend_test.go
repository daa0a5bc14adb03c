package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
)

// TestEndToEnd takes one venue through everything that its users do: over real HTTP and WebSocket, down to the bytes
// in Kafka and the rows in Postgres.
func TestEndToEnd(t *testing.T) {
	t.Parallel()
	withinTheHour(3 * time.Minute)
	d := &desk{venue: startVenue(t, "--demo=false")}
	d.open(t)
	listeners := listen(t, d)
	d.within(t, "Story", func(t *testing.T) { tellStory(t, d, listeners) })
	if t.Failed() {
		return
	}
	d.within(t, "Agreement", func(t *testing.T) { testAgreement(t, d, listeners) })
	d.within(t, "Journal", func(t *testing.T) { testJournal(t, d) })
	d.within(t, "Isolation", func(t *testing.T) { testIsolation(t, d, listeners) })
	d.within(t, "OneAccount", func(t *testing.T) { testOneAccount(t, d, listeners) })
	d.within(t, "Repeats", func(t *testing.T) { testRepeats(t, d) })
	d.within(t, "Positions", func(t *testing.T) { testPositions(t, d) })
	d.within(t, "BadInput", func(t *testing.T) { testBadInput(t, d) })
	d.within(t, "Rebuild", func(t *testing.T) { testRebuild(t, d) })
}

// open gives the instruments prices and makes the customers and a user who sees ANNA's account only.
func (d *desk) open(t *testing.T) {
	d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+bitcoin, `{"price":"65000"}`)
	d.must(200, "operator", http.MethodPost, "/admin/v1/index-prices/"+ether, `{"price":"2000.25"}`)
	for _, c := range []struct{ code, user, deposit string }{{"ANNA", "broker-a", "10000"}, {"BEN", "broker-a", "5000.50000001"}, {"CARL", "broker-b", "777.7"}} {
		d.answered(t, 201, c.user, http.MethodPost, "/v1/customers", map[string]string{"customer_code": c.code, "name": c.code + " & Co"}, "customer_code", c.code)
		d.answered(t, 201, "operator", http.MethodPost, "/admin/v1/customers/"+c.code+"/deposits",
			map[string]string{"currency": "USDC", "amount": c.deposit, "reference_id": "first"}, "status", "completed", "balance", c.deposit, "type", "deposit")
	}
	const password = "for ANNA's eyes only"
	made := d.must(201, "operator", http.MethodPost, "/admin/v1/users", map[string]any{"username": "anna", "password": password, "broker": "alpha",
		"customer_code": "ANNA", "scopes": []string{"read", "trade"}, "is_active": true, "is_verified": true})
	d.tokens["anna"] = d.login("anna", password, made)
}

// testAgreement holds what REST answers, what sockets were told and what Postgres holds against the log.
func testAgreement(t *testing.T, d *desk, a *audience) {
	told := tell(readLog(t, d))
	orders, trades := last(told.orders, "code"), last(told.trades, "code", "customer_code")
	transactions := last(told.transactions, "code", "type", "customer_code")
	if len(orders) < 20 || len(trades) != 10 || len(transactions) < 15 {
		t.Fatalf("the log tells of %d orders, %d sides of trades, %d transactions", len(orders), len(trades), len(transactions))
	}

	for _, customer := range []string{"ANNA", "BEN"} {
		base := "/v1/customers/" + customer
		mine := of(customer, orders)
		same(t, "the history of orders of "+customer, d.pages("broker-a", base+"/orders/history?symbol="+bitcoin), having(mine, "symbol", bitcoin))
		same(t, "the trades of "+customer, d.pages("broker-a", base+"/trades?"), of(customer, trades))
		same(t, "the trades in a span of "+customer,
			d.pages("broker-a", base+"/trades/history?from=2000-01-01T00:00:00.000000Z&to=2100-12-31T23:59:59.999999Z"), of(customer, trades))
		same(t, "the transactions of "+customer, d.pages("broker-a", base+"/transactions?"), of(customer, transactions))
		for _, o := range mine {
			same(t, "order "+o["code"], []fields{d.answered(t, 200, "broker-a", http.MethodGet, base+"/orders/"+o["code"], nil)}, []fields{o})
			byReference := d.answered(t, 200, "broker-a", http.MethodGet, base+"/orders/by-reference/"+o["reference_id"], nil)
			same(t, "order "+o["reference_id"], []fields{byReference}, []fields{o})
		}
	}
	for _, symbol := range []string{bitcoin, ether} {
		same(t, "the market trades of "+symbol, d.list("", "/v1/market-trades?symbol="+symbol), newestFirst(having(told.marketTrades, "symbol", symbol)))
		testBook(t, d, a.public, symbol, orders)
	}
	testSockets(t, a, told)
	testRows(t, d, orders, told.trades, told.marketTrades, transactions)
	testMoney(t, d, told)
}

func having(all []fields, name, value string) (out []fields) {
	for _, f := range all {
		if f[name] == value {
			out = append(out, f)
		}
	}
	return out
}

func newestFirst(all []fields) []fields {
	out := slices.Clone(all)
	slices.Reverse(out)
	return out
}

// testSockets wants every message that the log's events mean, in their order, once, and to those only whom they concern.
func testSockets(t *testing.T, a *audience, told fromLog) {
	t.Helper()
	alpha := func(all []fields) (out []fields) {
		for _, f := range all {
			if f["customer_code"] != "CARL" {
				out = append(out, f)
			}
		}
		return out
	}
	var orders []fields
	for _, o := range alpha(told.orders) {
		orders = append(orders, asMessage(o))
	}
	// The deposits came before anybody listened.
	movements := slices.DeleteFunc(alpha(told.transactions), func(f fields) bool { return f["type"] == "deposit" })
	for _, c := range []struct {
		who     string
		client  *livetest.Client
		channel string
		want    []fields
	}{
		{"broker-a", a.brokerA, "orders", orders}, {"broker-a", a.brokerA, "trades", told.trades}, {"broker-a", a.brokerA, "balance-changes", movements},
		{"ANNA", a.anna, "orders", of("ANNA", orders)}, {"ANNA", a.anna, "trades", of("ANNA", told.trades)},
		{"everybody", a.public, "market-trades:" + bitcoin, having(told.marketTrades, "symbol", bitcoin)},
		{"everybody", a.public, "market-trades:" + ether, having(told.marketTrades, "symbol", ether)},
		{"broker-b", a.brokerB, "orders", nil}, {"broker-b", a.brokerB, "trades", nil}, {"broker-b", a.brokerB, "balance-changes", nil},
	} {
		c.client.Until(c.channel, func([]livetest.Message) bool { return true })
		waitFor(t, "the messages on "+c.channel, func() bool { return len(c.client.On(c.channel)) >= len(c.want) })
		same(t, "what "+c.who+" was told on "+c.channel, messages(c.client, c.channel), c.want)
	}
}

// testBook wants the book that a client made of the messages, that of REST and the live orders of the log to be one.
func testBook(t *testing.T, d *desk, public *livetest.Client, symbol string, orders []fields) {
	t.Helper()
	var rest struct {
		Sequence   int64
		Bids, Asks []livetest.Level
	}
	d.must(200, "", http.MethodGet, "/v1/orderbook/"+symbol, nil).decode(t, &rest)
	var book livetest.Book
	applied := 0
	waitForWord(t, "the book of "+symbol+" as REST has it", func() string {
		for _, m := range public.On("orderbook-stream:" + symbol)[applied:] {
			if err := book.Apply(m); err != nil {
				t.Fatal(err)
			}
			applied++
		}
		if !slices.Equal(book.Bids(), rest.Bids) || !slices.Equal(book.Asks(), rest.Asks) {
			return fmt.Sprintf("after %d messages %v %v, REST: %v %v", applied, book.Bids(), book.Asks(), rest.Bids, rest.Asks)
		}
		return ""
	})
	for _, o := range orders {
		if o["symbol"] == symbol && (o["status"] == "open" || o["status"] == "partially_filled") {
			t.Errorf("an order is still open: %v", o)
		}
	}
	if len(rest.Bids)+len(rest.Asks) > 0 {
		t.Errorf("the book of %s is not empty", symbol)
	}
}

// moment is a timestamptz in the interface's form.
func moment(column string) string {
	return `to_char(` + column + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
}

// testRows reads Postgres with queries of its own.
func testRows(t *testing.T, d *desk, orders, trades, marketTrades, transactions []fields) {
	t.Helper()
	same(t, "the rows of orders", d.rows(`SELECT (jsonb_build_object('code', code, 'customer_code', customer_code, 'symbol', symbol, 'action', action,
		'type', type, 'status', status, 'amount', amount::text, 'filled_amount', filled_amount::text, 'filled_quote', filled_quote::text,
		'limit_price', limit_price::text, 'trigger_price', trigger_price::text, 'stop_loss_price', stop_loss_price::text,
		'take_profit_price', take_profit_price::text, 'triggered', `+moment("triggered")+`, 'average_fill_price', average_fill_price::text, 'time_in_force', time_in_force,
		'expire_time', `+moment("expire_time")+`, 'post_only', post_only, 'reduce_only', reduce_only, 'reference_id', reference_id,
		'reason', reason, 'created', `+moment("created")+`, 'updated', `+moment("updated")+`, 'sequence', sequence)
		|| jsonb_strip_nulls(jsonb_build_object('cash_amount', cash_amount::text, 'trigger_price_type', trigger_price_type)))::text
		FROM orders ORDER BY created_sequence, created_ordinal`), orders)
	same(t, "the rows of trades", d.rows(`SELECT jsonb_build_object('code', code, 'order_code', order_code, 'customer_code', customer_code,
		'symbol', symbol, 'action', action, 'price', price::text, 'amount', amount::text, 'notional', notional::text, 'fee', fee::text,
		'fee_currency', fee_currency, 'role', role, 'type', type, 'reference_id', reference_id, 'timestamp', `+moment("time")+`,
		'sequence', sequence, 'ordinal', ordinal / 2)::text
		FROM trades ORDER BY sequence, ordinal`), trades)
	same(t, "the rows of market trades", d.rows(`SELECT jsonb_build_object('code', code, 'symbol', symbol, 'price', price::text, 'amount', amount::text,
		'action', action, 'type', type, 'timestamp', `+moment("time")+`, 'sequence', sequence,
		'ordinal', ordinal)::text
		FROM market_trades ORDER BY sequence, ordinal`), marketTrades)
	same(t, "the rows of transactions", d.rows(`SELECT (jsonb_build_object('code', code, 'customer_code', customer_code, 'type', type,
		'currency', currency, 'amount', amount::text, 'status', status, 'symbol', symbol, 'order_code', order_code,
		'timestamp', `+moment("updated")+`, 'sequence', changed_sequence)
		|| CASE WHEN status = 'completed' THEN jsonb_build_object('balance', balance::text, 'balance_as_of', `+moment("updated")+`) ELSE '{}' END
		|| jsonb_strip_nulls(jsonb_build_object('reference_id', reference_id)))::text
		FROM transactions ORDER BY sequence, ordinal`), without(transactions, "id"))
}

// testMoney adds everything up: every record's postings, every account, both sides of every position.
func testMoney(t *testing.T, d *desk, told fromLog) {
	t.Helper()
	balances := make(map[string]string)
	var all []fields
	for _, r := range readLog(t, d) {
		sum := decimal.Zero
		for _, e := range r.Events {
			for _, p := range e.Data.postings {
				sum = sum.Add(decimal.RequireFromString(p["amount"]))
				if p["account"] != "" {
					balances[p["account"]] = p["balance"]
				}
			}
		}
		if !sum.IsZero() {
			t.Errorf("the postings of record %d sum to %s", r.Sequence, sum)
		}
	}
	for account, balance := range balances {
		all = append(all, fields{"account": account, "balance": balance})
	}
	slices.SortFunc(all, func(x, y fields) int { return strings.Compare(x["account"], y["account"]) })
	same(t, "the venue's accounts", d.rows(`SELECT jsonb_build_object('account', account, 'balance', balance::text)::text
		FROM venue_balances ORDER BY account COLLATE "C"`), all)
	for _, customer := range []string{"ANNA", "BEN", "CARL"} {
		sum := decimal.Zero
		for _, row := range last(of(customer, told.transactions), "code", "type") {
			if row["status"] == "completed" {
				sum = sum.Add(decimal.RequireFromString(row["amount"]))
			}
		}
		same(t, "the balance of "+customer, d.rows(`SELECT jsonb_build_object('balance', balance::text)::text FROM balances WHERE customer_code = $1`, customer),
			[]fields{{"balance": sum.String()}})
	}
	for _, zero := range d.rows(`SELECT jsonb_build_object('money', (SELECT sum(balance) FROM balances) + (SELECT sum(balance) FROM venue_balances),
		'contracts', sum(amount), 'costs', sum(cost) + (SELECT coalesce(sum(balance), 0) FROM venue_balances WHERE account = 'clearing'))::text FROM positions`) {
		for name, value := range zero {
			if !decimal.RequireFromString(value).IsZero() {
				t.Errorf("all %s sum to %s", name, value)
			}
		}
	}
}

// testJournal holds the bytes in Kafka against the definition of a record, and `perpetua log` and kcat against them.
func testJournal(t *testing.T, d *desk) {
	for _, journal := range []string{"trading", "identity", "onboarding"} {
		values := d.verifyBytes(journal)
		if !slices.Equal(values, d.records(journal)) {
			t.Errorf("perpetua log prints other records of %s than Kafka holds", journal)
		}
		if lines, ok := d.kcat(journal); !ok {
			t.Log("kcat is not installed")
		} else if !slices.Equal(values, lines) {
			t.Errorf("kcat reads other values of %s", journal)
		}
	}
	if n := len(d.records("trading", "--customer", "CARL")); n != 2 {
		t.Errorf("%d records concern CARL, want 2", n)
	}
	if n := len(d.records("trading", "--type", "trade.executed", "--from", "0", "--to", "1000000")); n != 5 {
		t.Errorf("%d records with trades, want 5", n)
	}
}
