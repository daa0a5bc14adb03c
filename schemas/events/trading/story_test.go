package trading_test

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// story is a run of the rules in which every type of event occurs.
type story struct {
	t      *testing.T
	state  *trading.State
	at     decide.Stamp
	events []decide.Event
	same   map[string]int      // records that were decided again as the same, by command type
	inputs map[string][]string // by command type
}

// tell tells the story by rules 1 and, at its end, the newest.
func tell(t *testing.T) []decide.Event { return newStory(t).tell().events }

func newStory(t *testing.T) *story {
	return &story{t: t, state: trading.NewState(), at: decide.Stamp{Journal: scalar.ID{7}, Time: 1_767_225_600_000_000},
		same: make(map[string]int), inputs: make(map[string][]string)}
}

func (s *story) tell() *story {
	s.accounts()
	s.orders()
	s.dueWork()
	s.leverages()
	s.stops()
	s.sessions()
	s.instants()
	s.liquidation()
	s.newestRules()
	s.partial()
	s.stated()
	s.fourEyes()
	s.opened()
	s.reasons()
	return s
}

func (s *story) fold(c decide.Recorded, d decide.Decision) {
	s.t.Helper()
	if len(d.Events) == 0 {
		s.t.Fatalf("%s has no events", c.Type)
	}
	s.redecide(c, d)
	s.state.Evolve(s.at, c, d.Outcome, d.Events)
	s.events = append(s.events, d.Events...)
	s.at.Sequence++
	s.at.Time += scalar.Second
}

func (s *story) do(kind string, payload any) decide.Decision {
	s.t.Helper()
	return s.doAs("broker-a", kind, payload)
}

// doAs gives a command of a user.
func (s *story) doAs(user, kind string, payload any) decide.Decision {
	s.t.Helper()
	c := decide.Command{ID: scalar.ID{1, byte(s.at.Sequence >> 8), byte(s.at.Sequence)}, Type: kind, Payload: payload,
		Actor: decide.Actor{Sub: user, Broker: "alpha"}, Metadata: decide.Metadata{Fingerprint: "00ff"}}
	d, err := s.state.Decide(s.at, c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.fold(c.Recorded(), d)
	for s.state.Due(s.at.Time) == decide.Blocking {
		s.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, s.state.Step(s.at, false))
	}
	return d
}

func dec(s string) fixed.Decimal {
	d, err := fixed.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return d
}

func instrument(symbol string) market.Instrument {
	return market.Instrument{Symbol: symbol, Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: dec("0.1"), AmountStep: dec("0.001"), MinAmount: dec("0.001"), MaxAmount: dec("1000"), ContractSize: dec("1"),
		InitMarginReq: dec("5"), MaintMarginReq: dec("2.5"), MaxLeverage: 13, FundingIntervalSeconds: 3600, PriceBand: dec("5"),
		LimitBand: dec("20"), MakerFee: dec("2"), TakerFee: dec("5"), Tiers: []market.Tier{
			{InitMarginReq: dec("5"), MaintMarginReq: dec("2.5")}, {NotionalFrom: 5_000_000 * fixed.Unit, InitMarginReq: dec("10"), MaintMarginReq: dec("5")}}}
}

func (s *story) accounts() {
	const btc = "BTCUSDC_PERP"
	s.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(btc)})
	s.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument("OLDUSDC_PERP")})
	s.do(trading.CommandDelistInstrument, &trading.DelistInstrument{Symbol: "OLDUSDC_PERP"})
	fee := dec("4.5")
	s.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: btc, TakerFee: &fee})
	s.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("65000.25")})
	for _, code := range []string{"", "bob"} {
		s.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code, Name: "Main account"})
	}
	for _, c := range s.state.CustomersOf("alpha") {
		s.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: c.Code, Currency: "USDC", Amount: 1_000_000 * fixed.Unit, ReferenceID: "wire-1"})
	}
	for _, end := range []string{trading.CommandCompleteWithdrawal, trading.CommandCancelWithdrawal} {
		d := s.do(trading.CommandRequestWithdrawal, &trading.RequestWithdrawal{CustomerCode: "bob", Currency: "USDC", Amount: 25_050_000_000})
		code := d.Events[0].(*trading.WithdrawalRequested).Code
		if end == trading.CommandCompleteWithdrawal {
			s.do(end, &trading.CompleteWithdrawal{Code: code})
		} else {
			s.do(end, &trading.CancelWithdrawal{Code: code})
		}
	}
	s.do(trading.CommandSetFeeProfile, &trading.SetFeeProfile{CustomerCode: "bob", Symbol: btc, MakerFee: dec("-0.5"), TakerFee: dec("3"), Operator: true})
	s.do(trading.CommandSetMarginProfile, &trading.SetMarginProfile{CustomerCode: "bob", Leverage: 10})
}

func (s *story) place(customer string, a order.Action, price, amount, reference string, more func(*trading.PlaceOrder)) scalar.ID {
	s.t.Helper()
	payload := &trading.PlaceOrder{CustomerCode: customer, Symbol: "BTCUSDC_PERP", Action: a, Type: order.Limit, LimitPrice: dec(price), Amount: dec(amount), ReferenceID: reference}
	if more != nil {
		more(payload)
	}
	for _, e := range s.do(trading.CommandPlaceOrder, payload).Events {
		if o, ok := e.(trading.OrderEvent); ok {
			return o.After().Code
		}
	}
	s.t.Fatal("no order")
	return scalar.ID{}
}

func (s *story) orders() {
	alice := s.state.CustomersOf("alpha")[0].Code
	s.place(alice, order.Buy, "65000.1", "0.5", "alice-1", func(p *trading.PlaceOrder) { p.Leverage = 5 })
	s.place("bob", order.Sell, "65000", "0.2", "bob-1", nil)
	s.place("bob", order.Sell, "65000", "0.4", "bob-2", nil)
	// Both close now, with a profit and a loss.
	s.place(alice, order.Sell, "66000", "0.4", "alice-2", func(p *trading.PlaceOrder) { p.ReduceOnly = true })
	s.place("bob", order.Buy, "66000", "0.1", "", nil)
	s.place("bob", order.Buy, "66000", "0.2", "bob-3", func(p *trading.PlaceOrder) { p.TimeInForce = order.FOK })
	s.do(trading.CommandPlaceOrder, &trading.PlaceOrder{CustomerCode: alice, Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Market, CashAmount: 100 * fixed.Unit})
	s.place(alice, order.Buy, "64000", "900", "alice-3", nil)
	resting := s.place("bob", order.Buy, "64000", "0.5", "bob-4", nil)
	amount := dec("0.25")
	s.do(trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: "bob", OrderCode: resting, Amount: &amount})
	s.do(trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: "bob", OrderCode: resting})
	for range 70 {
		s.place("bob", order.Buy, "60000", "0.001", "", nil)
	}
	s.do(trading.CommandCancelAll, &trading.CancelAll{CustomerCode: "bob"})
}

// liquidation has an account lose more than it has by a trade of its own, and another by a price that falls.
func (s *story) liquidation() {
	const symbol = "SOLUSDC_PERP"
	place := func(customer string, a order.Action, kind order.Type, price, amount string) {
		o := &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: a, Type: kind, Amount: dec(amount)}
		if kind == order.Limit {
			o.LimitPrice = dec(price)
		}
		s.do(trading.CommandPlaceOrder, o)
	}
	index := func(price string) {
		s.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: dec(price)})
	}
	s.do(trading.CommandDepositInsurance, &trading.DepositInsurance{Amount: 1000 * fixed.Unit, ReferenceID: "fund-1"})
	s.do(trading.CommandListInstrument, &trading.ListInstrument{Instrument: instrument(symbol)})
	index("65000")
	for _, code := range []string{"carl", "dora"} {
		s.do(trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: code})
		s.do(trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: 5500 * fixed.Unit})
	}
	place("bob", order.Sell, order.Limit, "65000", "1")
	place("carl", order.Buy, order.Limit, "65000", "1")
	index("62000")
	place("bob", order.Buy, order.Limit, "58900", "1")
	place("carl", order.Sell, order.Market, "", "1")
	place("bob", order.Sell, order.Limit, "62000", "0.5")
	place("dora", order.Buy, order.Limit, "62000", "0.5")
	index("50000")
}

// instants are of funding and settlement, and an index price that becomes stale.
func (s *story) instants() {
	const btc = "BTCUSDC_PERP"
	step := func() { s.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, s.state.Step(s.at, false)) }
	alice := s.state.CustomersOf("alpha")[0].Code
	// Both hold a position, and on both sides of the book there is more than 10,000 USDC.
	s.place("bob", order.Sell, "65000", "0.2", "", nil)
	s.place("bob", order.Sell, "65010", "0.1", "", nil)
	s.place(alice, order.Buy, "65010", "0.3", "", nil)
	s.place(alice, order.Buy, "64900", "1", "", nil)
	s.place(alice, order.Sell, "66100", "1", "", nil)
	s.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("64800.12345678")})
	stale := 5
	s.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: btc, IndexStaleSeconds: &stale})
	today := s.at.Time - s.at.Time%scalar.Day
	for _, hour := range []scalar.Time{1, 8} {
		s.at.Time = today + hour*scalar.Hour
		for s.state.Due(s.at.Time) != decide.Nothing {
			step()
		}
	}
	s.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: btc, Price: dec("65000")})
}

func (s *story) dueWork() {
	step := decide.Recorded{Type: "engine.step", Actor: decide.Engine}
	s.do(trading.CommandSetCancelAllAfter, &trading.SetCancelAllAfter{CustomerCode: "bob", TimeoutSeconds: 30})
	code := s.place("bob", order.Buy, "60000", "0.001", "bob-5", func(p *trading.PlaceOrder) {
		p.TimeInForce, p.ExpireTime = order.GTD, s.at.Time+10*scalar.Second
	})
	s.at.Time += 10 * scalar.Second
	s.fold(step, s.state.SetAside(s.at, "the step panicked"))
	s.do(decide.CommandPutBackDue, &decide.PutBackDue{Entry: "expiry/" + code.String()})
	s.fold(step, s.state.Step(s.at, false))
	s.at.Time += scalar.Minute
	s.fold(step, s.state.Step(s.at, false))
}

func (s *story) leverages() {
	for _, leverage := range []int{5, 0} {
		s.do(trading.CommandSetLeverage, &trading.SetLeverage{CustomerCode: "bob", Symbol: "BTCUSDC_PERP", Leverage: leverage})
	}
}

// activate puts the rules with a number in force, one after the other.
func (s *story) activate(last int) {
	operator := decide.Actor{Sub: "operator", Broker: "venue"}
	for rules := s.state.ActiveRules() + 1; rules <= last; rules++ {
		c := decide.Command{ID: scalar.ID{9}, Type: decide.CommandActivateRules, Payload: &decide.ActivateRules{Rules: rules}, Actor: operator}
		d, err := s.state.Decide(s.at, c)
		if err != nil {
			s.t.Fatal(err)
		}
		s.fold(c.Recorded(), d)
	}
}

// newestRules tells of a stop that fires, rests and is canceled, once the newest rules are in force.
func (s *story) newestRules() {
	s.activate(3)
	open := market.Open
	s.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: "BTCUSDC_PERP", Status: &open})
	s.do(trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: dec("65100")})
	alice, told := s.state.CustomersOf("alpha")[0].Code, len(s.events)
	s.place(alice, order.Buy, "60000", "0.001", "alice-7", func(p *trading.PlaceOrder) {
		p.Type, p.TriggerPrice = order.TakeProfitLimit, dec("65000")
	})
	s.place("bob", order.Buy, "64999", "0.1", "bob-7", nil)
	s.place(alice, order.Sell, "64999", "0.1", "alice-8", nil)
	s.do(trading.CommandCancelOrder, &trading.CancelOrder{CustomerCode: alice, ReferenceID: "alice-7"})
	for _, e := range s.events[told:] {
		if e, ok := e.(*trading.OrderCanceled); ok && e.ReferenceID == "alice-7" && !e.Triggered.IsZero() {
			return
		}
	}
	s.t.Error("no event tells when a stop fired")
}

// stops fire, and an order is refused with the leverage that came with it.
func (s *story) stops() {
	alice := s.state.CustomersOf("alpha")[0].Code
	s.place(alice, order.Sell, "63000", "0.1", "alice-4", func(p *trading.PlaceOrder) {
		p.Type, p.TriggerPrice = order.StopLossLimit, dec("65500")
	})
	s.do(trading.CommandPlaceOrder, &trading.PlaceOrder{CustomerCode: alice, Symbol: "BTCUSDC_PERP", Action: order.Sell, Amount: dec("0.1"),
		Type: order.TakeProfitStopLoss, StopLossPrice: dec("60000"), TakeProfitPrice: dec("70000"), ReferenceID: "alice-5"})
	s.place("bob", order.Buy, "65400", "0.2", "bob-6", nil)
	s.place(alice, order.Sell, "65400", "0.1", "alice-6", nil)
	s.place(alice, order.Buy, "64000", "900", "alice-whose-leverage-is-told-with-the-refusal", func(p *trading.PlaceOrder) { p.Leverage = 4 })
}
