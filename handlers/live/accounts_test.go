package live_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/live"
	"github.com/perpetua-exchange/perpetua/handlers/live/livetest"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// never is a beat that does not come while a test lasts.
const never = time.Hour

// are returns what came on a topic as "type customer amount", or of margin "type customer balance".
func are(c *livetest.Client, topic string, member string) (out []string) {
	for _, m := range c.On(topic) {
		f := m.Fields()
		out = append(out, f["type"]+" "+f["customer_code"]+" "+f[member])
	}
	return out
}

// caughtUp waits until everything that was sent before has come.
func caughtUp(c *livetest.Client) {
	c.Send(livetest.Request{Op: "ping", ID: fmt.Sprint(time.Now().UnixNano())})
	c.Next("pong", func(m livetest.Message) bool { return m.Op == "pong" })
}

// answered is a live.Answered that calls itself.
type answered func(username string, source operation.Waiter)

func (f answered) AwaitAnswered(_ context.Context, username, _ string, source operation.Waiter) {
	f(username, source)
}

// TestSnapshotsHoldWhatTheUserWasAnswered: the fold applies a deposit only while the session waits for what its user was
// answered. The snapshot includes it. A session without a user waits for nothing.
func TestSnapshotsHoldWhatTheUserWasAnswered(t *testing.T) {
	var v *venue
	waits := 0
	v = newVenue(t, live.Limits{BeatEvery: never}, nil, func(c *live.Config) {
		c.Answered = answered(func(username string, source operation.Waiter) {
			waits++
			if username != "u-beta" {
				t.Errorf("waited for what %s was answered", username)
			}
			v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: "B1", Currency: "USDC", Amount: fixed.Unit})
			if err := source.Wait(t.Context(), int64(len(v.entries)-1)); err != nil {
				t.Error(err)
			}
		})
	})
	nobody := v.dial("")
	nobody.Subscribe("market-trades:" + btc)
	c := v.dial(v.token("beta", "B1", time.Hour, "read"))
	c.Subscribe("margin")
	caughtUp(c)
	if got, want := are(c, "margin", "balance"), []string{"snapshot B1 1000001"}; !slices.Equal(got, want) {
		t.Errorf("the client got %q, want %q", got, want)
	}
	if waits != 1 {
		t.Errorf("sessions waited %d times", waits)
	}
}

// TestRejectedOrdersPushNoPosition: the leverage that came with one stays, and says nothing of a position that is not there.
func TestRejectedOrdersPushNoPosition(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: never}, nil)
	c := v.dial(v.token("beta", "B1", time.Hour, "read"))
	c.Subscribe("positions", "orders")
	rejected := limit("B1", btc, order.Buy, "1", "1000")
	rejected.ReduceOnly, rejected.Leverage = true, 3
	v.place(rejected)
	caughtUp(c)
	if m := c.On("orders"); len(m) != 1 || m[0].Fields()["status"] != "rejected" {
		t.Fatalf("orders: %v", m)
	}
	if m := c.On("positions"); len(m) != 0 {
		t.Errorf("a rejected order pushes %s", m[0].Raw)
	}
}

// TestPositionsAndMargin: first a snapshot of each, then what each record changes, once for an account and record; a
// position that is closed has the amount "0"; and the figures are those of the state, which REST shows.
func TestPositionsAndMargin(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: never}, nil)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("B1", btc, order.Buy, "0.5", "1000"))
	c := v.dial(v.reader("alpha"))
	c.SubscribeWith(livetest.Request{Args: []string{"positions", "margin"}, Data: map[string]bool{"positions": true}})
	caughtUp(c)
	same := func(what string, got []string, want ...string) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	same("positions at first", are(c, "positions", "amount"), "snapshot A1 -0.500")
	same("margin at first", are(c, "margin", "customer_code"), "snapshot A1 A1", "snapshot A2 A2")

	one := v.dial(v.token("beta", "B1", time.Hour, "read"))
	one.Subscribe("positions", "margin")
	v.place(limit("B1", btc, order.Sell, "0.5", "999")) // rests: margin of one account, and no position
	v.place(limit("A2", btc, order.Buy, "0.5", "999"))  // closes B1's position, in one record
	caughtUp(c)
	caughtUp(one)
	same("positions of alpha", are(c, "positions", "amount"), "snapshot A1 -0.500", "update A2 0.500")
	same("positions of the customer", are(one, "positions", "amount"), "snapshot B1 0.500", "update B1 0")
	same("margin of the customer", are(one, "margin", "customer_code"), "snapshot B1 B1", "update B1 B1", "update B1 B1")
	for _, m := range one.On("positions") {
		if want := "trading/0@" + m.Fields()["sequence"]; m.Fields()["position"] != "" && m.Fields()["position"] != want || m.Fields()["sequence"] == "" {
			t.Errorf("as of which record: %s", m.Raw)
		}
	}
	same("margin of alpha", are(c, "margin", "customer_code"), "snapshot A1 A1", "snapshot A2 A2", "update A2 A2")

	var last wire.AccountSummary
	all := one.On("margin")
	v.View(func(s decide.State, _ record.Position) {
		summary, _ := s.(*trading.State).Summary("B1")
		last = wire.NewAccountSummary(&summary)
	})
	if f := all[len(all)-1].Fields(); f["balance"] != last.Balance.String() || f["available_margin"] != last.AvailableMargin.String() {
		t.Errorf("%v, the account is %+v", f, last)
	}
	if at := c.On("positions"); at[len(at)-1].Fields()["position"] != fmt.Sprintf("trading/0@%d", v.stamp().Sequence-1) {
		t.Errorf("the position in the log: %s", at[len(at)-1].Raw)
	}
	v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: "B1", Currency: "USDC", Amount: 5 * fixed.Unit})
	v.do(trading.CommandRequestWithdrawal, &trading.RequestWithdrawal{CustomerCode: "B1", Currency: "USDC", Amount: fixed.Unit, ReferenceID: "w"})
	v.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: "A3", Broker: "alpha"})
	caughtUp(one)
	caughtUp(c)
	same("margin after money moved", are(one, "margin", "customer_code")[3:], "update B1 B1", "update B1 B1")
	same("margin of a new account", are(c, "margin", "customer_code")[3:], "update A3 A3")
	if m := c.Ask(livetest.Request{Op: "subscribe", Args: []string{"margin:A1"}}); m.Code != string(live.UnknownTopic) {
		t.Errorf("a suffix: %s", m.Raw)
	}
	resumed := v.dial(v.reader("alpha"))
	if m := resumed.Ask(livetest.Request{Op: "subscribe", Args: []string{"margin"}, ResumeFrom: "trading/0@1"}); m.Code != string(live.InvalidMessage) {
		t.Errorf("what begins with a snapshot resumes: %s", m.Raw)
	}
}

// TestMarkMoves: where only the mark price moved, whoever holds the instrument is told with the next beat, and once
// however often it moved; whoever does not, is not.
func TestMarkMoves(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: 50 * time.Millisecond}, nil)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("B1", btc, order.Buy, "1", "1000"))
	c := v.dial(v.reader("alpha"))
	c.Subscribe("positions", "margin")
	last := func(topic, member string) string {
		all := c.On(topic)
		if len(all) == 0 { // the answer to the request is there, its snapshots are still on their way
			return ""
		}
		return all[len(all)-1].Fields()[member]
	}
	for _, price := range []string{"1001", "1002", "1003"} {
		v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec(price)})
	}
	v.until(t, "the account at the new mark", func() bool {
		return last("margin", "unrealised_pnl") == "-3" && last("positions", "mark_price") == "1003.0"
	})
	caughtUp(c)
	for _, m := range c.On("margin") {
		if f := m.Fields(); f["type"] == "update" && f["customer_code"] == "A2" {
			t.Errorf("an account without a position is told: %s", m.Raw)
		}
	}
	if n := len(c.On("positions")); n > 4 {
		t.Errorf("%d messages about one position", n)
	}
}

// TestABeatRepeatsNothing: if the last record changed an account whose mark price moved before, the beat does not send the
// account and its position a second time as of that record. It sends those that the record did not change.
func TestABeatRepeatsNothing(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: 50 * time.Millisecond}, nil)
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	v.place(limit("B1", btc, order.Buy, "2", "1000"))
	v.place(limit("A2", btc, order.Sell, "1", "1000"))
	c := v.dial(v.reader("alpha"))
	c.SubscribeWith(livetest.Request{Args: []string{"positions", "margin"}, Data: map[string]bool{"positions": true}})
	told := func(topic, customer string, sequence int64) (n int) {
		for _, m := range c.On(topic) {
			if f := m.Fields(); f["customer_code"] == customer && f["position"] == fmt.Sprint("trading/0@", sequence) {
				n++
			}
		}
		return n
	}
	for round, met := 0, false; !met; round++ {
		v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec(fmt.Sprint(1001 + round%9))})
		at := v.do(trading.CommandSetLeverage, &trading.SetLeverage{CustomerCode: "A1", Symbol: btc, Leverage: 2 + round%9}).Record.Sequence
		v.until(t, "the beat after the price", func() bool {
			return told("margin", "A2", at)+told("margin", "A2", at-1) > 0
		})
		met = told("margin", "A2", at) > 0 // else the beat came between the two records
		caughtUp(c)
		for _, topic := range []string{"positions", "margin"} {
			if n := told(topic, "A1", at); n != 1 {
				t.Fatalf("%d messages on %s about an account as of the record %d", n, topic, at)
			}
		}
	}
}

// TestSnapshotOfManyAccounts: a client that sees more accounts than its queue holds gets all of them, each once, and of
// none an update before its snapshot.
func TestSnapshotOfManyAccounts(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: never, QueueMessages: 512}, nil)
	const more = 1500
	for n := range more {
		v.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: fmt.Sprint("N", n), Broker: "alpha"})
	}
	c := v.dial(v.reader("alpha"))
	c.Subscribe("margin")
	for n := range 20 {
		v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: fmt.Sprint("N", more-1-n), Currency: "USDC", Amount: fixed.Unit, ReferenceID: "d"})
	}
	v.until(t, "all snapshots", func() bool { return len(c.On("margin")) >= more+2 })
	caughtUp(c)
	seen := make(map[string]int)
	for _, m := range c.On("margin") {
		f := m.Fields()
		if f["type"] == "snapshot" {
			seen[f["customer_code"]]++
		} else if seen[f["customer_code"]] == 0 {
			t.Errorf("an update before the snapshot: %s", m.Raw)
		}
	}
	if len(seen) != more+2 {
		t.Errorf("%d accounts of %d", len(seen), more+2)
	}
	for customer, n := range seen {
		if n != 1 {
			t.Errorf("%d snapshots of %s", n, customer)
		}
	}
}

// TestInstruments: who subscribes hears of every change of parameters or of the status in force, and of a withdrawal.
func TestInstruments(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: never}, nil)
	c := v.dial("")
	c.Subscribe("instruments")
	v.place(limit("A1", btc, order.Sell, "1", "1000"))
	fee, halt := dec("7"), market.TradeHalt
	v.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: btc, TakerFee: &fee})
	v.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: btc, Status: &halt})
	v.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument("SOLUSDC_PERP")})
	v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: "SOLUSDC_PERP", Price: dec("10")}) // by which a guard lifts
	v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: "SOLUSDC_PERP", Price: dec("11")})
	v.do(trading.CommandDelistInstrument, &trading.DelistInstrument{Symbol: "SOLUSDC_PERP"})
	caughtUp(c)
	var got []string
	for _, m := range c.On("instruments") {
		f := m.Fields()
		got = append(got, f["symbol"]+" "+f["status"]+" "+f["taker_fee"])
	}
	want := []string{btc + " open 7", btc + " trade_halt 7", "SOLUSDC_PERP post_only 5", "SOLUSDC_PERP open 5", "SOLUSDC_PERP withdrawn 5"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInstrumentsAfterAStart: a hub that starts from a snapshot tells also of a status that the very first record moves.
func TestInstrumentsAfterAStart(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: never}, nil)
	const sol = "SOLUSDC_PERP"
	v.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(sol)})
	last := v.stamp()
	v.hub = live.New(live.Config{Follower: v, Journal: "trading", Tokens: v, Limits: live.Limits{BeatEvery: never},
		Seed: &record.Seed{State: v.state, Position: record.Position{Sequence: last.Sequence - 1}, Journal: last.Journal, Time: last.Time}})
	v.serve()
	c := v.dial("")
	c.Subscribe("instruments")
	v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: sol, Price: dec("10")}) // by which a guard lifts
	caughtUp(c)
	all := c.On("instruments")
	if len(all) != 1 || all[0].Fields()["symbol"] != sol || all[0].Fields()["status"] != "open" {
		t.Errorf("%v", all)
	}
}

// TestAPriceTouchesItsInstrumentAlone: what a hub does at a price does not grow with the instruments of the venue.
func TestAPriceTouchesItsInstrumentAlone(t *testing.T) {
	allocated := func(instruments int) uint64 {
		v := newVenue(t, live.Limits{BeatEvery: never}, nil)
		for n := range instruments {
			v.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(fmt.Sprintf("C%dUSDC_PERP", n))})
		}
		const prices = 200
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for n := range prices {
			v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: fixed.Decimal{Coef: int64(1000 + n%2)}})
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / prices
	}
	// A copy of all instruments would be half a megabyte.
	if few, many := allocated(1), allocated(1000); many > few+50_000 {
		t.Errorf("a price allocates %d bytes where there are few instruments, and %d where there are a thousand", few, many)
	}
}

// until waits until something holds.
func (v *venue) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(livetest.Patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// TestLiquidations takes an account through the book, and what is left of it to who held the other side: everybody hears of
// each part, of its kind, and of nobody's name; and who was away hears of all of it.
func TestLiquidations(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: never}, nil)
	v.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: "A3", Broker: "alpha"})
	v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: "A3", Currency: "USDC", Amount: 1005 * fixed.Unit / 10})
	v.do(trading.CommandSetMarginProfile, &trading.SetMarginProfile{CustomerCode: "A3", InitialMargin: dec("5"), MaintenanceMargin: dec("2.5")})
	before := fmt.Sprintf("trading/0@%d", v.stamp().Sequence-1)
	c := v.dial("")
	c.Subscribe("liquidations")
	v.place(limit("B1", btc, order.Sell, "1", "1000"))
	v.place(limit("A3", btc, order.Buy, "1", "1000"))
	v.place(limit("A1", btc, order.Buy, "0.2", "910"))
	for _, price := range []string{"923", "900"} { // below its maintenance margin, and then where the book is empty
		v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec(price)})
	}
	caughtUp(c)
	told := func(c *livetest.Client) (out []string) {
		for _, m := range c.On("liquidations") {
			f := m.Fields()
			out = append(out, f["kind"]+" "+f["side"]+" "+f["amount"]+" "+f["price"])
		}
		return out
	}
	want := []string{"liquidation sell 0.200 910.0", "auto_deleveraging sell 0.800 898.7"}
	if got := told(c); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	late := v.dial("")
	late.SubscribeWith(livetest.Request{Args: []string{"liquidations"}, ResumeFrom: before})
	v.until(t, "what was missed", func() bool { return fmt.Sprint(told(late)) == fmt.Sprint(want) })
}

// asState waits until the last message about each of a customer's positions, and about its margin, has the figures of the state.
func asState(t *testing.T, v *venue, c *livetest.Client, customer string) {
	t.Helper()
	v.until(t, "the figures of the state", func() bool {
		last := make(map[string]string)
		for _, topic := range []string{"positions", "margin"} {
			for _, m := range c.On(topic) {
				if f := m.Fields(); f["customer_code"] == customer {
					last[f["symbol"]] = strings.Join([]string{f["initial_margin"], f["maintenance_margin"], f["liquidation_price"], f["used_margin"], f["order_margin"]}, " ")
				}
			}
		}
		want := make(map[string]string)
		v.View(func(state decide.State, _ record.Position) {
			s := state.(*trading.State)
			for _, p := range s.Positions(customer) {
				shown := wire.NewPosition(&p)
				want[p.Symbol] = fmt.Sprint(shown.InitialMargin, " ", shown.MaintenanceMargin, " ", priceOf(shown.LiquidationPrice), "  ")
			}
			summary, _ := s.Summary(customer)
			shown := wire.NewAccountSummary(&summary)
			want[""] = fmt.Sprint(" ", shown.MaintenanceMargin, "  ", shown.UsedMargin, " ", shown.OrderMargin)
		})
		return maps.Equal(last, want)
	})
}

// priceOf returns a price as a message has it.
func priceOf(p wire.Price) string {
	if fixed.Decimal(p).IsZero() {
		return "null"
	}
	return fixed.Decimal(p).String()
}

// TestPositionsFollowTheirAccount: whatever changes the margin or the liquidation price of a position is sent, although it may not
// change the position: the account's margins, a leverage without an order, the margins of the instrument, a deposit, and a trade or
// a price of another instrument. Positions that are not open are not sent.
func TestPositionsFollowTheirAccount(t *testing.T) {
	v := newVenue(t, live.Limits{BeatEvery: 20 * time.Millisecond}, nil)
	trade := func(symbol, amount string) {
		v.place(limit("B1", symbol, order.Sell, amount, "1000"))
		v.place(limit("A1", symbol, order.Buy, amount, "1000"))
	}
	trade(btc, "1000")
	trade(btc, "1000")
	c := v.dial(v.reader("alpha"))
	c.Subscribe("positions", "margin")
	asState(t, v, c, "A1")
	percent := func(text string) *fixed.Decimal { d := dec(text); return &d }
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the account's margins", func() {
			v.do(trading.CommandSetMarginProfile, &trading.SetMarginProfile{CustomerCode: "A1", InitialMargin: dec("50"), MaintenanceMargin: dec("25")})
		}},
		{"a leverage", func() {
			v.do(trading.CommandSetLeverage, &trading.SetLeverage{CustomerCode: "A1", Symbol: btc, Leverage: 3})
			v.do(trading.CommandSetLeverage, &trading.SetLeverage{CustomerCode: "A1", Symbol: eth, Leverage: 3})
		}},
		{"a deposit", func() {
			v.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: "A1", Currency: "USDC", Amount: 500_000 * fixed.Unit})
		}},
		{"an order of the other instrument", func() { v.place(limit("A1", eth, order.Buy, "7", "900")) }},
		{"the margins of the instruments", func() {
			for _, symbol := range []string{btc, eth} {
				one := 1
				v.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: symbol, InitMarginReq: percent("60"), MaintMarginReq: percent("30"), MaxLeverage: &one})
			}
		}},
		{"a trade of the other instrument", func() { trade(eth, "5") }},
		{"a price of the other instrument", func() {
			v.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: eth, Price: dec("990")})
		}},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.do()
			asState(t, v, c, "A1")
		})
	}
	for _, m := range c.On("positions") {
		if m.Fields()["amount"] == "0" {
			t.Errorf("a position that is not open: %s", m.Raw)
		}
	}
}
