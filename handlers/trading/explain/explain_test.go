package explain_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/arithmetic"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/trading/explain"
	"github.com/perpetua-exchange/perpetua/handlers/web/explanations"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// venue decides commands as an owner does, and hands every record with the state that it met to the tests.
type venue struct {
	t    *testing.T
	now  scalar.Time
	made *trading.State // after the last record
	last record.Entry
	each func(past.Met)
	// decimals are those of prices. With many of them, hardly two prices of a random market are equal.
	decimals uint8
	digits   *rand.Rand      // for the decimals after the first
	public   map[string]bool // the prices of all trades so far, and the mark prices
}

const begin = scalar.Time(1_800_000_000_000_000)

func newVenue(t *testing.T) *venue {
	v := &venue{t: t, now: begin, made: trading.NewState(), last: record.Entry{Position: record.Before, Journal: scalar.ID{1}}, each: func(past.Met) {}, decimals: 1, public: map[string]bool{}}
	for n := 2; n <= trading.Rules().Newest(); n++ {
		v.give(decide.Actor{Sub: "operator", Broker: "venue"}, &decide.ActivateRules{Rules: n})
	}
	return v
}

func (v *venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: scalar.ID{1}, Sequence: v.last.Position.Sequence + 1, Time: v.now}
}

// give decides a command and everything that is due. It returns the refusal, if any.
func (v *venue) give(by decide.Actor, p decide.Payload) error {
	v.t.Helper()
	v.steps()
	id := scalar.ID{7: 0x80, 14: byte(v.last.Position.Sequence >> 8), 15: byte(v.last.Position.Sequence)}
	c := decide.Command{ID: id, Type: p.CommandType(), Actor: by, Payload: p}
	d, err := v.made.Decide(v.stamp(), c)
	if err != nil {
		if refusal := new(decide.Refusal); !errors.As(err, &refusal) {
			v.t.Fatal(err)
		}
		return err
	}
	if !d.Repeated {
		v.append(c.Recorded(), d)
	}
	v.steps()
	return nil
}

func (v *venue) steps() {
	v.t.Helper()
	for n := 0; v.made.Due(v.now) != decide.Nothing; n++ {
		if n == 10_000 {
			v.t.Fatal("what is due does not end")
		}
		d := v.made.Step(v.stamp(), false)
		v.append(decide.Recorded{ID: scalar.ID{9}, Type: d.Events[0].EventType(), Actor: decide.Engine}, d)
	}
}

func (v *venue) append(c decide.Recorded, d decide.Decision) {
	v.t.Helper()
	at := v.stamp()
	value, err := record.Encode(nil, &record.Record{Sequence: at.Sequence, Prev: v.last.Position.Hash, Time: at.Time, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events})
	if err != nil {
		v.t.Fatal(err)
	}
	r, err := record.Decode(trading.Rules().Registry(), value)
	if err != nil {
		v.t.Fatal(err)
	}
	e := record.Entry{Record: r, Position: record.Position{Sequence: at.Sequence, Offset: at.Sequence, Hash: sha256.Sum256(value)}, Journal: at.Journal, Value: value}
	v.each(past.Met{State: v.made, Before: v.last.Position, Time: v.made.Time(), Entry: e, Build: "build/1"})
	v.made.Evolve(at, c, d.Outcome, r.Events)
	for _, event := range r.Events {
		if trade, ok := event.(*trading.TradeExecuted); ok {
			v.public[trade.Price.String()] = true
		}
	}
	v.public[v.made.MarkPrice(symbol).String()] = true
	v.last = e
}

// customers have codes, names, fees, and balances that nothing else has.
var customers = []string{"CODE-aquila", "CODE-bernina", "CODE-corvus", "CODE-dorado", "CODE-eridan"}

func brokerOf(customer string) string { return "broker-" + customer[5:6] }

const symbol = "BTCUSDC_PERP"

func decimal(t *testing.T, s string) fixed.Decimal {
	t.Helper()
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var operator = decide.Actor{Sub: "operator", Broker: "venue"}

// open lists an instrument, sets its price, and opens the accounts.
func (v *venue) open(index string) {
	v.t.Helper()
	d := func(s string) fixed.Decimal { return decimal(v.t, s) }
	must := func(err error) {
		v.t.Helper()
		if err != nil {
			v.t.Fatal(err)
		}
	}
	must(v.give(operator, &trading.ListInstrument{Instrument: market.Instrument{Symbol: symbol, Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		Status: market.Open, PriceTick: fixed.Decimal{Coef: 1, Scale: v.decimals}, AmountStep: d("0.001"), MinAmount: d("0.001"), MaxAmount: d("1000"), ContractSize: d("1"),
		InitMarginReq: d("5.00"), MaintMarginReq: d("2.50"), MaxLeverage: 13, FundingIntervalSeconds: 3600, PriceBand: d("5.00"), LimitBand: d("20.00"),
		MakerFee: d("2"), TakerFee: d("5"), IndexStaleSeconds: 0}}))
	must(v.give(operator, &trading.SetIndexPrice{Symbol: symbol, Price: d(index)}))
	for n, c := range customers {
		must(v.give(operator, &trading.RegisterCustomer{CustomerCode: c, Broker: brokerOf(c)}))
		must(v.give(operator, &trading.MakeDeposit{CustomerCode: c, Currency: "USDC", Amount: fixed.Money(9_000_0000_0000 + int64(n)*1_234_5678_9013),
			ReferenceID: "ref-" + c[5:]}))
		must(v.give(operator, &trading.SetFeeProfile{CustomerCode: c, Symbol: symbol, MakerFee: fixed.Decimal{Coef: int64(n-2)*6173 + 11, Scale: 4},
			TakerFee: fixed.Decimal{Coef: int64(n)*7919 + 20_011, Scale: 4}, Operator: true}))
	}
}

func userOf(customer string) decide.Actor {
	return decide.Actor{Sub: "user-" + customer[5:], Broker: brokerOf(customer)}
}

// foreign returns what a record and the state before it have of others: codes, brokers, users, references, orders with their
// prices, and the numbers of their postings, fees, and positions that are neither the customer's nor everybody's.
func foreign(met past.Met, customer string) (list []string) {
	e := met.Entry
	own := map[string]bool{}
	note := func(mine bool, values ...string) {
		for _, s := range values {
			s = strings.TrimPrefix(s, "-")
			switch {
			case len(s) < 6: // may be anything
			case mine:
				own[s] = true
			default:
				list = append(list, s)
			}
		}
	}
	state := met.State.(*trading.State)
	for _, p := range state.Positions(customer) {
		note(true, p.Cost.String(), p.EntryPrice.String())
	}
	index, _ := state.IndexPrice(symbol)
	bids, asks := state.Depth(symbol, 1000)
	note(true, index.String(), state.MarkPrice(symbol).String()) // everybody's
	for _, level := range append(bids, asks...) {
		note(true, level.Price.String())
	}
	for _, event := range e.Record.Events {
		if o, ok := event.(trading.OrderEvent); ok {
			a := o.After()
			mine := a.CustomerCode == customer
			note(mine, a.Code.String(), a.ReferenceID, a.FilledQuote.String(), a.LimitPrice.String(), a.TriggerPrice.String(), a.AverageFillPrice.String())
		}
		if x, ok := event.(*trading.TradeExecuted); ok {
			note(true, x.Price.String(), x.Notional.String(), x.Amount.String())
			for _, l := range []trading.TradeLeg{x.Taker, x.Maker} {
				note(l.CustomerCode == customer, l.OrderCode.String(), l.ReferenceID, l.Fee.String())
			}
		}
		if x, ok := event.(trading.PositionEvent); ok {
			for _, p := range x.PositionsAfter() {
				if p.CustomerCode == customer { // The gain at the mark price is another's realized gain if that one entered at the mark price.
					gain := unrealized(state.MarkPrice(symbol), p)
					note(true, gain.String())
				}
				note(p.CustomerCode == customer, p.Cost.String(), p.EntryPrice.String())
			}
		}
		if x, ok := event.(ledger.Posted); ok {
			for _, p := range x.Postings() {
				note(p.CustomerCode == customer, p.Amount.String(), p.Balance.String())
			}
		}
	}
	for _, c := range customers {
		for _, p := range state.Positions(c) {
			note(c == customer, p.Cost.String(), p.EntryPrice.String())
		}
		for _, o := range state.OpenOrders(c) {
			note(c == customer, o.LimitPrice.String(), o.TriggerPrice.String())
		}
	}
	for _, c := range append(slices.Clone(customers), "CODE-"+trading.FundCode) {
		if c != customer {
			list = append(list, c, brokerOf(c), "user-"+c[5:], "ref-"+c[5:])
		}
	}
	list = append(list, trading.FundCode)
	return slices.DeleteFunc(list, func(s string) bool { return own[s] || s == brokerOf(customer) })
}

// unrealized returns the unrealized gain of a position at a price. Prices have 4 decimals, and amounts 3.
func unrealized(price fixed.Decimal, p trading.PositionHeld) fixed.Money {
	ticks, _ := price.In(4)
	steps, _ := p.Amount.In(3)
	return fixed.Money(ticks*steps*10) - p.Cost
}

// has reports whether a text has a number or name as a whole.
func has(text, s string) bool {
	for rest := text; ; {
		i := strings.Index(rest, s)
		if i < 0 {
			return false
		}
		before, after := byte('"'), byte('"')
		if i > 0 {
			before = rest[i-1]
		}
		if i+len(s) < len(rest) {
			after = rest[i+len(s)]
		}
		part := func(c byte) bool { return c >= '0' && c <= '9' || c == '.' }
		if !part(before) && !part(after) {
			return true
		}
		rest = rest[i+1:]
	}
}

// withoutReached removes the calculations that a price reached a stop, after it has seen that the price is one that everybody knows:
// that of a trade, or a mark price, rounded to a tick. Another customer may have entered at that price.
func (v *venue) withoutReached(x *explain.Explanation) {
	x.Arithmetic = slices.DeleteFunc(x.Arithmetic, func(l arithmetic.Line) bool {
		if l.Name != "price_reached" {
			return false
		}
		if price := l.Values[0].Text; !v.public[price] {
			v.t.Errorf("%s %s, which is no price of a trade and no mark price", l.Values[0].Name, price)
		}
		return true
	})
}

// TestNothingOfOthers runs random markets with liquidations and deleveragings, and explains every record to everybody: each
// calculation is right, and nothing in it is another's.
func TestNothingOfOthers(t *testing.T) {
	seen := map[explain.Subject]int{}
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		v := newVenue(t)
		v.decimals, v.digits = 4, rand.New(rand.NewPCG(seed, 2))
		v.each = func(met past.Met) {
			for _, c := range customers {
				x, err := explain.New(met, c, false)
				if errors.Is(err, explanations.ErrForeign) {
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", met.Entry.Value, err)
				}
				if !x.DecidedAgain {
					t.Fatalf("%s is not decided again", met.Entry.Value)
				}
				for _, s := range x.Subjects {
					seen[s]++
				}
				for _, l := range x.Arithmetic {
					if err := l.Check(); err != nil {
						t.Fatal(err)
					}
				}
				v.withoutReached(x)
				text, err := json.Marshal(x)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range foreign(met, c) {
					if has(string(text), s) {
						t.Fatalf("seed %d: %s sees %s in\n%s\nof %s", seed, c, s, text, met.Entry.Value)
					}
				}
			}
		}
		v.random(r)
	}
	t.Log(seen)
	for _, s := range []explain.Subject{explain.Order, explain.Rejection, explain.OrderChange, explain.Fill, explain.Trigger, explain.Liquidation,
		explain.AutoDeleveraging, explain.Funding, explain.Settlement, explain.Transfer} {
		if seen[s] == 0 {
			t.Errorf("no record was of %s", s)
		}
	}
}

// price returns a price of so many tenths, with random further decimals.
func (v *venue) price(tenths int64) fixed.Decimal {
	for range v.decimals - 1 {
		tenths = tenths*10 + v.digits.Int64N(10)
	}
	return fixed.Decimal{Coef: tenths, Scale: v.decimals}
}

// random opens the venue and gives it random commands.
func (v *venue) random(r *rand.Rand) {
	v.t.Helper()
	v.open("65000")
	for range 150 {
		v.now += scalar.Time(r.Int64N(1_300_000_000))
		c := customers[r.IntN(len(customers))]
		switch r.IntN(12) {
		case 0, 1:
			_ = v.give(operator, &trading.SetIndexPrice{Symbol: symbol, Price: v.price(500_000 + r.Int64N(320_000))})
		case 2:
			_ = v.give(userOf(c), &trading.PlaceOrder{CustomerCode: c, Symbol: symbol, Action: side(r), Type: order.Market, Amount: fixed.Decimal{Coef: 1 + r.Int64N(900), Scale: 3}})
		case 3:
			_ = v.give(userOf(c), &trading.PlaceOrder{CustomerCode: c, Symbol: symbol, Action: side(r), Type: order.StopLoss,
				TriggerPrice: v.price(600_000 + r.Int64N(100_000)), Amount: fixed.Decimal{Coef: 1 + r.Int64N(500), Scale: 3},
				ReferenceID: fmt.Sprintf("ref-%s-%d", c[5:], v.last.Position.Sequence)})
		case 4:
			_ = v.give(userOf(c), &trading.CancelAll{CustomerCode: c})
		case 5:
			_ = v.give(userOf(c), &trading.SetLeverage{CustomerCode: c, Symbol: symbol, Leverage: r.IntN(14)})
		default:
			mark := v.made.MarkPrice(symbol)
			price, _ := mark.In(v.decimals)
			for range v.decimals - 1 {
				price /= 10
			}
			_ = v.give(userOf(c), &trading.PlaceOrder{CustomerCode: c, Symbol: symbol, Action: side(r), Type: order.Limit, Amount: fixed.Decimal{Coef: 1 + r.Int64N(2500), Scale: 3},
				LimitPrice: v.price(price + r.Int64N(6000) - 3000), ReferenceID: fmt.Sprintf("ref-%s-%d", c[5:], v.last.Position.Sequence)})
		}
	}
}

func side(r *rand.Rand) order.Action {
	if r.IntN(2) == 0 {
		return order.Buy
	}
	return order.Sell
}

// TestReadersOfADecidedState decides records again on their states while others read the states, copy them, and explain the record
// to another customer. Run with -race, it finds anything that a decision writes to a state and a reader reads.
func TestReadersOfADecidedState(t *testing.T) {
	v := newVenue(t)
	decided := 0
	v.each = func(met past.Met) {
		state := met.State.(*trading.State)
		liquidates := slices.ContainsFunc(met.Entry.Record.Events, func(e decide.Event) bool {
			trade, ok := e.(*trading.TradeExecuted)
			return ok && (trade.Type == trading.Liquidation || trade.Type == trading.AutoDeleveraging)
		})
		if !liquidates && met.Entry.Position.Sequence%16 != 0 {
			return
		}
		decided++
		before := trading.Codec().Append(nil, state)
		var deciding sync.Mutex // as history.States holds one
		var all sync.WaitGroup
		for _, c := range customers {
			all.Go(func() {
				deciding.Lock()
				defer deciding.Unlock()
				if _, err := explain.New(met, c, false); err != nil && !errors.Is(err, explanations.ErrForeign) {
					t.Error(err)
				}
			})
			all.Go(func() {
				state.Summary(c)
				state.Positions(c)
				state.OpenOrders(c)
				state.Obligations()
				state.BestBidAsk(symbol)
				state.MarkPrice(symbol)
			})
			all.Go(func() {
				if !bytes.Equal(trading.Codec().Append(nil, state), before) {
					t.Error("a decision has changed the state")
				}
			})
		}
		all.Wait()
	}
	v.random(rand.New(rand.NewPCG(1, 1)))
	if decided < 20 {
		t.Errorf("only %d records were decided again", decided)
	}
}

// TestARecordThatThisBuildDecidesOtherwise changes a fee in the record.
func TestARecordThatThisBuildDecidesOtherwise(t *testing.T) {
	v := newVenue(t)
	found := false
	v.each = func(met past.Met) {
		deposit, ok := met.Entry.Record.Events[0].(*trading.DepositCompleted)
		if !ok {
			return
		}
		forged := *deposit
		forged.Balance++
		changed := *met.Entry.Record
		changed.Events = []decide.Event{&forged}
		met.Entry.Record = &changed
		var err error
		if met.Entry.Value, err = record.Encode(nil, &changed); err != nil {
			t.Fatal(err)
		}
		_, err = explain.New(met, deposit.CustomerCode, false)
		var different *explanations.DifferentError
		if !errors.As(err, &different) || different.Build != "build/1" || different.Reason == "" {
			t.Errorf("%v", err)
		}
		found = true
	}
	v.open("65000")
	if !found {
		t.Error("nothing was deposited")
	}
}

// TestREADME explains records of a random market, and finds the calculations in README.md as the command there prints them.
func TestREADME(t *testing.T) {
	shortest := map[explain.Subject]*explain.Explanation{}
	for seed := range uint64(2) {
		v := newVenue(t)
		v.each = func(met past.Met) {
			for _, c := range customers {
				x, err := explain.New(met, c, false)
				if err != nil {
					continue
				}
				main := x.Subjects[0]
				if slices.Contains(x.Subjects, explain.Liquidation) {
					main = explain.Liquidation
				}
				if had := shortest[main]; len(x.Arithmetic) > 0 && (had == nil || len(x.Arithmetic) < len(had.Arithmetic)) &&
					(main != explain.Order && main != explain.Trigger || len(x.Trades) > 0) && (main != explain.Rejection || len(x.Arithmetic) > 5) {
					shortest[main] = x
				}
			}
		}
		v.random(rand.New(rand.NewPCG(seed, 1)))
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []explain.Subject{explain.Order, explain.Rejection, explain.Trigger, explain.Funding, explain.Settlement, explain.Liquidation, explain.AutoDeleveraging} {
		if shortest[s] == nil {
			t.Errorf("no record is of %s", s)
			continue
		}
		var b strings.Builder
		b.WriteString("```text\n")
		for _, l := range shortest[s].Arithmetic {
			b.WriteString(l.Name)
			if l.Subject != "" {
				b.WriteString(" (" + l.Subject + ")")
			}
			var values []string
			for _, v := range l.Values {
				values = append(values, v.Name+" "+v.Text)
			}
			fmt.Fprintf(&b, "\n    %s\n    %s\n    = %s\n", l.Formula, strings.Join(values, ", "), l.Result)
		}
		b.WriteString("```\n")
		if !strings.Contains(string(page), b.String()) {
			t.Errorf("README.md does not have:\n%s", b.String())
		}
	}
}
