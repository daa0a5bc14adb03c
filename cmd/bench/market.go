package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	slots          = 6    // resting orders that a customer of the market keeps, beside one stop
	firstCustomers = 400  // of the market, before the first order
	newcomerEvery  = 4000 // orders after which another customer is registered
	deposited      = 3000 // USDC; so little that accounts reach their margin
)

// marketplace trades in memory. Customers quote, amend, cancel, and take; the index prices move; and accounts are liquidated,
// funded, and settled as that becomes due. The number of open orders is bounded by that of the customers.
type marketplace struct {
	engine      *engine
	random      *rand.Rand
	end         scalar.Time  // of the last record
	left        func() int64 // records until then
	names       int64        // number of references so far
	instruments []*indexed
	customers   []*account
	written     func(record.Entry) error
}

// indexed is an instrument with its index price.
type indexed struct {
	market.Instrument
	price, first int64 // in ticks, at present and at the beginning
	lot          int64 // a usual amount, in steps
}

// account is a customer with its open orders.
type account struct {
	code   string
	by     decide.Actor
	orders [slots]quote
	stop   quote
}

// quote is an order that was placed in a slot. It may have been filled since.
type quote struct {
	reference string // "" if the slot is free
	on        *indexed
	side      order.Action
}

// newMarketplace returns a market without records. written gets each entry in order, and left returns how many entries are to
// come until end.
func newMarketplace(seed uint64, begin, end scalar.Time, left func() int64, written func(record.Entry) error) *marketplace {
	list := func(underlying string, price int64, tick, step uint8, lot int64) *indexed {
		i := contract()
		i.Symbol, i.Underlying = underlying+"USDC_PERP", underlying
		i.PriceTick, i.AmountStep = fixed.Decimal{Coef: 1, Scale: tick}, fixed.Decimal{Coef: 1, Scale: step}
		i.MinAmount = i.AmountStep
		return &indexed{Instrument: i, price: price, first: price, lot: lot}
	}
	return &marketplace{
		engine: &engine{state: trading.NewState(), id: scalar.ID{1}, at: record.Before, time: begin},
		random: rand.New(rand.NewPCG(seed, 1)), end: end, left: left, written: written,
		instruments: []*indexed{list("BTC", 650_000, 1, 3, 40), list("ETH", 350_000, 2, 2, 80), list("SOL", 150_000, 3, 1, 200)},
	}
}

// trade opens the market and lets it trade for as long as more reports true.
func (m *marketplace) trade(more func() bool) error {
	if err := m.open(); err != nil {
		return err
	}
	for n := 0; more(); n++ {
		if n%newcomerEvery == 0 {
			if err := m.register(); err != nil {
				return err
			}
		}
		if err := m.act(m.customers[m.random.IntN(len(m.customers))]); err != nil {
			return err
		}
	}
	return nil
}

// open appends the records of a new venue.
func (m *marketplace) open() error {
	for _, e := range []decide.Event{
		&record.Genesis{Journal: "trading", JournalID: m.engine.id, Partitions: 1},
		&record.TermStarted{Term: 1, Node: "bench"},
	} {
		c := decide.Recorded{ID: record.NewCommandID(m.engine.time.Std()), Type: e.EventType(), Actor: decide.Engine}
		if err := m.append(c, decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{e}}); err != nil {
			return err
		}
	}
	for n := 2; n <= trading.Rules().Newest(); n++ {
		if err := m.must(operator(), &decide.ActivateRules{Rules: n}); err != nil {
			return err
		}
	}
	for _, i := range m.instruments {
		if err := m.must(operator(), &trading.ListInstrument{Instrument: i.Instrument}); err != nil {
			return err
		}
		if err := m.move(i); err != nil {
			return err
		}
	}
	for range firstCustomers {
		if err := m.register(); err != nil {
			return err
		}
	}
	return nil
}

func (m *marketplace) register() error {
	a := &account{code: fmt.Sprintf("SIM-%05d", len(m.customers)), by: trader()}
	m.customers = append(m.customers, a)
	if err := m.must(a.by, &trading.RegisterCustomer{CustomerCode: a.code, Name: "Account " + a.code}); err != nil {
		return err
	}
	return m.deposit(a)
}

func (m *marketplace) deposit(a *account) error {
	return m.must(operator(), &trading.MakeDeposit{CustomerCode: a.code, Currency: "USDC", Amount: deposited * fixed.Unit})
}

// act lets an account, or the operator, do one thing.
func (m *marketplace) act(a *account) error {
	i := m.instruments[m.random.IntN(len(m.instruments))]
	slot := &a.orders[m.random.IntN(slots)]
	switch n := m.random.IntN(100); {
	case n < 4:
		return m.move(i)
	case n < 22:
		return m.place(a, i, new(quote), m.crossing)
	case n < 27 && slot.reference != "":
		return m.cancel(a, slot)
	case n < 30 && a.stop.reference == "":
		return m.place(a, i, &a.stop, m.stop)
	case n < 30:
		return m.cancel(a, &a.stop)
	case slot.reference != "":
		return m.amend(a, slot)
	default:
		return m.place(a, i, slot, m.resting)
	}
}

// move sets an index price. It returns to where it began in the long run.
func (m *marketplace) move(i *indexed) error {
	i.price += (i.first-i.price)/4000 + (m.random.Int64N(i.first/60+1) - i.first/120)
	return m.must(operator(), &trading.SetIndexPrice{Symbol: i.Symbol, Price: fixed.Decimal{Coef: i.price, Scale: i.PriceTick.Scale}})
}

// away returns a price outside of the spread, in ticks.
func (m *marketplace) away(i *indexed, side order.Action) int64 {
	distance := i.price/5000 + m.random.Int64N(i.price/300)
	if side == order.Buy {
		distance = -distance
	}
	return i.price + distance
}

// resting makes an order that rests.
func (m *marketplace) resting(i *indexed, o *trading.PlaceOrder) {
	o.Type, o.LimitPrice.Coef = order.Limit, m.away(i, o.Action)
}

// crossing makes an order that takes.
func (m *marketplace) crossing(i *indexed, o *trading.PlaceOrder) {
	if m.random.IntN(3) == 0 {
		o.Type, o.LimitPrice = order.Market, fixed.Decimal{}
		return
	}
	o.Type, o.TimeInForce = order.Limit, order.IOC
	o.LimitPrice.Coef = 2*i.price - m.away(i, o.Action)
}

// stop makes an order that waits for a price.
func (m *marketplace) stop(i *indexed, o *trading.PlaceOrder) {
	o.Type, o.TriggerPriceType, o.LimitPrice = order.StopLoss, order.TradePrice, fixed.Decimal{}
	o.TriggerPrice = fixed.Decimal{Coef: 2*i.price - m.away(i, o.Action), Scale: i.PriceTick.Scale}
}

// place places an order in a slot. An account without the margin for it sometimes gets money.
func (m *marketplace) place(a *account, i *indexed, in *quote, shape func(*indexed, *trading.PlaceOrder)) error {
	m.names++
	o := &trading.PlaceOrder{CustomerCode: a.code, Symbol: i.Symbol, Action: order.Buy, ReferenceID: fmt.Sprintf("%s-%d", a.code, m.names),
		Amount: fixed.Decimal{Coef: 1 + m.random.Int64N(i.lot), Scale: i.AmountStep.Scale}, LimitPrice: fixed.Decimal{Scale: i.PriceTick.Scale}}
	if m.random.IntN(2) == 0 {
		o.Action = order.Sell
	}
	shape(i, o)
	d, err := m.do(a.by, o)
	if err != nil {
		return err
	}
	*in = quote{o.ReferenceID, i, o.Action}
	if d.Outcome == decide.Rejected && m.random.IntN(20) == 0 {
		return m.deposit(a)
	}
	return nil
}

// cancel cancels an order and frees its slot.
func (m *marketplace) cancel(a *account, q *quote) error {
	_, err := m.do(a.by, &trading.CancelOrder{CustomerCode: a.code, ReferenceID: q.reference})
	q.reference = ""
	return err
}

// amend moves the price of an order. If the order has ended, its slot becomes free.
func (m *marketplace) amend(a *account, q *quote) error {
	price := fixed.Decimal{Coef: m.away(q.on, q.side), Scale: q.on.PriceTick.Scale}
	d, err := m.do(a.by, &trading.AmendOrder{CustomerCode: a.code, ReferenceID: q.reference, LimitPrice: &price})
	if err == nil && len(d.Events) == 0 {
		q.reference = ""
	}
	return err
}

// must decides a command that the rules accept.
func (m *marketplace) must(by decide.Actor, p decide.Payload) error {
	d, err := m.do(by, p)
	if err == nil && len(d.Events) == 0 {
		err = fmt.Errorf("%s was refused", p.CommandType())
	}
	return err
}

// do decides a command a moment after the last one, and before it the work that has become due. A refusal leaves no record, and
// the decision is empty.
func (m *marketplace) do(by decide.Actor, p decide.Payload) (decide.Decision, error) {
	m.engine.time += m.pause()
	if err := m.settle(); err != nil {
		return decide.Decision{}, err
	}
	c := decide.Command{ID: record.NewCommandID(m.engine.time.Std()), Type: p.CommandType(), Actor: by, Payload: p, Metadata: m.metadata()}
	d, err := m.engine.state.Decide(m.engine.stamp(), c)
	if refusal := new(decide.Refusal); errors.As(err, &refusal) {
		return decide.Decision{}, nil
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", c.Type, err)
	}
	return d, m.append(c.Recorded(), d)
}

// pause returns the time until the next command. Refused commands leave no record, and a step may leave many. So the average follows
// from the records that are left, and the last one is at the end.
func (m *marketplace) pause() scalar.Time {
	left := m.end - m.engine.time
	mean := max(0, left) / scalar.Time(max(1, m.left()))
	return min(1+scalar.Time(m.random.Int64N(2*int64(mean)+1)), max(1, left))
}

// metadata returns the fingerprint of a request and, for one in four, a key.
func (m *marketplace) metadata() (k decide.Metadata) {
	var print [16]byte
	for i := range print {
		print[i] = byte(m.random.Uint32())
	}
	k.Fingerprint = hex.EncodeToString(print[:])
	if m.random.IntN(4) == 0 {
		k.Key = fmt.Sprintf("%016x", m.random.Uint64())
	}
	return k
}

// settle decides the work that is due.
func (m *marketplace) settle() error {
	for m.engine.state.Due(m.engine.time) != decide.Nothing {
		c := decide.Recorded{ID: record.NewCommandID(m.engine.time.Std()), Type: "engine.step", Actor: decide.Engine}
		if err := m.append(c, m.engine.state.Step(m.engine.stamp(), false)); err != nil {
			return err
		}
	}
	return nil
}

func (m *marketplace) append(c decide.Recorded, d decide.Decision) error {
	e, err := m.engine.append(c, d)
	if err != nil {
		return err
	}
	return m.written(e)
}
