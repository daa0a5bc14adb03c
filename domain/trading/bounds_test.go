package trading

import (
	"fmt"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// crowd makes a venue on which so many customers hold a position, half of them long, with far more money than they
// need; and a few more, with the least, who are all long.
func crowd(b testing.TB, holders, near int) *engine {
	e := newEngine(b, 0)
	customer := func(code string, deposit fixed.Money) {
		e.do(decide.Command{Actor: operator, Payload: &RegisterCustomer{CustomerCode: code, Broker: "alpha"}})
		e.do(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: code, Currency: currency, Amount: deposit * fixed.Unit}})
	}
	for n := range holders {
		customer(fmt.Sprint("c", n), 100_000)
	}
	pair := func(seller, buyer string) {
		for _, o := range [2]*PlaceOrder{limitOrder(seller, order.Sell, 650_000, 10), limitOrder(buyer, order.Buy, 650_000, 10)} {
			e.do(decide.Command{Actor: trader("alpha"), Payload: o})
		}
	}
	for n := 0; n < holders; n += 2 {
		pair(fmt.Sprint("c", n), fmt.Sprint("c", n+1))
	}
	for n := range near {
		code := fmt.Sprint("near", n)
		customer(code, 51)
		pair("c0", code)
	}
	return e
}

// index gives an index price, in tenths.
func (e *engine) index(price int64) {
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: fixed.Decimal{Coef: price, Scale: 1}}})
}

// TestAPriceLooksAtThoseItBringsNear counts at how many accounts a price looks: at none of 100,000 holders who are far from
// being liquidated, though it moves by several percent; and at the few that it brings there, whatever the others.
func TestAPriceLooksAtThoseItBringsNear(t *testing.T) {
	for _, holders := range []int{1000, 100_000} {
		const near = 7
		e := crowd(t, holders, near)
		looks := func(price int64) int {
			before := e.state.looks
			e.index(price)
			return e.state.looks - before
		}
		for _, price := range []int64{650_010, 651_000, 640_000, 649_000} {
			if n := looks(price); n > near {
				t.Errorf("%d holders, and a price of %d looks at %d", holders, price, n)
			}
		}
		// Each has 50.675 for 650 at first, and needs 25 at 39 or so below mark: they are looked at once or twice on the way.
		if n := looks(623_000); n < near || n > near {
			t.Errorf("%d holders, and a price that brings %d of them below looks at %d", holders, near, n)
		}
		failing := 0
		for _, a := range e.state.registered {
			if a.failing != nil {
				failing++
			}
		}
		if failing != near {
			t.Errorf("%d are to be liquidated, not %d", failing, near)
		}
	}
}

// BenchmarkIndexPrice is one index price with so many holders, none of them near: to be held against each other.
func BenchmarkIndexPrice(b *testing.B) {
	for _, holders := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(holders), func(b *testing.B) {
			e := crowd(b, holders, 0)
			b.ReportAllocs()
			for n := int64(0); b.Loop(); n++ {
				e.index(650_000 + n%1000)
			}
		})
	}
}

// BenchmarkLiquidationWave is the liquidation of 1,000 accounts that one price brings below, from the price to the last
// step, among 100,000 holders: with bids that take all, and with an empty book, so that all are deleveraged.
func BenchmarkLiquidationWave(b *testing.B) {
	for _, empty := range []bool{false, true} {
		b.Run(map[bool]string{false: "book", true: "deleveraging"}[empty], func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				e := crowd(b, 100_000, 1000)
				if !empty {
					for n := range int64(500) {
						e.do(decide.Command{Actor: trader("alpha"), Payload: limitOrder("c1", order.Buy, 624_000-n, 100)})
					}
				}
				b.StartTimer()
				e.index(623_000)
				steps := 0
				for e.state.Due(e.at.Time) == decide.Blocking {
					e.at.Sequence++
					e.at.Time++
					d := e.state.Step(e.at, false)
					e.state.Evolve(e.at, decide.Recorded{Type: "engine.step", Actor: decide.Engine}, d.Outcome, d.Events)
					steps++
				}
				b.ReportMetric(float64(steps), "records")
			}
		})
	}
}
