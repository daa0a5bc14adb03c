package reference_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

var (
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	nodes    = decide.Actor{System: "node"}
	brokers  = []string{"alpha", "beta", "gamma"}
)

// crowd is everybody who trades: makers who quote, takers, gamblers who take all the leverage that they get, and the
// operator, who halts, changes and delists. What they do is chosen by the seed and by what the market shows them.
type crowd struct {
	*venue
	random    *rand.Rand
	makers    []string
	traders   []string
	products  []*product
	sessions  []scalar.ID // of the one gateway
	gateway   scalar.ID
	heard     scalar.Time // when the gateway says next that it lives
	dies      bool        // and it will not
	calm      bool        // nobody crashes or halts anything any more
	withdrawn []scalar.ID
	named     int
}

// product is an instrument with its index price.
type product struct {
	market.Instrument
	index  float64
	bias   float64     // by which the book stands from the index
	empty  scalar.Time // no quotes until then
	silent scalar.Time // no index price until then
	drift  float64     // of a crash, a second
	until  scalar.Time // of the crash
	halted scalar.Time // by the operator, until then
	old    bool        // it is to be delisted
}

func decimal(text string) fixed.Decimal {
	d, err := fixed.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func tier(from fixed.Money, initial, maintenance string) market.Tier {
	return market.Tier{NotionalFrom: from * fixed.Unit, InitMarginReq: decimal(initial), MaintMarginReq: decimal(maintenance)}
}

// listed are the instruments: of different precision, tiers, funding intervals and guards, and one with nothing but orders.
func listed() []*product {
	make := func(name string, index float64, tick, step, contract string, funding, stale int, tiers ...market.Tier) *product {
		return &product{index: index, Instrument: market.Instrument{Symbol: name + "USDC_PERP", Underlying: name, QuoteCurrency: "USDC",
			SettlementCurrency: "USDC", PriceTick: decimal(tick), AmountStep: decimal(step), MinAmount: decimal(step), MaxAmount: decimal("100000"),
			ContractSize: decimal(contract), InitMarginReq: tiers[0].InitMarginReq, MaintMarginReq: tiers[0].MaintMarginReq, MaxLeverage: 13,
			FundingIntervalSeconds: funding, PriceBand: decimal("5.00"), LimitBand: decimal("20.00"), MakerFee: decimal("2"),
			TakerFee: decimal("5"), IndexStaleSeconds: stale, Tiers: tiers}}
	}
	return []*product{
		make("BTC", 65_000, "0.1", "0.001", "1", 3600, 10, tier(0, "5.00", "2.50")),
		make("ETH", 3_000, "0.01", "0.01", "1", 60, 0, tier(0, "2.00", "1.00"), tier(20_000, "5.00", "2.50"), tier(100_000, "20.00", "10.00")),
		make("SOL", 150, "0.005", "1", "0.1", 300, 6, tier(0, "7.00", "3.5000"), tier(5_000, "10.1234", "5.0001")),
		make("ODD", 27.3, "0.5", "1", "0.007", 900, 20, tier(0, "10.00", "6.00")),
		make("OLD", 10, "0.01", "0.1", "1", 3600, 0, tier(0, "5.00", "2.50")),
	}
}

// openCrowd opens a venue that follows rules 1 or, for an odd seed, the given rules.
func openCrowd(v *venue, seed uint64, accounts, rules int) *crowd {
	c := &crowd{venue: v, random: rand.New(rand.NewPCG(seed, 2)), products: listed()}
	for next := 2; seed%2 == 1 && next <= rules; next++ {
		v.give(operator, decide.Metadata{}, &decide.ActivateRules{Rules: next})
	}
	for n, p := range c.products {
		p.old = n == len(c.products)-1
		if seed%2 == 1 && rules >= 6 {
			p.MaxLeverage = min(p.MaxLeverage, p.PermittedLeverage())
		}
		v.give(operator, decide.Metadata{}, &trading.ListInstrument{Instrument: p.Instrument})
	}
	v.give(operator, decide.Metadata{}, &trading.DepositInsurance{Amount: 3_000 * fixed.Unit, ReferenceID: "first"})
	for n := range accounts {
		code, deposit := fmt.Sprintf("t%03d", n), fixed.Money(100*math.Pow(200, c.random.Float64()))
		switch {
		case n < accounts/20:
			code, deposit = fmt.Sprintf("m%03d", n), 400_000
			c.makers = append(c.makers, code)
		case n < accounts/15:
			deposit = 1_000_000
			fallthrough
		default:
			c.traders = append(c.traders, code)
		}
		v.give(c.actor(code), decide.Metadata{}, &trading.RegisterCustomer{CustomerCode: code})
		v.give(operator, decide.Metadata{Fingerprint: "d"}, &trading.MakeDeposit{CustomerCode: code, Currency: "USDC", Amount: deposit * fixed.Unit, ReferenceID: "first"})
		v.drain()
		c.fees(code, n)
	}
	v.drain()
	return c
}

// fees gives every other maker a rebate that is more than what some takers pay.
func (c *crowd) fees(code string, n int) {
	for _, p := range c.products {
		switch {
		case n < len(c.makers) && n%2 == 0:
			c.give(operator, decide.Metadata{}, &trading.SetFeeProfile{CustomerCode: code, Symbol: p.Symbol, MakerFee: decimal("-1.5"), TakerFee: decimal("4"), Operator: true})
		case n%5 == 1:
			c.give(operator, decide.Metadata{}, &trading.SetFeeProfile{CustomerCode: code, Symbol: p.Symbol, MakerFee: decimal("1"), TakerFee: decimal("0.3"), Operator: true})
		}
	}
}

func (c *crowd) actor(code string) decide.Actor {
	return decide.Actor{Sub: "s-" + code, Broker: brokers[int(code[len(code)-1])%len(brokers)]}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func (c *crowd) chance(percent float64) bool { return c.random.Float64()*100 < percent }

// second has everybody do what they do in the next second.
func (c *crowd) second() {
	c.t.Helper()
	type act struct {
		at scalar.Time
		do func(at scalar.Time)
	}
	var acts []act
	later := func(do func(scalar.Time)) {
		acts = append(acts, act{c.now + scalar.Time(c.random.Int64N(int64(scalar.Second))), do})
	}
	for _, p := range c.products {
		later(func(at scalar.Time) { c.indexed(at, p) })
		if c.chance(10) {
			later(func(at scalar.Time) { c.indexed(at, p) })
		}
	}
	for _, m := range c.makers {
		if c.chance(20) {
			if p := pick(c.random, c.products...); !p.old {
				later(func(at scalar.Time) { c.quote(at, m, p) })
			}
		}
	}
	for range 6 + c.random.IntN(12) {
		later(func(at scalar.Time) { c.trade(at, pick(c.random, c.traders...), pick(c.random, c.products...)) })
	}
	if c.chance(80) {
		later(c.manage)
	}
	if c.now >= c.heard {
		later(c.connect)
	}
	if !c.calm && c.chance(15) {
		later(c.operate)
	}
	end := c.now + scalar.Second
	slices.SortStableFunc(acts, func(a, b act) int { return int(a.at - b.at) })
	for _, a := range acts {
		c.until(a.at) // what they choose, they choose by what they see then
		if len(c.queue) < 200 {
			a.do(max(a.at, c.now))
		}
	}
	c.until(end)
}

// indexed moves an index price, in a crash far, and gives it to the venue.
func (c *crowd) indexed(at scalar.Time, p *product) {
	p.index *= math.Exp(0.0004*c.random.NormFloat64() + map[bool]float64{true: p.drift}[at < p.until])
	first := listed()[slices.Index(c.products, p)].index
	p.index = min(max(p.index, first/4), first*4)
	p.bias = 0.98*p.bias + 0.0008*c.random.NormFloat64()
	if at < p.silent || p.old && p.Status == market.Withdrawn {
		return
	}
	digits := pick(c.random, 2, 4, 8)
	scale := math.Pow10(digits)
	c.at(at, operator, decide.Metadata{}, &trading.SetIndexPrice{Symbol: p.Symbol, Price: fixed.Decimal{Coef: int64(p.index * scale), Scale: uint8(digits)}})
}

// price is the index away by a part, on the tick.
func (p *product) price(away float64) fixed.Decimal {
	tick := float64(p.PriceTick.Coef) / math.Pow10(int(p.PriceTick.Scale))
	return fixed.Decimal{Coef: max(1, int64(p.index*(1+p.bias+away)/tick)) * p.PriceTick.Coef, Scale: p.PriceTick.Scale}
}

// round is a price that many have in mind, of three digits.
func (p *product) round(away float64) fixed.Decimal {
	grid := math.Pow(10, math.Floor(math.Log10(p.index))-2)
	tick := float64(p.PriceTick.Coef) / math.Pow10(int(p.PriceTick.Scale))
	at := math.Round(p.index*(1+p.bias+away)/grid) * grid
	return fixed.Decimal{Coef: max(1, int64(math.Round(at/tick))) * p.PriceTick.Coef, Scale: p.PriceTick.Scale}
}

// amount is what a notional buys, in steps.
func (p *product) amount(notional float64) fixed.Decimal {
	step := float64(p.AmountStep.Coef) / math.Pow10(int(p.AmountStep.Scale))
	size := float64(p.ContractSize.Coef) / math.Pow10(int(p.ContractSize.Scale))
	return fixed.Decimal{Coef: max(1, int64(notional/p.index/size/step)) * p.AmountStep.Coef, Scale: p.AmountStep.Scale}
}

// quote has a maker take its orders back, change them, or put new ones into the book, by one batch.
func (c *crowd) quote(at scalar.Time, maker string, p *product) {
	by := c.actor(maker)
	var mine []order.Order
	for _, o := range c.state.OpenOrders(maker) {
		if o.Symbol == p.Symbol {
			mine = append(mine, o)
		}
	}
	switch {
	case at < p.empty && len(mine) == 0:
		return
	case at < p.empty || len(mine) > 120:
		c.at(at, by, decide.Metadata{}, &trading.CancelAll{CustomerCode: maker, Symbol: p.Symbol})
		if at < p.empty {
			return
		}
	case len(mine) > 20 && c.chance(70):
		for n := range min(len(mine), 15) {
			if o := mine[n]; c.chance(50) {
				c.amend(at, by, o, p)
			} else {
				c.at(at, by, decide.Metadata{}, &trading.CancelOrder{CustomerCode: maker, OrderCode: o.Code})
			}
		}
		return
	}
	key := fmt.Sprint("k", c.commands)
	small := c.chance(40) // many small ones, so that who takes them needs more than a record
	for n := range 4 + c.random.IntN(map[bool]int{true: 46, false: 10}[small]) {
		side := pick(c.random, order.Buy, order.Sell)
		away := 0.0003 + 0.004*c.random.Float64()*c.random.Float64()*float64(1+n%4)
		if side == order.Buy {
			away = -away
		}
		notional := 200 + 12_000*c.random.Float64()
		if small {
			notional /= 100
		}
		o := &trading.PlaceOrder{CustomerCode: maker, Symbol: p.Symbol, Action: side, Type: order.Limit, Amount: p.amount(notional),
			LimitPrice: p.price(away), PostOnly: c.chance(60)}
		if c.chance(30) {
			o.TimeInForce, o.ExpireTime = order.GTD, at+scalar.Time(1+c.random.Int64N(20_000_000))
		}
		kept := decide.Metadata{Key: decide.BatchKey(key, "f0", n), Fingerprint: fmt.Sprint("f", n)}
		if len(c.sessions) > 0 && c.chance(50) {
			kept.Session = pick(c.random, c.sessions...)
		}
		c.at(at, by, kept, o)
		if c.chance(1) { // it did not hear the answer
			c.at(at, by, kept, o)
		}
	}
}

func (c *crowd) amend(at scalar.Time, by decide.Actor, o order.Order, p *product) {
	change := &trading.AmendOrder{CustomerCode: o.CustomerCode, OrderCode: o.Code}
	away := 0.006 * (c.random.Float64() - 0.5)
	if o.Type.Limited() && c.chance(60) {
		price := p.price(away)
		change.LimitPrice = &price
	}
	if o.TriggerPrice.Coef != 0 && c.chance(40) {
		price := p.price(2 * away)
		change.TriggerPrice = &price
	}
	if o.Type == order.TakeProfitStopLoss && c.chance(50) {
		price := p.price(-math.Abs(away))
		change.StopLossPrice = &price
	}
	if o.TimeInForce == order.GTD && c.chance(30) {
		t := at + scalar.Time(1+c.random.Int64N(30_000_000))
		change.ExpireTime = &t
	}
	if change.LimitPrice == nil || c.chance(40) {
		amount := o.Amount
		amount.Coef = max(p.AmountStep.Coef, int64(float64(amount.Coef)*(0.5+c.random.Float64()))/p.AmountStep.Coef*p.AmountStep.Coef)
		change.Amount = &amount
	}
	c.at(at, by, decide.Metadata{}, change)
}

// trade has somebody enter an order: to take, to wait for a price, to close what there is, or to rest.
func (c *crowd) trade(at scalar.Time, who string, p *product) {
	s, _ := c.state.Summary(who)
	held, _ := c.state.Position(who, p.Symbol)
	if p.old && !c.chance(20) {
		return
	}
	o := &trading.PlaceOrder{CustomerCode: who, Symbol: p.Symbol, Action: pick(c.random, order.Buy, order.Sell), Type: order.Market}
	available := max(0, float64(s.AvailableMargin)/1e8)
	notional := available * (0.2 + 12*c.random.Float64()*c.random.Float64())
	if c.chance(40) {
		notional = available * 13 * (0.5 + 0.55*c.random.Float64())
		o.Leverage = pick(c.random, 5, 10, 13, 13)
	}
	if c.chance(4) {
		notional = 2_000_000 * c.random.Float64() * c.random.Float64() // more than it has, or a whale's
		who, o.Leverage = c.traders[c.random.IntN(len(c.traders)/15)], 0
		o.CustomerCode = who
	}
	o.Amount = p.amount(notional)
	switch c.random.IntN(20) {
	case 0, 1, 2:
		o.Type, o.LimitPrice, o.TimeInForce = order.Limit, p.price(0.004*(c.random.Float64()-0.5)), pick(c.random, order.IOC, order.FOK)
	case 3, 4:
		o.Type, o.LimitPrice = order.Limit, p.price(0.02*(c.random.Float64()-0.5))
	case 5:
		o.Amount, o.CashAmount = fixed.Decimal{}, fixed.Money(max(0.01, notional)*1e8)
		if c.chance(50) {
			o.Type, o.LimitPrice = order.Limit, p.price(0.01*(c.random.Float64()-0.5))
		}
	case 6, 7, 8, 9, 10:
		c.conditional(at, o, p, held)
	case 11, 12:
		c.close(o, p, held)
	case 13:
		o.Type, o.LimitPrice = order.Limit, p.price(0.5*(c.random.Float64()-0.5))
	}
	if p.old { // nobody trades it
		away := 0.05 + 0.1*c.random.Float64()
		if o.Action == order.Buy {
			away = -away
		}
		*o = trading.PlaceOrder{CustomerCode: who, Symbol: p.Symbol, Action: o.Action, Type: order.Limit, Amount: decimal("0.1"), LimitPrice: p.price(away), PostOnly: true}
	}
	kept := decide.Metadata{Fingerprint: fmt.Sprint("o", c.commands)}
	if c.chance(20) {
		c.named++
		o.ReferenceID = fmt.Sprint("ref-", c.named)
	}
	c.at(at, c.actor(who), kept, o)
}

// conditional makes an order one that waits for a price.
func (c *crowd) conditional(at scalar.Time, o *trading.PlaceOrder, p *product, held trading.Position) {
	if held.Amount.Coef != 0 && c.chance(70) {
		o.Action, o.Amount, o.ReduceOnly = order.Sell, held.Amount, c.chance(70)
		if held.Amount.Coef < 0 {
			o.Action, o.Amount = order.Buy, held.Amount.Neg()
		}
	}
	away := 0.0002 + 0.01*c.random.Float64()*c.random.Float64()
	if o.Action == order.Sell {
		away = -away // of the loss
	}
	price := p.price
	if c.chance(50) {
		price, away = p.round, away*2
	}
	switch o.Type = pick(c.random, order.StopLoss, order.StopLossLimit, order.TakeProfit, order.TakeProfitLimit, order.TakeProfitStopLoss, order.TakeProfitStopLoss); o.Type {
	case order.StopLoss, order.StopLossLimit:
		o.TriggerPrice = price(away)
	case order.TakeProfit, order.TakeProfitLimit:
		o.TriggerPrice = price(-away)
	default:
		if c.chance(50) {
			away /= 10 // so that both are passed while nothing fires
		}
		o.StopLossPrice, o.TakeProfitPrice = price(away), price(-away*c.random.Float64()*2)
	}
	if o.Type.Limited() {
		o.LimitPrice = p.price(away * 3 * (c.random.Float64() - 0.3))
		o.TimeInForce = pick(c.random, "", order.GTC, order.IOC, order.FOK, order.GTD)
		o.PostOnly = (o.TimeInForce == "" || o.TimeInForce.Rests()) && c.chance(20)
	} else {
		o.TimeInForce = pick(c.random, "", "", order.GTC, order.GTD)
	}
	if o.TimeInForce == order.GTD {
		o.ExpireTime = at + scalar.Time(1+c.random.Int64N(60_000_000))
	}
}

// close makes an order one that closes what is held.
func (c *crowd) close(o *trading.PlaceOrder, p *product, held trading.Position) {
	if held.Amount.Coef == 0 {
		return
	}
	o.Action, o.Amount, o.Leverage, o.ReduceOnly = order.Sell, held.Amount, 0, c.chance(60)
	if held.Amount.Coef < 0 {
		o.Action, o.Amount = order.Buy, held.Amount.Neg()
	}
	if c.chance(40) {
		o.Type, o.LimitPrice = order.Limit, p.price(0.004*(c.random.Float64()-0.5))
	}
}

// manage has somebody do something about an account: money, leverage, fees, sessions, cancels.
func (c *crowd) manage(at scalar.Time) {
	who := pick(c.random, append(c.traders, c.makers...)...)
	by, p := c.actor(who), pick(c.random, c.products...)
	s, _ := c.state.Summary(who)
	switch c.random.IntN(14) {
	case 0, 1:
		c.at(at, operator, decide.Metadata{}, &trading.MakeDeposit{CustomerCode: who, Currency: "USDC", Amount: fixed.Money(1 + c.random.Int64N(3_000_00000000))})
	case 2, 3:
		most := max(2, int64(float64(s.Withdrawable)*0.7))
		c.at(at, operator, decide.Metadata{}, &trading.RequestWithdrawal{CustomerCode: who, Currency: "USDC", Amount: fixed.Money(1 + c.random.Int64N(most))})
	case 4, 5:
		c.payOut(at)
	case 6:
		c.at(at, by, decide.Metadata{}, &trading.SetLeverage{CustomerCode: who, Symbol: p.Symbol, Leverage: c.random.IntN(14)})
	case 7:
		maker, taker := fixed.Decimal{Coef: c.random.Int64N(80_000) - 40_000, Scale: 4}, fixed.Decimal{Coef: c.random.Int64N(100_000), Scale: 4}
		c.at(at, operator, decide.Metadata{}, &trading.SetFeeProfile{CustomerCode: who, Symbol: p.Symbol, MakerFee: maker, TakerFee: taker, Operator: true})
	case 8:
		c.at(at, by, decide.Metadata{}, &trading.SetFeeProfile{CustomerCode: who, Symbol: p.Symbol, MakerFee: decimal("1.5"), TakerFee: decimal("6")})
	case 9:
		change := &trading.SetMarginProfile{CustomerCode: who, Leverage: 8 + c.random.IntN(10)}
		if c.chance(30) {
			change = &trading.SetMarginProfile{CustomerCode: who, InitialMargin: decimal("8.1234"), MaintenanceMargin: decimal("3.2001")}
		}
		c.at(at, operator, decide.Metadata{}, change)
	case 10:
		c.at(at, by, decide.Metadata{}, &trading.SetCancelAllAfter{CustomerCode: who, TimeoutSeconds: c.random.IntN(20)})
	case 11:
		c.at(at, by, decide.Metadata{}, &trading.CancelAll{CustomerCode: who})
	default:
		orders := c.state.OpenOrders(who)
		if len(orders) == 0 {
			return
		}
		o := pick(c.random, orders...)
		for _, p := range c.products {
			if p.Symbol == o.Symbol && c.chance(70) {
				c.amend(at, by, o, p)
				return
			}
		}
		c.at(at, by, decide.Metadata{}, &trading.CancelOrder{CustomerCode: who, ReferenceID: o.ReferenceID})
	}
}

// payOut completes or cancels a withdrawal that waits.
func (c *crowd) payOut(at scalar.Time) {
	c.withdrawn = c.withdrawn[:0]
	for _, code := range c.auditor.Withdrawals() {
		if id, err := scalar.ParseID(code); err == nil {
			c.withdrawn = append(c.withdrawn, id)
		}
	}
	if len(c.withdrawn) == 0 {
		return
	}
	code := pick(c.random, c.withdrawn...)
	if c.chance(75) {
		c.at(at, operator, decide.Metadata{}, &trading.CompleteWithdrawal{Code: code})
	} else {
		c.at(at, operator, decide.Metadata{}, &trading.CancelWithdrawal{Code: code})
	}
}

// connect says that the gateway lives, and opens and ends its sessions. Now and then it falls silent, and another comes.
func (c *crowd) connect(at scalar.Time) {
	if c.dies || c.gateway.IsZero() {
		c.named++
		c.gateway, c.sessions, c.dies = scalar.ID{0xa, byte(c.named >> 8), byte(c.named)}, nil, false
	}
	c.heard = at + 5*scalar.Second
	switch {
	case len(c.sessions) > 0 && c.chance(15):
		c.dies, c.heard = true, at+20*scalar.Second
	case len(c.sessions) > 2:
		c.at(at, nodes, decide.Metadata{}, &trading.EndSession{Session: c.sessions[0]})
		c.sessions = c.sessions[1:]
		fallthrough
	case len(c.sessions) > 0 && c.chance(60):
		c.at(at, nodes, decide.Metadata{}, &trading.KeepGateway{Gateway: c.gateway})
	default:
		c.named++
		id := scalar.ID{0xb, byte(c.named >> 16), byte(c.named >> 8), byte(c.named)}
		c.sessions = append(c.sessions, id)
		c.at(at, nodes, decide.Metadata{}, &trading.OpenSession{Session: id, Gateway: c.gateway, Username: "u", Broker: brokers[0]})
	}
}

// operate has prices crash, feeds fall silent, and the operator halt, open, change or delist an instrument.
func (c *crowd) operate(at scalar.Time) {
	p := pick(c.random, c.products...)
	switch c.random.IntN(12) {
	case 10, 11:
		p.empty = at + scalar.Time(5+c.random.IntN(20))*scalar.Second
		fallthrough
	case 0, 1, 2:
		p.drift = (0.004 + 0.03*c.random.Float64()) * float64(pick(c.random, -1, -1, 1))
		p.until = at + scalar.Time(1+c.random.IntN(10))*scalar.Second
	case 3, 4:
		p.silent = at + scalar.Time(3+c.random.IntN(25))*scalar.Second
	case 5, 6:
		c.status(at, p, pick(c.random, market.PostOnly, market.CancelOnly, market.TradeHalt))
		p.halted = at + scalar.Time(1+c.random.IntN(25))*scalar.Second
	case 7:
		tiers := slices.Clone(p.Tiers)
		for n := range tiers {
			tiers[n].MaintMarginReq = fixed.Decimal{Coef: tiers[n].InitMarginReq.Coef * int64(30+c.random.IntN(40)) / 100, Scale: tiers[n].InitMarginReq.Scale}
		}
		c.at(at, operator, decide.Metadata{}, &trading.ChangeInstrument{Symbol: p.Symbol, Tiers: tiers})
	case 8:
		seconds, fee := pick(c.random, 0, 5, 10, 30), fixed.Decimal{Coef: c.random.Int64N(70_000), Scale: 4}
		c.at(at, operator, decide.Metadata{}, &trading.ChangeInstrument{Symbol: p.Symbol, IndexStaleSeconds: &seconds, TakerFee: &fee})
	default:
		c.at(at, operator, decide.Metadata{}, &trading.DepositInsurance{Amount: fixed.Money(1 + c.random.Int64N(2_000_00000000))})
	}
	for _, p := range c.products {
		if p.halted != 0 && p.halted <= at {
			p.halted = 0
			c.status(at, p, market.Open)
		}
	}
}

func (c *crowd) status(at scalar.Time, p *product, status market.Status) {
	if p.Status != market.Withdrawn {
		c.at(at, operator, decide.Metadata{}, &trading.ChangeInstrument{Symbol: p.Symbol, Status: &status})
	}
}

// rush has many come at once, as they do who could reach nobody for a while.
func (c *crowd) rush() {
	for n := range 40 {
		who, p := pick(c.random, c.traders...), pick(c.random, c.products...)
		if n < 10 {
			p = c.products[1]
			c.at(c.now, c.actor(who), decide.Metadata{}, &trading.PlaceOrder{CustomerCode: who, Symbol: p.Symbol, Action: pick(c.random, order.Buy, order.Sell),
				Type: order.Limit, Amount: p.amount(50), LimitPrice: p.price(0.001 * (c.random.Float64() - 0.5))})
			continue
		}
		c.trade(c.now, who, p)
	}
}

// fleeting has makers quote more orders than a record can expire, whose time passes while nobody is there.
func (c *crowd) fleeting(until scalar.Time) {
	p := c.products[1] // whose prices do not get old
	for n := range 250 {
		side, away := order.Buy, -0.0002*float64(n%5)
		if n%2 == 0 {
			side, away = order.Sell, -away+0.0002
		}
		maker := c.makers[n%len(c.makers)]
		c.at(c.now, c.actor(maker), decide.Metadata{}, &trading.PlaceOrder{CustomerCode: maker, Symbol: p.Symbol, Action: side, Type: order.Limit,
			Amount: p.amount(300), LimitPrice: p.price(away), TimeInForce: order.GTD, ExpireTime: until})
	}
	c.drain()
}

// delist takes the instrument that nobody trades off the list.
func (c *crowd) delist() {
	p := c.products[len(c.products)-1]
	c.give(operator, decide.Metadata{}, &trading.DelistInstrument{Symbol: p.Symbol})
	c.products = c.products[:len(c.products)-1]
}

// settle ends what the operator and the feeds do, and has the venue come to rest.
func (c *crowd) settle() {
	c.calm = true
	for _, p := range c.products {
		p.silent, p.until, p.empty = 0, 0, 0
		c.status(c.now, p, market.Open)
		c.indexed(c.now, p)
	}
	c.drain()
	for _, p := range c.products { // some may have gone stale meanwhile
		c.indexed(c.now, p)
	}
	c.drain()
}
