package trading

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TestRandomCommands drives the rules with random commands of three brokers' customers on two instruments, close
// enough in price and amount that everything meets everything. The journal of the test checks every record (see
// journal_test.go); at the end a replay must give the same state, and canceling everything must release everything.
func TestRandomCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &randomVenue{T: t, testJournal: newTestJournal(t)}
		if rapid.Bool().Draw(t, "old rules") {
			r.testJournal = oldTestJournal(t)
		}
		if rapid.Bool().Draw(t, "small records") { // so that much goes on in steps
			r.state.limit.fills = rapid.IntRange(1, 4).Draw(t, "fills")
			r.state.limit.others = rapid.IntRange(1, 4).Draw(t, "other changes")
			r.state.limit.charges = rapid.IntRange(0, 3).Draw(t, "debts")
			r.single = rapid.Bool().Draw(t, "single steps")
			r.pause = scalar.Time(rapid.Int64Range(0, 1_000_000).Draw(t, "pause"))
		}
		r.open()
		for range rapid.IntRange(1, 120).Draw(t, "commands") {
			r.command()
		}
		r.checkReplay()
		r.close()
	})
}

// randomVenue makes up commands.
type randomVenue struct {
	*rapid.T
	*testJournal
	placed []order.Order
	keyed  bool // orders come with Idempotency-Keys
}

var (
	randomCustomers = []string{"a1", "a2", "b1", "c1", "c2"}
	randomSymbols   = []string{"BTCUSDC_PERP", "DOTUSDC_PERP"}
)

func (r *randomVenue) give(c decide.Command) {
	if c.Actor == (decide.Actor{}) {
		c.Actor = operator
	}
	r.unblock()
	records := len(r.records)
	customer, before := "", expected{}
	if r.state.Due(r.now) == decide.Nothing { // else what is due still shows, and counts no more
		switch payload := c.Payload.(type) {
		case *PlaceOrder:
			customer = payload.CustomerCode
		case *AmendOrder:
			customer = payload.CustomerCode
		}
	}
	if customer != "" {
		before = expect(r.state, customer)
	}
	d, err := r.do(c) // which checks that Decide changes nothing
	if err != nil && len(r.records) != records {
		r.t.Fatalf("a refusal left a record")
	}
	if customer != "" && err == nil && d.Outcome == decide.Accepted && !overridden(d.Events) && r.state.Due(r.now) == decide.Nothing {
		checkAccepted(r.t, r.state, customer, before)
	}
	for _, e := range d.Events {
		if o, ok := e.(OrderEvent); ok && c.Type == CommandPlaceOrder && o.After().CustomerCode != FundCode {
			r.placed = append(r.placed, *o.After())
		}
	}
}

// overridden reports whether a leverage came into force, which is judged for itself.
func overridden(events []decide.Event) bool {
	for _, e := range events {
		if _, ok := e.(*LeverageSet); ok {
			return true
		}
	}
	return false
}

func (r *randomVenue) open() {
	for n, symbol := range randomSymbols {
		i := btc()
		i.Symbol = symbol
		if n == 1 {
			i.PriceTick, i.AmountStep, i.ContractSize = fixed.Decimal{Coef: 5, Scale: 1}, fixed.Decimal{Coef: 1}, fixed.Decimal{Coef: 7, Scale: 3}
			i.MinAmount = fixed.Decimal{Coef: 1}
			i.Tiers = []market.Tier{{InitMarginReq: i.InitMarginReq, MaintMarginReq: i.MaintMarginReq},
				{NotionalFrom: 3 * fixed.Unit / 2, InitMarginReq: fixed.Decimal{Coef: 101234, Scale: 4}, MaintMarginReq: fixed.Decimal{Coef: 5, Scale: 0}},
				{NotionalFrom: 20 * fixed.Unit, InitMarginReq: fixed.Decimal{Coef: 50}, MaintMarginReq: fixed.Decimal{Coef: 25}}}
		}
		r.give(decide.Command{Type: CommandListInstrument, Payload: &ListInstrument{Instrument: i}})
		r.give(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: 100}}})
	}
	for _, code := range randomCustomers {
		r.give(decide.Command{Type: CommandRegisterCustomer, Payload: &RegisterCustomer{CustomerCode: code, Broker: code[:1]}})
		r.give(decide.Command{Type: CommandMakeDeposit, Payload: &MakeDeposit{CustomerCode: code, Currency: currency, Amount: 1000 * fixed.Unit}})
	}
}

func (r *randomVenue) customer() (string, decide.Actor) {
	code := rapid.SampledFrom(randomCustomers).Draw(r.T, "customer")
	return code, decide.Actor{Sub: "s", Broker: code[:1]}
}

func (r *randomVenue) symbol() string { return rapid.SampledFrom(randomSymbols).Draw(r.T, "symbol") }

func (r *randomVenue) price() fixed.Decimal {
	return fixed.Decimal{Coef: rapid.Int64Range(190, 210).Draw(r.T, "price") * 5, Scale: 1}
}

func (r *randomVenue) amount() fixed.Decimal {
	return fixed.Decimal{Coef: rapid.Int64Range(1, 40).Draw(r.T, "amount")}
}

func (r *randomVenue) command() {
	r.now += scalar.Time(rapid.Int64Range(0, 2_000_000).Draw(r.T, "pause"))
	if rapid.Bool().Draw(r.T, "drain") {
		r.drain()
	}
	switch n := rapid.IntRange(0, 34).Draw(r.T, "command"); {
	case n == 34:
		r.importFile()
	case n < 16:
		r.place()
	case n < 20:
		r.amend()
	case n < 22:
		r.cancel()
	case n == 22:
		code, actor := r.customer()
		r.give(decide.Command{Type: CommandCancelAll, Actor: actor, Payload: &CancelAll{CustomerCode: code}})
	case n == 23:
		code, actor := r.customer()
		r.give(decide.Command{Type: CommandSetCancelAllAfter, Actor: actor, Payload: &SetCancelAllAfter{CustomerCode: code, TimeoutSeconds: rapid.IntRange(0, 5).Draw(r.T, "timeout")}})
	case n >= 30:
		r.give(decide.Command{Payload: &ChangeInstrument{Symbol: r.symbol(), Status: some(rapid.SampledFrom([]market.Status{
			market.Open, market.Open, market.PostOnly, market.TradeHalt}).Draw(r.T, "status"))}})
	case n < 26:
		r.give(decide.Command{Type: CommandSetIndexPrice, Payload: &SetIndexPrice{Symbol: r.symbol(), Price: fixed.Decimal{Coef: rapid.Int64Range(900_000, 1_100_000).Draw(r.T, "index"), Scale: 4}}})
	case n == 26:
		code, _ := r.customer()
		fee := fixed.Decimal{Coef: rapid.Int64Range(-50_000, 50_000).Draw(r.T, "maker"), Scale: 4}
		r.give(decide.Command{Type: CommandSetFeeProfile, Payload: &SetFeeProfile{CustomerCode: code, Symbol: r.symbol(), MakerFee: fee,
			TakerFee: fixed.Decimal{Coef: rapid.Int64Range(0, 50_000).Draw(r.T, "taker"), Scale: 4}, Operator: true}})
	case n == 27:
		code, _ := r.customer()
		r.give(decide.Command{Type: CommandSetMarginProfile, Payload: &SetMarginProfile{CustomerCode: code, Leverage: rapid.IntRange(1, 20).Draw(r.T, "leverage")}})
	case n == 28:
		code, actor := r.customer()
		r.give(decide.Command{Type: CommandSetLeverage, Actor: actor, Payload: &SetLeverage{CustomerCode: code, Symbol: r.symbol(), Leverage: rapid.IntRange(0, 13).Draw(r.T, "leverage")}})
	case n < 31:
		r.withdraw()
	default:
		r.session()
	}
}

// session opens, keeps or ends one of a few sessions.
func (r *randomVenue) session() {
	id, g := r.sessionID(), scalar.ID{0xa, byte(rapid.IntRange(0, 1).Draw(r.T, "gateway"))}
	p := rapid.SampledFrom([]decide.Payload{&OpenSession{Session: id, Gateway: g, Username: "u", Broker: "a"}, &KeepGateway{Gateway: g},
		&EndSession{Session: id}}).Draw(r.T, "session")
	r.give(decide.Command{Type: p.CommandType(), Actor: ofNodes, Payload: p})
}

func (r *randomVenue) sessionID() scalar.ID {
	return scalar.ID{0xb, byte(rapid.IntRange(0, 2).Draw(r.T, "session"))}
}

func (r *randomVenue) place() {
	code, actor := r.customer()
	payload := &PlaceOrder{CustomerCode: code, Symbol: r.symbol(), Action: rapid.SampledFrom([]order.Action{order.Buy, order.Sell}).Draw(r.T, "action"),
		Type: order.Limit, Amount: r.amount(), LimitPrice: r.price(), ReduceOnly: rapid.IntRange(0, 3).Draw(r.T, "reduce only") == 0}
	switch rapid.IntRange(0, 12).Draw(r.T, "kind") {
	case 10, 11, 12:
		r.conditional(payload)
	case 0, 1:
		payload.Type, payload.LimitPrice = order.Market, fixed.Decimal{}
	case 2:
		payload.TimeInForce = order.IOC
	case 3:
		payload.TimeInForce = order.FOK
	case 4, 5:
		payload.TimeInForce, payload.ExpireTime = order.GTD, r.now+scalar.Time(rapid.Int64Range(1, 10_000_000).Draw(r.T, "expires"))
	case 6:
		payload.PostOnly = true
	case 7:
		payload.Amount, payload.CashAmount = fixed.Decimal{}, fixed.Money(rapid.Int64Range(1, 5_000).Draw(r.T, "cash"))*fixed.Unit/3
	}
	if rapid.IntRange(0, 5).Draw(r.T, "with leverage") == 0 {
		payload.Leverage = rapid.IntRange(1, 13).Draw(r.T, "leverage")
	}
	c := decide.Command{Type: CommandPlaceOrder, Actor: actor, Payload: payload}
	if rapid.IntRange(0, 3).Draw(r.T, "with reference") == 0 {
		payload.ReferenceID = fmt.Sprint("r", rapid.IntRange(0, 9).Draw(r.T, "reference"))
		c.Metadata.Fingerprint = rapid.SampledFrom([]string{"00", "01"}).Draw(r.T, "fingerprint")
	}
	if len(r.state.sessions) > 0 && rapid.Bool().Draw(r.T, "over a session") {
		c.Metadata.Session = r.sessionID()
	}
	if r.keyed && rapid.IntRange(0, 3).Draw(r.T, "with key") == 0 {
		c.Metadata.Key, c.Metadata.Fingerprint = fmt.Sprint("k", rapid.IntRange(0, 9).Draw(r.T, "key")), "0f"
	}
	r.give(c)
}

// conditional makes the order one that waits for a price.
func (r *randomVenue) conditional(payload *PlaceOrder) {
	payload.Type = rapid.SampledFrom([]order.Type{order.StopLoss, order.StopLossLimit, order.TakeProfit, order.TakeProfitLimit,
		order.TakeProfitStopLoss}).Draw(r.T, "type")
	if !payload.Type.Limited() {
		payload.LimitPrice = fixed.Decimal{}
	}
	if payload.Type == order.TakeProfitStopLoss {
		payload.StopLossPrice, payload.TakeProfitPrice = r.price(), r.price()
		if sell := payload.Action == order.Sell; sell != (payload.StopLossPrice.Cmp(payload.TakeProfitPrice) < 0) {
			payload.StopLossPrice, payload.TakeProfitPrice = payload.TakeProfitPrice, payload.StopLossPrice
		}
	} else {
		payload.TriggerPrice = r.price()
	}
	payload.TimeInForce = rapid.SampledFrom([]order.TimeInForce{"", order.GTC, order.IOC, order.FOK, order.GTD}).Draw(r.T, "in force")
	if payload.TimeInForce == order.GTD {
		payload.ExpireTime = r.now + scalar.Time(rapid.Int64Range(1, 10_000_000).Draw(r.T, "expires"))
	}
	payload.PostOnly = payload.Type.Limited() && (payload.TimeInForce == "" || payload.TimeInForce.Rests()) && rapid.Bool().Draw(r.T, "post only")
}

// order picks one of the orders that were placed, live or not.
func (r *randomVenue) order() (order.Order, bool) {
	if len(r.placed) == 0 {
		return order.Order{}, false
	}
	return r.placed[rapid.IntRange(0, len(r.placed)-1).Draw(r.T, "order")], true
}

func (r *randomVenue) amend() {
	o, ok := r.order()
	if !ok {
		return
	}
	payload := &AmendOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code}
	if o.Type.Limited() && rapid.Bool().Draw(r.T, "amend price") {
		payload.LimitPrice = some(r.price())
	}
	for _, p := range []struct {
		of    bool
		price **fixed.Decimal
	}{{o.TriggerPriceType == order.TradePrice, &payload.TriggerPrice}, {o.Type == order.TakeProfitStopLoss, &payload.StopLossPrice},
		{o.Type == order.TakeProfitStopLoss, &payload.TakeProfitPrice}} {
		if p.of && rapid.IntRange(0, 2).Draw(r.T, "amend trigger") == 0 {
			*p.price = some(r.price())
		}
	}
	if rapid.Bool().Draw(r.T, "amend amount") {
		payload.Amount = some(r.amount())
	}
	if o.TimeInForce == order.GTD && rapid.Bool().Draw(r.T, "amend expiry") {
		payload.ExpireTime = some(r.now + scalar.Time(rapid.Int64Range(1, 10_000_000).Draw(r.T, "expires")))
	}
	r.give(decide.Command{Type: CommandAmendOrder, Actor: decide.Actor{Sub: "s", Broker: o.Broker}, Payload: payload})
}

func (r *randomVenue) cancel() {
	if o, ok := r.order(); ok {
		r.give(decide.Command{Type: CommandCancelOrder, Actor: decide.Actor{Sub: "s", Broker: o.Broker}, Payload: &CancelOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code}})
	}
}

func (r *randomVenue) withdraw() {
	code, _ := r.customer()
	r.give(decide.Command{Type: CommandRequestWithdrawal, Payload: &RequestWithdrawal{CustomerCode: code, Currency: currency, Amount: fixed.Money(rapid.Int64Range(1, 100e8).Draw(r.T, "amount"))}})
	last := r.records[len(r.records)-1].decode(r.t)
	if e, ok := last[0].(*WithdrawalRequested); ok {
		if rapid.Bool().Draw(r.T, "complete") {
			r.give(decide.Command{Type: CommandCompleteWithdrawal, Payload: &CompleteWithdrawal{Code: e.Code}})
		} else {
			r.give(decide.Command{Type: CommandCancelWithdrawal, Payload: &CancelWithdrawal{Code: e.Code}})
		}
	}
}

// close cancels everything and checks that nothing stays reserved.
func (r *randomVenue) close() {
	r.drain()
	for _, code := range randomCustomers {
		r.give(decide.Command{Type: CommandCancelAll, Actor: decide.Actor{Sub: "s", Broker: code[:1]}, Payload: &CancelAll{CustomerCode: code}})
		for _, h := range r.state.accounts[code].positions {
			if h.bids != 0 || h.asks != 0 || len(h.reduceOnly) != 0 {
				r.t.Fatalf("%s has no orders, and %s and %s reserved", code, h.bids, h.asks)
			}
		}
		if s, _ := r.state.Summary(code); s.PendingWithdrawal != 0 {
			r.t.Fatalf("%s has %s pending", code, s.PendingWithdrawal)
		}
	}
	if live := r.state.orders.Len() - r.state.fund.liveOrders; live != 0 { // the insurance fund's stay
		r.t.Fatalf("%d orders are live", live)
	}
}
