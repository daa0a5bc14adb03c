package trading

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// triggerOracle follows the records and knows of every stop which of its prices were reached while it waited: no bound,
// no lists by price, each price held against each stop. So it says what is to fire, and in which order.
type triggerOracle struct {
	t       fataler
	arrived int
	stops   map[scalar.ID]*awaited
	gone    map[scalar.ID]bool       // fired
	last    map[string]fixed.Decimal // by symbol
	mark    map[string]fixed.Decimal
	fired   map[string]int // by what happened
}

// awaited is an untriggered stop.
type awaited struct {
	order   order.Order
	arrival int
	reached map[order.Leg]bool
}

func newTriggerOracle(t fataler) *triggerOracle {
	return &triggerOracle{t: t, stops: make(map[scalar.ID]*awaited), gone: make(map[scalar.ID]bool), last: make(map[string]fixed.Decimal),
		mark: make(map[string]fixed.Decimal), fired: make(map[string]int)}
}

// price is what a leg waits for; zero for a leg that the order does not have.
func (a *awaited) price(l order.Leg) fixed.Decimal {
	switch {
	case a.order.Type == order.TakeProfitStopLoss && l == order.StopLossLeg:
		return a.order.StopLossPrice
	case a.order.Type == order.TakeProfitStopLoss:
		return a.order.TakeProfitPrice
	case (a.order.Type == order.TakeProfit || a.order.Type == order.TakeProfitLimit) == (l == order.TakeProfitLeg):
		return a.order.TriggerPrice
	}
	return fixed.Decimal{}
}

// falling reports whether the leg fires at its price or below.
func (a *awaited) falling(l order.Leg) bool {
	if l == order.StopLossLeg {
		return a.order.Action == order.Sell
	}
	return a.order.Action == order.Buy
}

// at reports whether a leg fires at a price.
func (a *awaited) at(l order.Leg, price fixed.Decimal) bool {
	mine := a.price(l)
	switch {
	case mine.IsZero() || price.IsZero():
		return false
	case a.falling(l):
		return price.Cmp(mine) <= 0
	}
	return price.Cmp(mine) >= 0
}

// moved holds a price against everything that waits for it.
func (o *triggerOracle) moved(symbol string, by order.TriggerPriceType, price fixed.Decimal) {
	for _, a := range o.stops {
		for _, l := range []order.Leg{order.StopLossLeg, order.TakeProfitLeg} {
			if a.order.Symbol == symbol && a.order.TriggerPriceType == by && a.at(l, price) {
				a.reached[l] = true
			}
		}
	}
}

// candidate is a leg that may fire.
type candidate struct {
	*awaited
	leg order.Leg
}

// next is what fires next on an instrument.
func (o *triggerOracle) next(symbol string) (candidate, bool) {
	var all []candidate
	for _, a := range o.stops {
		if a.order.Symbol != symbol {
			continue
		}
		switch {
		case a.reached[order.StopLossLeg]:
			all = append(all, candidate{a, order.StopLossLeg})
		case a.reached[order.TakeProfitLeg]:
			all = append(all, candidate{a, order.TakeProfitLeg})
		}
	}
	if len(all) == 0 {
		return candidate{}, false
	}
	return slices.MinFunc(all, func(a, b candidate) int {
		down, price := a.falling(a.leg), a.price(a.leg).Cmp(b.price(b.leg))
		if down != b.falling(b.leg) {
			if down {
				return -1
			}
			return 1
		}
		if down {
			price = -price
		}
		return cmp.Or(price, cmp.Compare(a.arrival, b.arrival))
	}), true
}

// record follows one record.
func (o *triggerOracle) record(s *State, c decide.Recorded, events []decide.Event) {
	if c.Type != "engine.step" {
		for _, a := range o.stops {
			if status, _ := s.Status(a.order.Symbol); status == market.Open && len(a.reached) > 0 && c.Type != CommandChangeInstrument {
				o.t.Fatalf("%s is let in while %s is to fire: %v", c.Type, a.order.Code, a.reached)
			}
		}
	}
	for _, e := range events {
		switch e := e.(type) {
		case *TriggerFired:
			o.fires(s, e)
		case *TradeExecuted:
			if e.Taker.OrderCode.IsZero() { // taken over or deleveraged
				continue
			}
			o.last[e.Symbol] = e.Price
			o.moved(e.Symbol, order.TradePrice, e.Price)
		case *IndexUpdated:
			o.mark[e.Symbol] = e.MarkPrice
			o.moved(e.Symbol, order.MarkPrice, e.MarkPrice)
		case OrderEvent:
			o.changed(*e.After())
		}
	}
}

func (o *triggerOracle) fires(s *State, e *TriggerFired) {
	next, ok := o.next(e.Symbol)
	if !ok || next.order.Code != e.OrderCode || next.leg != e.Leg || next.price(next.leg).Cmp(e.TriggerPrice) != 0 {
		o.t.Fatalf("%+v fires, and next is %+v %s", *e, next.awaited, next.leg)
	}
	if status, _ := s.Status(e.Symbol); status != market.Open {
		o.t.Fatalf("%s fires while the instrument is %s", e.OrderCode, status)
	}
	o.fired[string(next.order.Type)]++
	if len(next.reached) > 1 {
		o.fired["both legs"]++
	}
	if !next.at(next.leg, o.last[e.Symbol]) && e.TriggerPriceType == order.TradePrice || !next.at(next.leg, o.mark[e.Symbol]) && e.TriggerPriceType == order.MarkPrice {
		o.fired["after a rebound"]++
	}
	delete(o.stops, e.OrderCode)
	o.gone[e.OrderCode] = true
	if _, more := o.next(e.Symbol); more {
		o.fired["before others"]++
	}
}

// changed takes over an order as it is after a record.
func (o *triggerOracle) changed(after order.Order) {
	if after.TriggerPriceType == "" {
		return
	}
	now := &awaited{after, 0, make(map[order.Leg]bool)}
	price := o.last[after.Symbol]
	if after.TriggerPriceType == order.MarkPrice {
		price = o.mark[after.Symbol]
	}
	there := now.at(order.StopLossLeg, price) || now.at(order.TakeProfitLeg, price)
	known := o.stops[after.Code]
	switch {
	case after.Reason == order.TriggerWouldFireImmediately && !there:
		o.t.Fatalf("rejected at %s: %+v", price, after)
	case !after.Status.Live():
		delete(o.stops, after.Code)
	case o.gone[after.Code]:
	case known == nil && there:
		o.t.Fatalf("accepted at %s: %+v", price, after)
	case known == nil, known.order.LimitPrice != after.LimitPrice, known.order.TriggerPrice != after.TriggerPrice, known.order.StopLossPrice != after.StopLossPrice,
		known.order.TakeProfitPrice != after.TakeProfitPrice, known.order.Amount.Cmp(after.Amount) < 0:
		o.arrived++
		now.arrival = o.arrived
		o.stops[after.Code] = now
	default:
		known.order = after
	}
}

// TestTriggersFireWhenReached drives the rules with random commands, many of them stops, halts and prices while halted,
// and holds what fires against the oracle: every trigger fires when its price was reached, in the decided order, once, and
// none is lost where the state is saved and read back.
func TestTriggersFireWhenReached(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		oracle := newTriggerOracle(t)
		r := &randomVenue{T: t, testJournal: newTestJournal(t)}
		r.follow = func(c decide.Recorded, events []decide.Event) { oracle.record(r.state, c, events) }
		if rapid.Bool().Draw(t, "small records") {
			r.state.limit.fills = rapid.IntRange(1, 4).Draw(t, "fills")
			r.state.limit.others = rapid.IntRange(1, 4).Draw(t, "other changes")
		}
		r.open()
		for range rapid.IntRange(20, 150).Draw(t, "commands") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				limit := r.state.limit
				r.state = reread(t, r.state)
				r.state.limit = limit
				r.state.TrackBook()
			case 1, 2, 3:
				r.wait()
			case 4:
				r.swing()
			case 5:
				r.tradeAt()
			default:
				r.command()
			}
		}
		for _, symbol := range randomSymbols {
			r.give(decide.Command{Payload: &ChangeInstrument{Symbol: symbol, Status: some(market.Open)}})
		}
		r.drain()
		for _, a := range oracle.stops {
			if len(a.reached) > 0 {
				t.Fatalf("%s was reached at %v, and did not fire", a.order.Code, a.reached)
			}
		}
		r.checkReplay()
		for what, n := range oracle.fired {
			seen[what] += n
		}
	})
	for _, what := range []string{"stop_loss", "stop_loss_limit", "take_profit", "take_profit_limit", "take_profit_stop_loss", "before others"} {
		if seen[what] == 0 && !t.Failed() {
			t.Errorf("nothing was seen of %s: %v", what, seen)
		}
	}
	t.Log(seen)
}

// wait enters a stop.
func (r *randomVenue) wait() {
	code, actor := r.customer()
	payload := &PlaceOrder{CustomerCode: code, Symbol: r.symbol(), Action: rapid.SampledFrom([]order.Action{order.Buy, order.Sell}).Draw(r.T, "action"),
		Amount: r.amount(), LimitPrice: r.price(), ReduceOnly: rapid.IntRange(0, 5).Draw(r.T, "reduce only") == 0}
	r.conditional(payload)
	r.give(decide.Command{Actor: actor, Payload: payload})
}

// swing moves the mark while the instrument is halted, as often as not, and opens it.
func (r *randomVenue) swing() {
	symbol := r.symbol()
	status := func(to market.Status) {
		r.give(decide.Command{Payload: &ChangeInstrument{Symbol: symbol, Status: some(to)}})
	}
	if rapid.Bool().Draw(r.T, "halted") {
		status(market.TradeHalt)
	}
	for range rapid.IntRange(1, 3).Draw(r.T, "prices") {
		r.give(decide.Command{Payload: &SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: rapid.Int64Range(940_000, 1_060_000).Draw(r.T, "index"), Scale: 4}}})
	}
	status(market.Open)
}

// tradeAt has two customers trade at a price, if nobody else is in between.
func (r *randomVenue) tradeAt() {
	symbol, price := r.symbol(), r.price()
	for _, p := range []struct {
		customer string
		action   order.Action
	}{{"a1", order.Buy}, {"c1", order.Sell}} {
		r.give(decide.Command{Actor: decide.Actor{Sub: "s", Broker: p.customer[:1]}, Payload: &PlaceOrder{CustomerCode: p.customer, Symbol: symbol,
			Action: p.action, Type: order.Limit, LimitPrice: price, Amount: fixed.Decimal{Coef: 1}}})
	}
}

// TestManyStopsAtOnePrice checks that 10,000 stops at one price fire one a record, in order of arrival, and that what a
// record takes does not grow with their number.
func TestManyStopsAtOnePrice(t *testing.T) {
	allocs := make(map[int]float64)
	for _, stops := range []int{100, 10_000} {
		e := newEngine(t, 3)
		var want []scalar.ID
		for n := range stops {
			payload := limitOrder("c0", order.Sell, 600_000, 1)
			payload.Type, payload.TriggerPrice, payload.TimeInForce = order.StopLossLimit, number("64000"), order.GTC
			if n%2 == 1 {
				payload.Type, payload.LimitPrice, payload.TimeInForce = order.StopLoss, fixed.Decimal{}, ""
			}
			want = append(want, e.do(decide.Command{Actor: trader("alpha"), Payload: payload}).Events[0].(OrderEvent).After().Code)
		}
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c1", order.Buy, 640_000, 1)})
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c1", order.Buy, 639_000, int64(stops))})
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c2", order.Sell, 640_000, 1)})
		at := e.at
		at.Sequence++
		at.Time++
		allocs[stops] = testing.AllocsPerRun(5, func() { e.state.Step(at, false) })
		for n, code := range want {
			if e.state.Due(at.Time) != decide.Blocking {
				t.Fatalf("after %d of %d nothing blocks", n, stops)
			}
			d := e.state.Step(at, false)
			if fired := d.Events[1].(*TriggerFired); len(d.Events) > 8 || fired.OrderCode != code {
				t.Fatalf("record %d has %d events and fires %s, not %s", n, len(d.Events), fired.OrderCode, code)
			}
			e.state.Evolve(at, decide.Recorded{Type: "engine.step", Actor: decide.Engine}, d.Outcome, d.Events)
			at.Sequence++
		}
		if e.state.Due(at.Time) != decide.Nothing || e.state.accounts["c0"].positions[0].size != -int64(stops) {
			t.Fatalf("%d stops made a position of %d", stops, e.state.accounts["c0"].positions[0].size)
		}
	}
	if allocs[10_000] > allocs[100]+2 {
		t.Errorf("a record of 100 stops takes %.0f allocations, one of 10,000 takes %.0f", allocs[100], allocs[10_000])
	}
}

// TestTradesThatReachNoTrigger checks that what is taken over or deleveraged, which has no order, is no trade that stops
// wait for, at whatever price.
func TestTradesThatReachNoTrigger(t *testing.T) {
	ordered := scalar.ID{7}
	for _, test := range []struct {
		kind  TradeType
		taker scalar.ID
		fires bool
	}{{Trade, ordered, true}, {Liquidation, ordered, true}, {Liquidation, scalar.ID{}, false}, {AutoDeleveraging, scalar.ID{}, false}} {
		e := newEngine(t, 1)
		payload := limitOrder("c0", order.Sell, 600_000, 1)
		payload.Type, payload.TriggerPrice = order.StopLossLimit, number("64000")
		e.do(decide.Command{Actor: trader("alpha"), Payload: payload})
		e.at.Sequence++
		e.state.Evolve(e.at, decide.Recorded{Type: "engine.step", Actor: decide.Engine}, decide.Accepted, []decide.Event{
			&TradeExecuted{Symbol: "BTCUSDC_PERP", Price: number("63000"), Amount: number("1"), Type: test.kind,
				Taker: TradeLeg{CustomerCode: "c0", OrderCode: test.taker}}})
		if due := e.state.instruments["BTCUSDC_PERP"].triggers != nil; due != test.fires || !e.state.LastPrice("BTCUSDC_PERP").IsZero() != test.fires {
			t.Errorf("after a trade of type %s by %s a stop is due: %t", test.kind, test.taker, due)
		}
	}
}

// BenchmarkFireStops tells what a stop costs that fires and trades, of 10,000 at one price.
func BenchmarkFireStops(b *testing.B) {
	const stops = 10_000
	b.ReportAllocs()
	fired := 0
	for b.Loop() {
		b.StopTimer()
		e := newEngine(b, 3)
		for range stops {
			payload := limitOrder("c0", order.Sell, 600_000, 1)
			payload.Type, payload.TriggerPrice, payload.TimeInForce = order.StopLossLimit, number("64000"), order.GTC
			e.do(decide.Command{Actor: trader("alpha"), Payload: payload})
		}
		for n := range stops + 1 {
			e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder(fmt.Sprint("c", 1+n%2), order.Buy, 640_000-int64(n%100), 1)})
		}
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c2", order.Sell, 640_000, 1)})
		at := e.at
		at.Time++
		b.StartTimer()
		for e.state.Due(at.Time) == decide.Blocking {
			at.Sequence++
			d := e.state.Step(at, false)
			e.state.Evolve(at, decide.Recorded{Type: "engine.step", Actor: decide.Engine}, d.Outcome, d.Events)
			fired++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(fired), "ns/stop")
}

// TestTriggersWaitForAFreshIndex checks that what was reached waits while the index price is stale, and fires with the next
// one, although that is back above it.
func TestTriggersWaitForAFreshIndex(t *testing.T) {
	d := newDesk(t)
	i := btc()
	i.IndexStaleSeconds = 10
	d.must(decide.Command{Payload: &ListInstrument{Instrument: i}})
	index := func(price string) {
		d.must(decide.Command{Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number(price)}})
	}
	index("65000")
	d.customer("alice", "alpha")
	d.customer("bob", "alpha")
	d.place("alpha", limitOrder("bob", order.Buy, 630_000, 1000))
	stop := limitOrder("alice", order.Sell, 0, 1)
	stop.Type, stop.LimitPrice, stop.StopLossPrice, stop.TakeProfitPrice = order.TakeProfitStopLoss, fixed.Decimal{}, number("64000"), number("70000")
	code := d.place("alpha", stop).Events[0].(OrderEvent).After().Code
	status := func(to market.Status) {
		d.must(decide.Command{Payload: &ChangeInstrument{Symbol: i.Symbol, Status: &to}})
	}
	status(market.TradeHalt)
	index("63900")
	d.now += 11 * scalar.Second
	d.drain()
	status(market.Open)
	if now, _ := d.state.Status(i.Symbol); now != market.PostOnly || d.state.Due(d.now) != decide.Nothing {
		t.Fatalf("with a stale index the instrument is %s, and something is due: %v", now, d.state.Due(d.now))
	}
	if _, waits := d.state.Order(code); !waits {
		t.Fatal("it fired on a stale index")
	}
	index("65000")
	d.drain()
	if o, waits := d.state.Order(code); waits {
		t.Fatalf("it waits on: %+v", o)
	}
	if p, _ := d.state.Position("alice", i.Symbol); p.Amount.Cmp(number("-0.001")) != 0 {
		t.Errorf("alice has %s", p.Amount)
	}
}
