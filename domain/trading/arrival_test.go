package trading

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// list lists another instrument like the first.
func (e *engine) list(symbol string) {
	i := btc()
	i.Symbol = symbol
	e.do(decide.Command{Actor: operator, Payload: &ListInstrument{Instrument: i}})
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 65000}}})
}

// rest places an order that rests, and returns its code.
func (e *engine) rest(customer, symbol string, ticks int64) scalar.ID {
	payload := limitOrder(customer, order.Buy, ticks, 1)
	payload.Symbol = symbol
	return e.do(decide.Command{Actor: trader("alpha"), Payload: payload}).Events[0].(OrderEvent).After().Code
}

// cancelAll cancels a customer's orders on an instrument, or all for "", and returns how many there were.
func (e *engine) cancelAll(customer, symbol string) int {
	before := e.state.orders.Len()
	d := e.do(decide.Command{Type: CommandCancelAll, Actor: trader("alpha"), Payload: &CancelAll{CustomerCode: customer, Symbol: symbol}})
	for d.Pending || e.state.running != nil {
		e.at.Sequence++
		e.at.Time++
		d = e.state.Step(e.at, false)
		e.state.Evolve(e.at, decide.Recorded{}, d.Outcome, d.Events)
		d.Pending = false
	}
	return before - e.state.orders.Len()
}

// TestOrdersStandInOrderOfArrival rests and cancels orders on several instruments, and compares the account's orders,
// also those of a state that was saved and read, with a list.
func TestOrdersStandInOrderOfArrival(t *testing.T) {
	e := newEngine(t, 1)
	symbols := []string{"BTCUSDC_PERP", "ETHUSDC_PERP", "SOLUSDC_PERP"}
	for _, symbol := range symbols[1:] {
		e.list(symbol)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var want []scalar.ID
	on := make(map[scalar.ID]string)
	compareWith := func(s *State) {
		t.Helper()
		var got []scalar.ID
		for _, o := range s.OpenOrders("c0") {
			got = append(got, o.Code)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the orders are %v, not %v", got, want)
		}
	}
	for range 300 {
		if len(want) == 0 || random.IntN(3) > 0 {
			symbol := symbols[random.IntN(len(symbols))]
			code := e.rest("c0", symbol, 640_000)
			want, on[code] = append(want, code), symbol
		} else {
			at := random.IntN(len(want))
			e.do(decide.Command{Actor: trader("alpha"), Payload: &CancelOrder{CustomerCode: "c0", OrderCode: want[at]}})
			want = slices.Delete(want, at, at+1)
		}
		compareWith(e.state)
	}
	read, err := Codec().Read(Codec().Append(nil, e.state))
	if err != nil {
		t.Fatal(err)
	}
	compareWith(read.(*State))
	for _, symbol := range symbols {
		rest := slices.DeleteFunc(slices.Clone(want), func(code scalar.ID) bool { return on[code] == symbol })
		if n := e.cancelAll("c0", symbol); n != len(want)-len(rest) {
			t.Fatalf("%d orders on %s were canceled, not %d", n, symbol, len(want)-len(rest))
		}
		want = rest
		compareWith(e.state)
	}
}

// TestOrdersOfOneTime rests orders on two instruments at one time: they stand in the order of listing, and among those on
// one instrument in order of arrival. A state that was saved and read lists and cancels them in the same order.
func TestOrdersOfOneTime(t *testing.T) {
	e := newEngine(t, 1)
	e.list("ETHUSDC_PERP")
	var codes []scalar.ID
	for _, symbol := range []string{"ETHUSDC_PERP", "BTCUSDC_PERP", "ETHUSDC_PERP", "BTCUSDC_PERP"} {
		codes = append(codes, e.rest("c0", symbol, 640_000))
		e.at.Time--
	}
	want := []scalar.ID{codes[1], codes[3], codes[0], codes[2]}
	read, err := Codec().Read(Codec().Append(nil, e.state))
	if err != nil {
		t.Fatal(err)
	}
	e.at.Sequence++
	for name, s := range map[string]*State{"made": e.state, "read": read.(*State)} {
		for n, o := range s.OpenOrders("c0") {
			if o.Code != want[n] {
				t.Errorf("order %d of the state that was %s is %s, not %s", n, name, o.Code, want[n])
			}
		}
		d, err := s.Decide(e.at, decide.Command{Type: CommandCancelAll, Actor: trader("alpha"), Payload: &CancelAll{CustomerCode: "c0"}})
		if err != nil || len(d.Events) != len(want)+1 {
			t.Fatalf("the state that was %s decides %+v %v", name, d, err)
		}
		for n, code := range want {
			if got := d.Events[n].(OrderEvent).After().Code; got != code {
				t.Errorf("order %d that the state that was %s cancels is %s, not %s", n, name, got, code)
			}
		}
	}
}

// TestMassCancelLeavesOthersAlone cancels the orders on one instrument of an account whose orders on another one cannot
// be looked at: whoever has many there must not keep the venue waiting.
func TestMassCancelLeavesOthersAlone(t *testing.T) {
	e := newEngine(t, 1)
	e.list("ETHUSDC_PERP")
	for range 100 {
		e.rest("c0", "BTCUSDC_PERP", 640_000)
		e.rest("c0", "ETHUSDC_PERP", 640_000)
	}
	elsewhere := e.state.accounts["c0"].on(e.state.instruments["BTCUSDC_PERP"])
	elsewhere.orders.first = &resting{} // of nobody: a look at whose it is ends the test
	if n := e.cancelAll("c0", "ETHUSDC_PERP"); n != 100 {
		t.Errorf("%d orders were canceled, not 100", n)
	}
}

// BenchmarkMassCancel rests and cancels a thousand orders on one instrument, for an account without and with very many
// on another.
func BenchmarkMassCancel(b *testing.B) {
	for _, elsewhere := range []int{0, 100_000} {
		b.Run(fmt.Sprint(elsewhere), func(b *testing.B) {
			e := newEngine(b, 1)
			e.list("ETHUSDC_PERP")
			for n := range elsewhere {
				e.rest("c0", "BTCUSDC_PERP", 640_000+int64(n%1000))
			}
			for b.Loop() {
				for n := range int64(1000) {
					e.rest("c0", "ETHUSDC_PERP", 640_000+n)
				}
				if n := e.cancelAll("c0", "ETHUSDC_PERP"); n != 1000 {
					b.Fatalf("%d orders were canceled", n)
				}
			}
		})
	}
}
