package trading

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// manyHolders is an engine on which so many customers hold a long position, one short position stands against all of
// them, and a book with a premium.
func manyHolders(t testing.TB, holders int) *engine {
	t.Helper()
	e := newEngine(t, 1)
	for n := range holders {
		customer, against := fmt.Sprint("c", n+1), "c0"
		e.do(decide.Command{Actor: operator, Payload: &RegisterCustomer{CustomerCode: customer, Broker: "alpha"}})
		e.do(decide.Command{Actor: operator, Payload: &MakeDeposit{CustomerCode: customer, Currency: currency, Amount: 1000 * fixed.Unit}})
		e.at.Sequence++ // a trade, as the fold would take it over
		c := e.state.Contract("BTCUSDC_PERP")
		trade := &TradeExecuted{Symbol: "BTCUSDC_PERP", Price: c.Price(650_000), Amount: c.Amount(1), Notional: 65 * fixed.Unit, Action: order.Buy, Type: Trade,
			Positions: []PositionHeld{held(customer, c, 1, 65*fixed.Unit), held(against, c, -int64(n+1), fixed.Money(-n-1)*65*fixed.Unit)}}
		e.state.Evolve(e.at, decide.Recorded{}, decide.Accepted, []decide.Event{trade})
	}
	for _, o := range []*PlaceOrder{limitOrder("c0", order.Buy, 650_000, 1000), limitOrder("c0", order.Sell, 652_000, 1000)} {
		e.do(decide.Command{Actor: trader("alpha"), Payload: o})
	}
	e.at.Time = start + scalar.Minute
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("64900")}})
	return e
}

// step takes the next step and returns its events and how many bytes they take.
func (e *engine) step() (events []decide.Event, size int) {
	e.at.Sequence++
	d := e.state.Step(e.at, false)
	for _, event := range d.Events {
		data, err := json.Marshal(event)
		if err != nil {
			e.b.Fatal(err)
		}
		size += len(data)
	}
	e.state.Evolve(e.at, decide.Recorded{}, d.Outcome, d.Events)
	return d.Events, size
}

// TestManyHolders: however many hold a position, a record of funding or settlement is bounded: one fixes the instant with
// an event for each instrument, and each step posts at most as many accounts as a record may change orders. Between two
// steps clients have their turn, and in the end all is posted.
func TestManyHolders(t *testing.T) {
	const holders = 100_000
	e := manyHolders(t, holders)
	for _, instant := range []struct {
		at     scalar.Time
		fixing int // events
	}{{start + scalar.Hour, 2}, {start + 24*scalar.Hour, 2}} {
		e.at.Time = instant.at
		for e.state.Due(e.at.Time) == decide.Blocking {
			if events, size := e.step(); len(events) > instant.fixing+maxChanges || size > maxRecord/2 {
				t.Fatalf("%d events of %d bytes fix an instant", len(events), size)
			}
		}
		posted, steps := 0, 0
		for e.state.Due(e.at.Time) != decide.Nothing {
			if e.state.Due(e.at.Time) == decide.Blocking {
				t.Fatal("postings block clients")
			}
			events, size := e.step()
			if len(events) > 1+maxChanges || size > maxRecord {
				t.Fatalf("%d events of %d bytes in a step", len(events), size)
			}
			posted += len(events) - 1
			steps++
		}
		if posted != holders+1 || steps != (holders+maxChanges)/maxChanges || e.state.outstanding != 0 || e.state.VenueBalance(ledger.Funding) != 0 {
			t.Errorf("%d positions posted in %d steps, %d instants and %s are left", posted, steps, e.state.outstanding, e.state.VenueBalance(ledger.Funding))
		}
	}
	if b, _ := e.state.Balance("c7"); b != 1000*fixed.Unit-845_650 { // 0.001 × 65000 × 0.0001301
		t.Errorf("c7 has %s", b)
	}
}

// TestAPriceLooksAtNoHolder: what an index price, or the fixing of a charge, makes does not grow with those who hold a
// position.
func TestAPriceLooksAtNoHolder(t *testing.T) {
	cost := func(holders int) (price, fixing float64) {
		e := manyHolders(t, holders)
		n := int64(0)
		price = testing.AllocsPerRun(100, func() {
			n++
			e.at.Time += scalar.Second
			e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: fixed.Decimal{Coef: 64_900 + n%3}}})
		})
		e.at.Time = start + scalar.Hour
		e.at.Sequence++
		fixing = testing.AllocsPerRun(100, func() { e.state.Step(e.at, false) })
		return price, fixing
	}
	price, fixing := cost(10)
	if more, longer := cost(3000); more > price+1 || longer > fixing+1 {
		t.Errorf("with 3,000 holders a price takes %.0f allocations and an instant %.0f, with 10 %.0f and %.0f", more, longer, price, fixing)
	}
}
