package trading

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

const wide = 400 // instruments

func wideSymbol(n int) string { return fmt.Sprintf("C%03dUSDC_PERP", n) }

// wideVenue is a venue on which alice, and the maker against her, hold a position on each of very many instruments.
// Beside it stands a twin that folds the records as a reader does, and is saved and read back now and then.
type wideVenue struct {
	*engine
	twin *State
}

// give has both decide a command, or the next step for nil, which must be the same and fit a record, and folds it.
func (v *wideVenue) give(p decide.Payload) decide.Decision {
	v.b.Helper()
	v.at.Sequence++
	c := decide.Command{Type: "engine.step", Actor: operator, Payload: p}
	if p != nil {
		c.Type = p.CommandType()
	}
	if o, ok := p.(*PlaceOrder); ok {
		c.Actor, o.Type = trader("alpha"), order.Limit
	}
	ask := func(s *State) (decide.Decision, []byte) {
		if p == nil {
			d := s.Step(v.at, false)
			return d, v.encode(d)
		}
		d, err := s.Decide(v.at, c)
		if err != nil {
			v.b.Fatalf("%T: %v", p, err)
		}
		return d, v.encode(d)
	}
	d, record := ask(v.state)
	_, again := ask(v.twin)
	if !bytes.Equal(record, again) {
		v.b.Fatalf("one decides\n%s\nthe one that was read back\n%s", record, again)
	}
	if len(record) > maxRecord-1000 {
		v.b.Fatalf("a record of %d bytes", len(record))
	}
	v.state.Evolve(v.at, c.Recorded(), d.Outcome, d.Events)
	v.twin.Evolve(v.at, c.Recorded(), d.Outcome, v.decode(d))
	return d
}

func (v *wideVenue) encode(d decide.Decision) []byte {
	v.b.Helper()
	data, err := json.Marshal(d.Events)
	if err != nil {
		v.b.Fatal(err)
	}
	return data
}

// decode returns a decision's events as a reader has them.
func (v *wideVenue) decode(d decide.Decision) []decide.Event {
	v.b.Helper()
	r, out := eventTable.Registry(), make([]decide.Event, 0, len(d.Events))
	for _, e := range d.Events {
		data, err := json.Marshal(e)
		if err != nil {
			v.b.Fatal(err)
		}
		again, err := r.Decode(e.EventType(), decide.VersionOf(e), data)
		if err != nil {
			v.b.Fatal(err)
		}
		out = append(out, again)
	}
	return out
}

func (v *wideVenue) offer(n int, customer string, a order.Action, amount, price string) *order.Order {
	v.b.Helper()
	p := &PlaceOrder{CustomerCode: customer, Symbol: wideSymbol(n), Action: a, Amount: number(amount), LimitPrice: number(price)}
	for _, e := range v.give(p).Events {
		if o, ok := e.(OrderEvent); ok && o.After().CustomerCode == customer {
			return o.After()
		}
	}
	v.b.Fatal("no order")
	return nil
}

// newWideVenue makes it, a minute before funding and settlement fall on one time.
func newWideVenue(t *testing.T) *wideVenue {
	v := &wideVenue{&engine{b: t, state: NewState(), at: decide.Stamp{Journal: scalar.ID{1}, Time: start}}, NewState()}
	for n := range wide {
		i := btc()
		i.Symbol, i.FundingIntervalSeconds = wideSymbol(n), 8*3600
		v.give(&ListInstrument{Instrument: i})
		v.give(&SetIndexPrice{Symbol: i.Symbol, Price: number("100")})
	}
	for _, code := range []string{"alice", "maker"} {
		v.give(&RegisterCustomer{CustomerCode: code, Broker: "alpha"})
		v.give(&MakeDeposit{CustomerCode: code, Currency: currency, Amount: 100_000_000 * fixed.Unit})
	}
	for n := range wide { // the bids stand above the index, so there is a premium
		v.offer(n, "maker", order.Buy, "200", "100.2")
		v.offer(n, "maker", order.Sell, "200", "100.4")
		v.offer(n, "alice", order.Buy, "0.1", "100.4")
	}
	v.at.Time = start + 24*scalar.Hour - scalar.Minute
	v.drain(decide.Nothing)
	for n := range wide {
		v.give(&SetIndexPrice{Symbol: wideSymbol(n), Price: number("100.1")})
	}
	v.at.Time = start + 24*scalar.Hour
	return v
}

// drain works off what is more urgent than that.
func (v *wideVenue) drain(than decide.Urgency) {
	v.b.Helper()
	for steps := 0; v.state.Due(v.at.Time) > than; steps++ {
		if steps == 10_000 {
			v.b.Fatal("what is due does not end")
		}
		v.give(nil)
	}
}

// owes is what an account has not posted.
func (v *wideVenue) owes(code string) []unpaidCharge {
	return v.state.unpaidCharges(v.state.accounts[code])
}

// TestWhatOneAccountOwesNeedNotFitARecord: an account with positions on hundreds of instruments, which at 08:00 owes
// more than a record holds, goes on as ever: its commands are decided, each after what it owes on the instrument that
// it is about; the steps post the rest; and its equity is the same all along. A state that was saved and read back on
// the way, and one that folds the records anew, decide the same bytes.
func TestWhatOneAccountOwesNeedNotFitARecord(t *testing.T) {
	v := newWideVenue(t)
	before, _ := v.state.Summary("alice")
	v.drain(decide.Alternate) // which fixes both
	owed, funding := v.owes("alice"), fixed.Money(0)
	for _, d := range owed {
		if d.charge.kind == fundingCharge {
			funding += d.amount
		}
	}
	if due, _ := v.state.Summary("alice"); len(owed) != 2*wide || funding >= 0 || due.TotalEquity != before.TotalEquity+funding {
		t.Fatalf("alice owes %d postings, and has %s less, of which funding is %s", len(owed), before.TotalEquity-due.TotalEquity, funding)
	}
	for n := 0; len(v.owes("alice")) > 0; n++ {
		if n == 1000 {
			t.Fatal("it is never posted")
		}
		at := (n * 7) % wide
		if o := v.offer(at, "alice", order.Buy, "0.001", "100.4"); o.Status != order.Filled {
			t.Fatalf("an order of alice is %s %s", o.Status, o.Reason)
		}
		for _, code := range []string{"alice", "maker"} {
			if left := v.state.accounts[code].on(v.state.listing[at]).unpaidCharges(nil); len(left) > 0 {
				t.Fatalf("%s traded before posting what was owed there", code)
			}
		}
		v.give(nil)
		v.give(&MakeDeposit{CustomerCode: "alice", Currency: currency, Amount: 1})
		v.give(&RequestWithdrawal{CustomerCode: "alice", Currency: currency, Amount: 1})
		if n%4 == 0 {
			checkInstants(t, v.state)
			v.twin = reread(t, v.twin) // as after a crash
		}
	}
	v.drain(decide.Nothing)
	compare(t, v.state, v.twin)
	after, _ := v.state.Summary("alice")
	if v.state.outstanding != 0 || len(v.owes("maker")) != 0 || v.state.VenueBalance(ledger.Funding) != 0 {
		t.Errorf("%d instants and %s for funding are left", v.state.outstanding, v.state.VenueBalance(ledger.Funding))
	}
	if after.Balance != after.TotalEquity-after.UnrealizedPnL {
		t.Errorf("alice has %s, an equity of %s and a profit of %s", after.Balance, after.TotalEquity, after.UnrealizedPnL)
	}
}

// TestTheFundPaysWhatItHasOnceAllIsPosted: what the insurance fund makes up for is bounded by what it has after all that it
// owes, also where that goes into several records, of which the first may make it look richer.
func TestTheFundPaysWhatItHasOnceAllIsPosted(t *testing.T) {
	e := newEngine(t, 2)
	e.state.limit.charges = 0
	other := btc()
	other.Symbol = "ETHUSDC_PERP"
	e.do(decide.Command{Actor: operator, Payload: &ListInstrument{Instrument: other}})
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: other.Symbol, Price: number("2000")}})
	e.do(decide.Command{Actor: operator, Payload: &DepositInsurance{Amount: 150 * fixed.Unit}})
	fold := func(events ...decide.Event) { // as if they had been decided
		e.at.Sequence++
		e.state.Evolve(e.at, decide.Recorded{}, decide.Accepted, events)
	}
	for _, i := range e.state.listing {
		worth := i.contract.MustNotional(i.contract.MarkTicks(i.mark, fixed.Floor), 1000)
		fold(&TradeExecuted{Symbol: i.contract.Symbol, Price: i.contract.MarkPrice(i.mark), Amount: i.contract.Amount(1000), Notional: worth, Action: order.Buy, Type: Liquidation,
			Positions: []PositionHeld{held(FundCode, i.contract, 1000, worth), held("c0", i.contract, -1000, -worth)}})
	}
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65900")}}) // 900 gained
	e.do(decide.Command{Actor: operator, Payload: &SetIndexPrice{Symbol: other.Symbol, Price: number("1000")}})    // 1,000 lost
	e.at.Time = start + 24*scalar.Hour
	for e.state.settlement.Time <= e.at.Time {
		e.step()
	}
	lost := ledger.Transaction{Code: scalar.ID{7}, CustomerCode: "c1", Amount: -10_000_100 * fixed.Unit, Balance: -100 * fixed.Unit, ReferenceID: scalar.ID{7}.String()}
	fold(&DepositCompleted{lost, []ledger.Posting{{CustomerCode: "c1", Amount: lost.Amount, Balance: lost.Balance}}})
	for steps := 0; e.state.Due(e.at.Time) != decide.Nothing; steps++ {
		if steps == 100 {
			t.Fatal("what is due does not end")
		}
		e.step()
	}
	if b, _ := e.state.Balance("c1"); b != -50*fixed.Unit || e.state.fund.balance != 0 {
		t.Errorf("the account has %s, and the fund %s", b, e.state.fund.balance)
	}
}
