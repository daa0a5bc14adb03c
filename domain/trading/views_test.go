package trading

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// quotes is what TestBookChanges keeps of a book, as a reader of the changes would.
type quotes map[string]string

// TestBookChanges keeps a copy of the book from nothing but the changes of each record, and holds it against the
// book's depth.
func TestBookChanges(t *testing.T) {
	d := newDesk(t)
	d.must(decide.Command{Type: CommandListInstrument, Payload: &ListInstrument{Instrument: btc()}})
	d.must(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")}})
	for _, code := range []string{"a", "b", "c"} {
		d.customer(code, "alpha")
	}
	book := quotes{}
	step := func(c decide.Command) decide.Decision {
		t.Helper()
		c.Actor = trader("alpha")
		decision := d.must(c)
		for _, change := range d.state.BookChanges() {
			key := string(change.Action) + " " + change.Price.String()
			before := book[key]
			if before == "" {
				before = "0.000"
			}
			if change.Before.String() != before || change.After.Cmp(change.Before) == 0 {
				t.Fatalf("%s was %s, and the change says %s to %s", key, before, change.Before, change.After)
			}
			book[key] = change.After.String()
			if change.After.IsZero() {
				delete(book, key)
			}
		}
		bids, asks := d.state.Depth("BTCUSDC_PERP", 0)
		want := quotes{}
		for _, l := range bids {
			want["buy "+l.Price.String()] = l.Amount.String()
		}
		for _, l := range asks {
			want["sell "+l.Price.String()] = l.Amount.String()
		}
		if fmt.Sprint(book) != fmt.Sprint(want) {
			t.Fatalf("the changes make %v, the book is %v", book, want)
		}
		return decision
	}
	place := func(customer string, a order.Action, price, amount string) scalar.ID {
		t.Helper()
		payload := &PlaceOrder{CustomerCode: customer, Symbol: "BTCUSDC_PERP", Action: a, Type: order.Limit, LimitPrice: number(price), Amount: number(amount)}
		return step(decide.Command{Type: CommandPlaceOrder, Payload: payload}).Events[0].(OrderEvent).After().Code
	}
	place("a", order.Buy, "64000", "1")
	place("b", order.Buy, "64000", "1")
	mine := place("a", order.Buy, "64100", "1")
	place("c", order.Sell, "64100", "0.4")
	place("c", order.Sell, "64050", "3")    // takes, and the rest rests between
	place("a", order.Sell, "63000", "1.1")  // cancels nothing of its own side, takes nothing of its own
	place("b", order.Buy, "66000", "0.001") // takes a little
	if mine == (scalar.ID{}) {
		t.Fatal("no code")
	}
	resting := place("b", order.Buy, "60000", "1")
	for _, payload := range []*AmendOrder{{LimitPrice: some(number("61000"))}, {Amount: some(number("2"))}, {Amount: some(number("0.5")), LimitPrice: some(number("62000"))}} {
		payload.CustomerCode, payload.OrderCode = "b", resting
		step(decide.Command{Type: CommandAmendOrder, Payload: payload})
	}
	for _, code := range []string{"a", "b", "c"} {
		step(decide.Command{Type: CommandCancelAll, Payload: &CancelAll{CustomerCode: code}})
	}
	if len(book) != 0 {
		t.Fatalf("%v is left", book)
	}
}

// TestViews looks at what followers read, after a small story.
func TestViews(t *testing.T) {
	d := newDesk(t)
	if _, ok := d.state.NextDue(); ok || len(d.state.Instruments()) != 0 {
		t.Error("an empty state has something")
	}
	d.must(decide.Command{Type: CommandListInstrument, Payload: &ListInstrument{Instrument: btc()}})
	d.customer("a", "alpha")
	d.customer("b", "beta")
	if price := d.state.MarkPrice("BTCUSDC_PERP"); !price.IsZero() {
		t.Errorf("mark %s before the first", price)
	}
	d.must(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000.25")}})
	buy := &PlaceOrder{CustomerCode: "a", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, LimitPrice: number("65000"), Amount: number("1"), TimeInForce: order.GTD, ExpireTime: d.now + scalar.Minute}
	code := d.place("alpha", buy).Events[0].(OrderEvent).After().Code
	d.place("beta", &PlaceOrder{CustomerCode: "b", Symbol: "BTCUSDC_PERP", Action: order.Sell, Type: order.Market, Amount: number("0.25")})
	s := d.state
	check := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, not %v", what, got, want)
		}
	}
	check("mark", s.MarkPrice("BTCUSDC_PERP"), "65000.2")
	index, at := s.IndexPrice("BTCUSDC_PERP")
	check("index", index, "65000.25")
	check("its time", at, d.now)
	check("last", s.LastPrice("BTCUSDC_PERP"), "65000.0")
	check("open interest", s.OpenInterest("BTCUSDC_PERP"), "0.250")
	bid, ask := s.BestBidAsk("BTCUSDC_PERP")
	check("best bid", bid, Level{number("65000.0"), number("0.750")})
	check("best ask", ask, Level{})
	o, ok := s.Order(code)
	check("order", fmt.Sprintln(o.Status, o.FilledAmount, o.ExpireTime, ok), fmt.Sprintln("partially_filled", "0.250", buy.ExpireTime, true))
	check("open orders", len(s.OpenOrders("a")), 1)
	check("positions", len(s.Positions("b")), 1)
	check("short", s.Positions("b")[0].Amount, "-0.250")
	check("alpha's customers", len(s.CustomersOf("alpha")), 1)
	check("all customers", len(s.CustomersOf("")), 2)
	customer, ok := s.Customer("b")
	check("customer", fmt.Sprintln(customer.Broker, ok), "beta true\n")
	fees, _ := s.FeeProfile("a")
	check("fees", fmt.Sprintln(fees[0].Symbol, fees[0].MakerFee, fees[0].TakerFee), "BTCUSDC_PERP 2 5\n")
	due, _ := s.NextDue()
	check("due", due, buy.ExpireTime)
	check("rules", s.ActiveRules(), rulesSupported)
	// What is not there.
	for name, found := range map[string]bool{"order": is(s.Order(scalar.ID{})), "customer": is(s.Customer("x")), "instrument": is(s.Instrument("x")),
		"balance": is(s.Balance("x")), "summary": is(s.Summary("x")), "position": is(s.Position("x", "x")), "margin profile": is(s.MarginProfile("x")),
		"fee profile": is(s.FeeProfile("x")), "status": is(s.Status("x")), "withdrawal": is(s.Withdrawal(scalar.ID{})), "broker": is(s.CustomerBroker("x"))} {
		if found {
			t.Errorf("there is a %s", name)
		}
	}
	if s.OpenOrders("x") == nil || s.Positions("x") == nil || s.CustomersOf("x") == nil {
		t.Error("an empty list is nil")
	}
}

func is[T any](_ T, ok bool) bool { return ok }
