package trading

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// engine decides and folds without encoding, as fast as it can.
type engine struct {
	b     testing.TB
	state *State
	at    decide.Stamp
}

func newEngine(b testing.TB, customers int) *engine {
	e := &engine{b: b, state: NewState(), at: decide.Stamp{Journal: scalar.ID{1}, Time: start}}
	for rules := 2; rules <= rulesSupported; rules++ {
		e.do(decide.Command{Actor: operator, Payload: &decide.ActivateRules{Rules: rules}})
	}
	e.do(decide.Command{Actor: operator, Payload: &ListInstrument{Instrument: btc()}})
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: fixed.Decimal{Coef: 65000}}})
	for n := range customers {
		e.do(decide.Command{Actor: operator, Payload: &RegisterCustomer{CustomerCode: fmt.Sprint("c", n), Broker: "alpha"}})
		e.do(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: fmt.Sprint("c", n), Currency: currency, Amount: 10_000_000 * fixed.Unit}})
	}
	return e
}

func (e *engine) do(c decide.Command) decide.Decision {
	e.at.Sequence++
	e.at.Time++
	c.Type = typeOf(c)
	d, err := e.state.Decide(e.at, c)
	if err != nil {
		e.b.Fatal(err)
	}
	e.state.Evolve(e.at, c.Recorded(), d.Outcome, d.Events)
	return d
}

func limitOrder(customer string, a order.Action, ticks, steps int64) *PlaceOrder {
	return &PlaceOrder{CustomerCode: customer, Symbol: "BTCUSDC_PERP", Action: a, Type: order.Limit,
		LimitPrice: fixed.Decimal{Coef: ticks, Scale: 1}, Amount: fixed.Decimal{Coef: steps, Scale: 3}}
}

// BenchmarkRestAndCancel places an order that rests and cancels it: two operations.
func BenchmarkRestAndCancel(b *testing.B) {
	e := newEngine(b, 1)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		d := e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", order.Buy, 640_000+int64(n%1000), 1)})
		e.do(decide.Command{Actor: trader("alpha"), Payload: &CancelOrder{CustomerCode: "c0", OrderCode: d.Events[0].(OrderEvent).After().Code}})
	}
}

// BenchmarkTrade places an order that rests and one that takes it: two operations and a trade.
func BenchmarkTrade(b *testing.B) {
	e := newEngine(b, 2)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		side := order.Buy
		if n%2 == 1 {
			side = order.Sell
		}
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", side, 650_000, 1)})
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c1", side.Opposite(), 650_000, 1)})
	}
}

// BenchmarkInMargin copies the standings of 100,000 accounts with a position, as a reader does under the lock of a state, and makes
// their summaries, as it does after that.
func BenchmarkInMargin(b *testing.B) {
	e := manyHolders(b, 100_000)
	standings := e.state.AppendInMargin(nil)
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			standings = e.state.AppendInMargin(standings[:0])
		}
	})
	b.Run("summarize", func(b *testing.B) {
		for b.Loop() {
			for i := range standings {
				standings[i].Summary()
			}
		}
	})
}

// BenchmarkOneOverdue places an order of a customer who has 100,000 others, while somebody's order is past its time and
// the due list has not come to it.
func BenchmarkOneOverdue(b *testing.B) {
	e := newEngine(b, 2)
	for n := range 100_000 {
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", order.Sell, 650_000+int64(n%1000), 1)})
	}
	late := limitOrder("c1", order.Buy, 640_000, 1)
	late.TimeInForce, late.ExpireTime = order.GTD, e.at.Time+2
	e.do(decide.Command{Actor: trader("alpha"), Payload: late})
	e.at.Time += 2
	b.ReportAllocs()
	for b.Loop() {
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c0", order.Sell, 660_000, 1)})
	}
}

// BenchmarkFlow decides and folds what a busy venue sees, with 100,000 orders resting: 45 % new orders, 45 % canceled,
// 10 % that take.
func BenchmarkFlow(b *testing.B) {
	const customers, resting = 64, 100_000
	e := newEngine(b, customers)
	random := rand.New(rand.NewPCG(1, 2))
	var names [customers]string
	for n := range names {
		names[n] = fmt.Sprint("c", n)
	}
	type placed struct {
		customer string
		code     scalar.ID
	}
	var live []placed
	rest := func() {
		customer, side, ticks := names[random.IntN(customers)], order.Buy, 650_000-1-random.Int64N(5000)
		if random.IntN(2) == 0 {
			side, ticks = order.Sell, 1_300_000-ticks
		}
		d := e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder(customer, side, ticks, 1+random.Int64N(9))})
		live = append(live, placed{customer, d.Events[0].(OrderEvent).After().Code})
	}
	for range resting {
		rest()
	}
	b.ReportAllocs()
	for b.Loop() {
		switch n := random.IntN(100); {
		case n < 45 || e.state.orders.Len() < resting*9/10:
			rest()
		case n < 90:
			at := random.IntN(len(live))
			o := live[at]
			live[at] = live[len(live)-1]
			live = live[:len(live)-1]
			if e.state.orders.Get(o.code) != nil {
				e.do(decide.Command{Actor: trader("alpha"), Payload: &CancelOrder{CustomerCode: o.customer, OrderCode: o.code}})
			}
		default:
			o := limitOrder(names[random.IntN(customers)], order.Buy, 655_000, 1+random.Int64N(5))
			if n%2 == 0 {
				o.Action, o.LimitPrice.Coef = order.Sell, 645_000
			}
			o.TimeInForce = order.IOC
			e.do(decide.Command{Actor: trader("alpha"), Payload: o})
		}
	}
}

// TestMemoryOfRestingOrders checks what an order that rests costs.
func TestMemoryOfRestingOrders(t *testing.T) {
	const orders = 100_000
	e := newEngine(t, 10)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for n := range int64(orders) {
		e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder(fmt.Sprint("c", n%10), order.Buy, 600_000+n%5000, 1)})
	}
	each := (heap() - before) / orders
	t.Logf("%d bytes for each resting order", each)
	if each > 270 {
		t.Errorf("a resting order takes %d bytes", each)
	}
	runtime.KeepAlive(e)
}
