package trading

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// checkSweeping compares the order that the events of a record say is sweeping with the book after the record.
func (j *testJournal) checkSweeping(events []decide.Event) {
	j.t.Helper()
	sweeping := Sweeping(events)
	for _, e := range events {
		o, ok := e.(OrderEvent)
		if !ok {
			continue
		}
		if code := o.After().Code; (code == sweeping) != j.state.Sweeps(code) {
			j.t.Fatalf("the events say that %s sweeps, and of %s the state says %v", sweeping, code, j.state.Sweeps(code))
		}
	}
}

// TestSweeping has new and amended orders sweep in small records, in which they trade, or only meet orders that expire or are their
// own. After each record, append compares what its events say with the state.
func TestSweeping(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		r := &randomVenue{T: t, testJournal: newTestJournal(t)}
		r.state.limit.fills = rapid.IntRange(1, 2).Draw(t, "fills")
		r.state.limit.others = rapid.IntRange(1, 2).Draw(t, "other changes")
		r.single = rapid.Bool().Draw(t, "single steps")
		r.follow = func(c decide.Recorded, events []decide.Event) { seen[sweepKind(c, events)]++ }
		r.open()
		for range rapid.IntRange(1, 8).Draw(t, "sweeps") {
			r.sweep()
		}
	})
	t.Log(seen)
	for _, kind := range []string{CommandPlaceOrder, CommandAmendOrder, "trades", "only ends orders"} {
		if seen[kind] == 0 && !t.Failed() {
			t.Errorf("nothing was seen of: %s", kind)
		}
	}
}

// sweep rests some asks, of which some expire before they trade, and has a bid buy them.
func (r *randomVenue) sweep() {
	symbol := randomSymbols[0]
	for range rapid.IntRange(1, 12).Draw(r.T, "asks") { // reduce-only ones are cut while others trade
		code, actor := r.customer()
		ask := &PlaceOrder{CustomerCode: code, Symbol: symbol, Action: order.Sell, Type: order.Limit,
			Amount: fixed.Decimal{Coef: rapid.Int64Range(1, 3).Draw(r.T, "ask amount")}, LimitPrice: fixed.Decimal{Coef: rapid.Int64Range(100, 104).Draw(r.T, "ask")},
			ReduceOnly: rapid.IntRange(0, 2).Draw(r.T, "reduce only") == 0}
		if rapid.IntRange(0, 2).Draw(r.T, "whether it expires") == 0 {
			ask.TimeInForce, ask.ExpireTime = order.GTD, r.now+scalar.Second
		}
		r.give(decide.Command{Actor: actor, Payload: ask})
	}
	r.now += 2 * scalar.Second
	code, actor := r.customer()
	bid := &PlaceOrder{CustomerCode: code, Symbol: symbol, Action: order.Buy, Type: order.Limit, Amount: r.amount(), LimitPrice: fixed.Decimal{Coef: 104}}
	amended := rapid.Bool().Draw(r.T, "amended")
	if amended {
		bid.LimitPrice = fixed.Decimal{Coef: 96}
	}
	r.placed = nil
	r.give(decide.Command{Type: CommandPlaceOrder, Actor: actor, Payload: bid})
	if amended && len(r.placed) == 1 {
		r.give(decide.Command{Actor: actor, Payload: &AmendOrder{CustomerCode: code, OrderCode: r.placed[0].Code, LimitPrice: some(fixed.Decimal{Coef: 104})}})
	}
}

// sweepKind says what a record is that leaves an order sweeping.
func sweepKind(c decide.Recorded, events []decide.Event) string {
	switch {
	case Sweeping(events).IsZero():
		return "none"
	case c.Type != "engine.step":
		return c.Type
	case slices.ContainsFunc(events, func(e decide.Event) bool { return e.EventType() == "trade.executed" }):
		return "trades"
	}
	return "only ends orders"
}
