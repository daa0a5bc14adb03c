package projectiontest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/opening"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Owner simulates the owner of the trading journal. It submits random commands to the real rules and collects the
// records, decoded from their JSON as a reader of the journal would. State is the fold of all Entries.
type Owner struct {
	State   *trading.State
	Entries []record.Entry

	t         testing.TB
	random    *rand.Rand
	venue     *Venue // stamps, chains and wraps the records
	rules     decide.Rules
	customers []string
	pending   []scalar.ID
	refused   int
}

// NewOwner returns an owner. Its journal is a function of the seed. The instruments are listed and have prices.
func NewOwner(t testing.TB, seed uint64) *Owner {
	o := &Owner{State: trading.NewState(), t: t, venue: NewVenue(seed), rules: trading.Rules(), random: rand.New(rand.NewPCG(seed, 2))}
	o.keep(o.venue.Entries(2)...) // genesis and taken
	for _, symbol := range Symbols() {
		o.do(operator, trading.CommandListInstrument, &trading.ListInstrument{Instrument: Instrument(symbol)})
		o.do(operator, trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 650000, Scale: 1}})
	}
	return o
}

var operator = decide.Actor{Sub: "operator", Broker: "venue"}

func (o *Owner) keep(entries ...record.Entry) {
	for _, e := range entries {
		o.State.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	o.Entries = append(o.Entries, entries...)
}

// do decides a command and the due work that follows, and collects the records. A refusal leaves no record.
func (o *Owner) do(actor decide.Actor, kind string, payload any) []decide.Event {
	o.t.Helper()
	d, err := o.State.Decide(o.venue.stamp(), decide.Command{ID: o.venue.id(), Type: kind, Actor: actor, Payload: payload})
	if refusal := new(decide.Refusal); errors.As(err, &refusal) {
		o.refused++
		return nil
	}
	if err != nil {
		o.t.Fatal(err)
	}
	o.append(kind, actor, d)
	o.drain()
	return d.Events
}

// drain executes the due work.
func (o *Owner) drain() {
	o.t.Helper()
	for o.State.Due(o.venue.time) != decide.Nothing {
		o.append("engine.step", decide.Engine, o.State.Step(o.venue.stamp(), false))
	}
}

// PassHour advances the time to the next full hour, at which funding is fixed and, at 8, positions are settled. To
// create a premium, it sets the index price again one minute before the hour.
func (o *Owner) PassHour() {
	o.t.Helper()
	now := o.venue.Pass(0)
	o.venue.Pass(scalar.Hour - now%scalar.Hour - scalar.Minute)
	o.drain()
	for _, symbol := range Symbols() {
		o.do(operator, trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 649000 + o.random.Int64N(2000), Scale: 1}})
	}
	now = o.venue.Pass(0)
	o.venue.Pass(scalar.Hour - now%scalar.Hour)
	o.drain()
}

// Jolt moves all index prices by a number of thousandths and back, which liquidates the customers with the thinnest margins.
func (o *Owner) Jolt(thousandths int64) {
	o.t.Helper()
	for _, price := range []int64{650 * (1000 + thousandths), 650_000} {
		for _, symbol := range Symbols() {
			o.do(operator, trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: price, Scale: 1}})
		}
	}
}

// PlaceStops submits n random limit orders that wait for a price near the index.
func (o *Owner) PlaceStops(n int) {
	o.t.Helper()
	for range n {
		customer := o.customers[o.random.IntN(len(o.customers))]
		price := func() fixed.Decimal { return fixed.Decimal{Coef: 649000 + o.random.Int64N(2000), Scale: 1} }
		payload := &trading.PlaceOrder{CustomerCode: customer, Symbol: Symbols()[o.random.IntN(2)], Action: order.Buy, Type: order.StopLossLimit,
			Amount: fixed.Decimal{Coef: 1 + o.random.Int64N(900), Scale: 3}, LimitPrice: price(), TriggerPrice: price()}
		if o.random.IntN(2) == 0 {
			payload.Action = order.Sell
		}
		o.do(actor(customer), trading.CommandPlaceOrder, payload)
	}
}

// Sweep rests many small asks, and has a larger order buy them in several records. The remainder of that order rests. If amended is set,
// the order rests at a lower price first, and is amended. If setAside is set, its work is set aside after the first record, and an operator
// puts it back.
func (o *Owner) Sweep(amended, setAside bool) {
	o.t.Helper()
	const makers = 260
	first := len(o.customers)
	for range 2 {
		o.register()
	}
	maker, taker, symbol := o.customers[first], o.customers[first+1], Symbols()[0]
	limit := func(customer string, action order.Action, amount, price int64) *trading.PlaceOrder {
		return &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: action, Type: order.Limit,
			Amount: fixed.Decimal{Coef: amount, Scale: 3}, LimitPrice: fixed.Decimal{Coef: price, Scale: 1}}
	}
	for n := range int64(makers) {
		o.do(actor(maker), trading.CommandPlaceOrder, limit(maker, order.Sell, 1, 650_500+n))
	}
	price := fixed.Decimal{Coef: 651_000, Scale: 1}
	kind, payload := trading.CommandPlaceOrder, any(limit(taker, order.Buy, 2500, price.Coef))
	if amended {
		o.do(actor(taker), trading.CommandPlaceOrder, limit(taker, order.Buy, 2500, 649_000))
		kind, payload = trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: taker, OrderCode: o.State.OpenOrders(taker)[0].Code, LimitPrice: &price}
	}
	d, err := o.State.Decide(o.venue.stamp(), decide.Command{ID: o.venue.id(), Type: kind, Actor: actor(taker), Payload: payload})
	if err != nil || o.State.Due(o.venue.time) != decide.Nothing {
		o.t.Fatalf("the order that sweeps: %v, or other work is due", err)
	}
	o.append(kind, actor(taker), d)
	if o.State.Due(o.venue.time) == decide.Nothing {
		o.t.Fatal("one record has all trades")
	}
	if setAside {
		o.append("engine.step", decide.Engine, o.State.SetAside(o.venue.stamp(), "a test"))
		o.placeOrder(actor(maker), maker, symbol)
		o.do(operator, decide.CommandPutBackDue, &decide.PutBackDue{Entry: o.State.SetAsideEntries()[0].Entry})
	}
	o.drain()
	if rest := o.State.OpenOrders(taker); len(rest) != 1 || rest[0].Status != order.PartiallyFilled {
		o.t.Fatalf("the remainder does not rest: %v", rest)
	}
}

// Delist lists another instrument, rests orders on it, and withdraws it, which takes several records. It returns the symbol.
func (o *Owner) Delist() string {
	o.t.Helper()
	const symbol = "SOLUSDC_PERP"
	o.do(operator, trading.CommandListInstrument, &trading.ListInstrument{Instrument: Instrument(symbol)})
	o.do(operator, trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 650000, Scale: 1}})
	customer := o.customers[len(o.customers)-1]
	for n := range int64(150) {
		o.do(actor(customer), trading.CommandPlaceOrder, &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: order.Buy, Type: order.Limit,
			Amount: fixed.Decimal{Coef: 1, Scale: 3}, LimitPrice: fixed.Decimal{Coef: 640_000 + n%40, Scale: 1}})
	}
	if bids, _ := o.State.Depth(symbol, 100); len(bids) != 40 {
		o.t.Fatalf("%d bids rest", len(bids))
	}
	before := len(o.Entries)
	o.do(operator, trading.CommandDelistInstrument, &trading.DelistInstrument{Symbol: symbol})
	if bids, _ := o.State.Depth(symbol, 100); len(bids) > 0 || len(o.Entries) < before+2 {
		o.t.Fatalf("after %d records, %d bids rest", len(o.Entries)-before, len(bids))
	}
	return symbol
}

func (o *Owner) append(kind string, actor decide.Actor, d decide.Decision) {
	o.t.Helper()
	o.keep(o.venue.decided(o.t, o.rules, kind, actor, d))
}

// Play submits n random commands.
func (o *Owner) Play(n int) {
	o.t.Helper()
	for range n {
		if len(o.customers) < 3 || o.random.IntN(100) == 0 {
			o.register()
			continue
		}
		o.command(o.customers[o.random.IntN(len(o.customers))])
	}
}

func (o *Owner) register() {
	code := fmt.Sprintf("C%d", len(o.customers))
	o.customers = append(o.customers, code)
	o.do(actor(code), trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Name: "Account " + code})
	o.do(operator, trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: code, Currency: ledger.USDC, Amount: 50_000 * fixed.Unit})
}

// Import imports a file with balances of two new customers and positions at different entry prices, under the newest rules.
func (o *Owner) Import() {
	o.t.Helper()
	for rules := o.State.ActiveRules() + 1; rules <= o.rules.Newest(); rules++ {
		o.do(operator, decide.CommandActivateRules, &decide.ActivateRules{Rules: rules})
	}
	file := opening.File{Source: "books", SHA256: strings.Repeat("a", 64)}
	for n, amount := range [...]int64{20, -20} {
		code := fmt.Sprintf("I%d", n)
		o.do(actor(code), trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Name: "Account " + code})
		file.Lines = append(file.Lines, opening.Line{Number: len(file.Lines) + 2, CustomerCode: code, Currency: ledger.USDC, Amount: fixed.Decimal{Coef: 5000}},
			opening.Line{Number: len(file.Lines) + 3, CustomerCode: code, Symbol: Symbols()[0], Amount: fixed.Decimal{Coef: amount, Scale: 3},
				EntryPrice: fixed.Decimal{Coef: 6500012345678 + 1e7*amount, Scale: 8}, Lot: 1})
	}
	if len(o.do(operator, trading.CommandImportOpening, &trading.ImportOpening{File: file})) != 5 {
		o.t.Error("the file is not imported")
	}
}

func (o *Owner) command(customer string) {
	by, symbol := actor(customer), Symbols()[o.random.IntN(2)]
	fee := fixed.Decimal{Coef: o.random.Int64N(1000), Scale: 1}.Trim()
	switch n := o.random.IntN(100); {
	case n < 3:
		o.do(operator, trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: customer, Currency: ledger.USDC, Amount: fixed.Money(1 + o.random.Int64N(1e12))})
	case n < 6:
		for _, e := range o.do(operator, trading.CommandRequestWithdrawal, &trading.RequestWithdrawal{CustomerCode: customer, Currency: ledger.USDC, Amount: fixed.Money(1 + o.random.Int64N(1e11))}) {
			if requested, ok := e.(*trading.WithdrawalRequested); ok { // postings of unpaid charges may come first
				o.pending = append(o.pending, requested.Code)
			}
		}
	case n < 9 && len(o.pending) > 0:
		code := o.pending[0]
		o.pending = o.pending[1:]
		if o.random.IntN(2) == 0 {
			o.do(operator, trading.CommandCompleteWithdrawal, &trading.CompleteWithdrawal{Code: code})
		} else {
			o.do(operator, trading.CommandCancelWithdrawal, &trading.CancelWithdrawal{Code: code})
		}
	case n < 11:
		o.do(by, trading.CommandSetFeeProfile, &trading.SetFeeProfile{CustomerCode: customer, Symbol: symbol, MakerFee: fee, TakerFee: fee})
	case n < 13:
		o.do(operator, trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 649000 + o.random.Int64N(2000), Scale: 1}})
	case n < 25:
		if open := o.State.OpenOrders(customer); len(open) > 0 {
			o.change(by, customer, open[o.random.IntN(len(open))])
		}
	case n < 27:
		o.do(by, trading.CommandSetLeverage, &trading.SetLeverage{CustomerCode: customer, Symbol: symbol, Leverage: o.random.IntN(14)})
	case n < 28:
		o.do(by, trading.CommandCancelAll, &trading.CancelAll{CustomerCode: customer})
	default:
		o.placeOrder(by, customer, symbol)
	}
}

func (o *Owner) change(by decide.Actor, customer string, live order.Order) {
	if o.random.IntN(2) == 0 {
		o.do(by, trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: customer, OrderCode: live.Code})
		return
	}
	price := fixed.Decimal{Coef: 649000 + o.random.Int64N(2000), Scale: 1}
	o.do(by, trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: customer, OrderCode: live.Code, LimitPrice: &price})
}

func (o *Owner) placeOrder(by decide.Actor, customer, symbol string) {
	payload := &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: order.Buy, Type: order.Limit,
		Amount:     fixed.Decimal{Coef: 1 + o.random.Int64N(900), Scale: 3},
		LimitPrice: fixed.Decimal{Coef: 649000 + o.random.Int64N(2000), Scale: 1}}
	if o.random.IntN(2) == 0 {
		payload.Action = order.Sell
	}
	switch o.random.IntN(12) {
	case 0:
		payload.TimeInForce, payload.ExpireTime = order.GTD, o.venue.time+50*scalar.Millisecond
	case 1:
		payload.TimeInForce = order.FOK
	case 2:
		payload.PostOnly = true
	case 3:
		payload.ReduceOnly = true
	case 4:
		payload.Type, payload.LimitPrice = order.Market, fixed.Decimal{}
	case 5:
		payload.Type, payload.LimitPrice, payload.Amount, payload.CashAmount = order.Market, fixed.Decimal{}, fixed.Decimal{}, fixed.Money(1+o.random.Int64N(1e12))
	case 6:
		payload.Leverage = 1 + o.random.IntN(13)
	}
	o.do(by, trading.CommandPlaceOrder, payload)
}
