package trading

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// desk gives commands without a scenario's words.
type desk struct {
	*testing.T
	*testJournal
}

func newDesk(t *testing.T) *desk { return &desk{t, newTestJournal(t)} }

func (d *desk) must(c decide.Command) decide.Decision {
	d.T.Helper()
	if c.Actor == (decide.Actor{}) {
		c.Actor = operator
	}
	decision, err := d.do(c)
	if err != nil {
		d.T.Fatal(err)
	}
	return decision
}

func (d *desk) customer(code, broker string) {
	d.T.Helper()
	d.must(decide.Command{Type: CommandRegisterCustomer, Payload: &RegisterCustomer{CustomerCode: code, Broker: broker}})
	d.must(decide.Command{Type: CommandMakeDeposit, Payload: &MakeDeposit{CustomerCode: code, Currency: currency, Amount: 5_000_000_000 * fixed.Unit}})
}

func (d *desk) place(broker string, payload *PlaceOrder) decide.Decision {
	d.T.Helper()
	return d.must(decide.Command{Type: CommandPlaceOrder, Actor: trader(broker), Payload: payload})
}

func number(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

// TestLargestRecords makes records with everything as long as it may be, and checks that they are cut where the
// estimate says and never exceed the limit, and that no part is larger than its estimate.
func TestLargestRecords(t *testing.T) {
	d := newDesk(t)
	i := btc()
	i.Symbol = strings.Repeat("S", 24) + "_" + strings.Repeat("P", 8)
	i.MakerFee, i.TakerFee = number("1.2345"), number("5.4321")
	d.must(decide.Command{Type: CommandListInstrument, Payload: &ListInstrument{Instrument: i}})
	d.must(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number("65432.1")}})
	long := func(prefix string, length int) string { return prefix + strings.Repeat("x", length-len(prefix)) }
	maker, taker, broker := long("maker", 32), long("taker", 32), long("broker", 32)
	d.customer(maker, broker)
	d.customer(taker, broker)
	orders := 0
	fill := func(resting order.Action, price string) {
		for range 230 {
			orders++
			d.place(broker, &PlaceOrder{CustomerCode: maker, Symbol: i.Symbol, Action: resting, Type: order.Limit, LimitPrice: number(price),
				Amount: number("0.123"), TimeInForce: order.GTD, ExpireTime: d.now + scalar.Hour, ReferenceID: long(fmt.Sprint("m", orders), 64)})
		}
		before := len(d.records)
		d.place(broker, &PlaceOrder{CustomerCode: taker, Symbol: i.Symbol, Action: resting.Opposite(), Type: order.Limit, LimitPrice: number(price),
			Amount: number("40"), ReferenceID: long(fmt.Sprint("t", orders), 64)})
		if len(d.records)-before < 3 {
			t.Errorf("230 fills fit %d records", len(d.records)-before)
		}
		d.must(decide.Command{Type: CommandCancelAll, Actor: trader(broker), Payload: &CancelAll{CustomerCode: taker}})
	}
	fill(order.Sell, "65432.1")
	fill(order.Buy, "65431.9") // both sides close, with profit, loss and fees
	// Stops, too: they have more to show, and fire into a record of many fills. The first one rests, and is filled by the
	// second, which reaches beyond it.
	for n, kind := range []order.Type{order.TakeProfitLimit, order.TakeProfitStopLoss} {
		payload := &PlaceOrder{CustomerCode: taker, Symbol: i.Symbol, Action: order.Sell, Type: kind, Amount: number("40"), TimeInForce: order.GTD,
			ExpireTime: d.now + scalar.Hour, ReferenceID: long(fmt.Sprint("s", n), 64)}
		if kind.Limited() {
			payload.TriggerPrice, payload.LimitPrice = number("65500.1"), number("65431.9")
		} else {
			payload.StopLossPrice, payload.TakeProfitPrice = number("60000.1"), number("65500.1")
		}
		d.place(broker, payload)
	}
	for range 120 {
		orders++
		d.place(broker, &PlaceOrder{CustomerCode: maker, Symbol: i.Symbol, Action: order.Buy, Type: order.Limit, LimitPrice: number("65431.9"),
			Amount: number("0.123"), ReferenceID: long(fmt.Sprint("m", orders), 64)})
	}
	d.place(broker, &PlaceOrder{CustomerCode: maker, Symbol: i.Symbol, Action: order.Sell, Type: order.Limit, LimitPrice: number("65500.1"), Amount: number("0.123")})
	d.place(broker, &PlaceOrder{CustomerCode: taker, Symbol: i.Symbol, Action: order.Buy, Type: order.Limit, LimitPrice: number("65500.1"), Amount: number("0.123")})
	d.must(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: i.Symbol, Price: number("65500.1")}})
	d.drain()
	fired := 0
	for _, r := range d.records {
		for _, e := range r.decode(t) {
			checkEstimate(t, e)
			if _, ok := e.(*TriggerFired); ok {
				fired++
			}
		}
	}
	if fired != 2 {
		t.Errorf("%d stops fired", fired)
	}
}

// checkEstimate holds an event's encoding against what the builder counts for it.
func checkEstimate(t *testing.T, e decide.Event) {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	size, estimate := len(data)+60, 0
	switch e := e.(type) {
	case OrderEvent:
		o := e.After()
		estimate = orderBytes + len(o.CustomerCode) + len(o.Broker) + len(o.ReferenceID) + len(o.Symbol)
	case *TradeExecuted:
		estimate = tradeBytes + len(e.Symbol) + len(e.Taker.ReferenceID) + len(e.Maker.ReferenceID)
		for _, l := range [2]TradeLeg{e.Taker, e.Maker} {
			estimate += legBytes + heldBytes + 2*len(l.CustomerCode) + len(l.Broker) + len(e.Symbol)
		}
		for _, p := range e.Entries {
			estimate += postingBytes + len(e.Symbol) + len(p.CustomerCode)
		}
	case *TriggerFired:
		estimate = firedBytes + len(e.CustomerCode) + len(e.Broker) + len(e.Symbol)
	default:
		return
	}
	if size > estimate {
		t.Fatalf("%s takes %d bytes, %d were counted:\n%s", e.EventType(), size, estimate, data)
	}
	if size < estimate/2 {
		t.Fatalf("%s takes %d bytes, and %d were counted:\n%s", e.EventType(), size, estimate, data)
	}
}

// TestSourceIsAppliedOnce checks that a command of another journal's record is taken over once.
func TestSourceIsAppliedOnce(t *testing.T) {
	d := newDesk(t)
	register := func(code string, sequence int64) (decide.Decision, error) {
		return d.do(decide.Command{Type: CommandRegisterCustomer, Actor: decide.Actor{System: "onboarding"},
			Metadata: decide.Metadata{Source: &decide.Source{Journal: "onboarding", Sequence: sequence}}, Payload: &RegisterCustomer{CustomerCode: code, Broker: "alpha"}})
	}
	for _, c := range []struct {
		code     string
		sequence int64
		repeated bool
	}{{"a", 5, false}, {"a", 5, true}, {"b", 4, true}, {"b", 6, false}} {
		got, err := register(c.code, c.sequence)
		if err != nil || got.Repeated != c.repeated {
			t.Errorf("%s from record %d: repeated %t (%v)", c.code, c.sequence, got.Repeated, err)
		}
	}
	if n := len(d.state.CustomersOf("alpha")); n != 2 {
		t.Errorf("%d customers", n)
	}
}

// TestReferencesAreBounded checks that no more than so many names of final orders are remembered, the oldest
// going first.
func TestReferencesAreBounded(t *testing.T) {
	var r references
	for n := range int64(MaxReferences + 10) {
		r.note(n, start+scalar.Time(n), scalar.ID{1}, fmt.Sprint(n), "00", true)
	}
	r.note(1, start, scalar.ID{2}, "live", "00", false)
	if r.finals.length != MaxReferences || len(r.names) != MaxReferences+1 {
		t.Fatalf("%d names of final orders, %d in all", r.finals.length, len(r.names))
	}
	if r.find("9", start) != nil || r.find("10", start) == nil || r.find("live", start+100*scalar.Hour) == nil {
		t.Error("the wrong ones were forgotten")
	}
	r.note(2, start+decide.Remember+scalar.Hour, scalar.ID{2}, "live", "00", true)
	if len(r.names) != 1 {
		t.Errorf("%d names after a day", len(r.names))
	}
}
