package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// engine applies the trading rules in memory, without a log: it decides commands, makes records, and folds them.
type engine struct {
	state *trading.State
	id    scalar.ID
	at    record.Position
	time  scalar.Time
}

func operator() decide.Actor { return decide.Actor{Sub: "operator", Broker: "venue"} }
func trader() decide.Actor   { return decide.Actor{Sub: "broker-a", Broker: "alpha"} }

// newEngine returns an engine with the bench's instrument and customers, and the records that created them.
func newEngine() (*engine, []record.Entry, error) {
	e := &engine{state: trading.NewState(), id: scalar.ID{1}, at: record.Before, time: scalar.TimeOf(time.Now())}
	genesis := &record.Genesis{Journal: "trading", JournalID: e.id, Partitions: 1}
	first, err := e.append(decide.Recorded{ID: scalar.ID{1}, Type: record.TypeGenesis, Actor: decide.Engine},
		decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{genesis}})
	if err != nil {
		return nil, nil, err
	}
	entries := []record.Entry{first}
	for _, c := range opening(true) {
		entry, err := e.do(c)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry)
	}
	return e, entries, nil
}

// opening returns the commands that create the bench's instrument and customers.
func opening(list bool) (commands []decide.Command) {
	if list {
		commands = append(commands, command(operator(), trading.CommandListInstrument, &trading.ListInstrument{Instrument: contract()}))
	}
	commands = append(commands, command(operator(), trading.CommandSetIndexPrice, &trading.SetIndexPrice{Symbol: symbol, Price: fixed.Decimal{Coef: middle}}))
	for n := range customers {
		commands = append(commands,
			command(trader(), trading.CommandRegisterCustomer, &trading.RegisterCustomer{CustomerCode: customerCode(n)}),
			command(operator(), trading.CommandMakeDeposit, &trading.MakeDeposit{CustomerCode: customerCode(n), Currency: "USDC", Amount: 100_000_000 * fixed.Unit}))
	}
	return commands
}

func command(actor decide.Actor, kind string, ask any) decide.Command {
	return decide.Command{ID: record.NewCommandID(time.Now()), Type: kind, Actor: actor, Payload: ask}
}

// contract returns the instrument that `perpetua run` lists.
func contract() market.Instrument {
	d := func(coef int64, scale uint8) fixed.Decimal { return fixed.Decimal{Coef: coef, Scale: scale} }
	return market.Instrument{Symbol: symbol, Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC", Status: market.Open,
		PriceTick: d(1, 1), AmountStep: d(1, 3), MinAmount: d(1, 3), MaxAmount: d(1000, 0), ContractSize: d(1, 0),
		InitMarginReq: d(500, 2), MaintMarginReq: d(250, 2), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: d(500, 2), LimitBand: d(2000, 2), MakerFee: d(2, 0), TakerFee: d(5, 0)}
}

// do decides a command and folds its record.
func (e *engine) do(c decide.Command) (record.Entry, error) {
	e.time++
	d, err := e.state.Decide(e.stamp(), c)
	if err != nil {
		return record.Entry{}, fmt.Errorf("%s: %w", c.Type, err)
	}
	return e.append(c.Recorded(), d)
}

// stamp is that of the next record.
func (e *engine) stamp() decide.Stamp {
	return decide.Stamp{Journal: e.id, Sequence: e.at.Sequence + 1, Time: e.time, Prev: e.at.Hash}
}

// append encodes the record of a decision and folds it.
func (e *engine) append(c decide.Recorded, d decide.Decision) (record.Entry, error) {
	r := &record.Record{Sequence: e.at.Sequence + 1, Prev: e.at.Hash, Time: e.time, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	value, err := record.Encode(nil, r)
	if err != nil {
		return record.Entry{}, err
	}
	entry := record.Entry{Record: r, Journal: e.id, Value: value,
		Position: record.Position{Offset: e.at.Offset + 1, Sequence: r.Sequence, Hash: sha256.Sum256(value)}}
	e.at = entry.Position
	e.state.Evolve(entry.Stamp(), r.Command, r.Outcome, r.Events)
	return entry, nil
}

// drawn returns an order of the flow: nine of ten rest within 1.4 % of the middle, one takes resting orders.
func drawn(random *rand.Rand, customer int) *trading.PlaceOrder {
	o := restingOrder(random, customer)
	if random.IntN(10) > 0 {
		return o
	}
	away := int64(10_000)
	if o.Action == order.Sell {
		away = -away
	}
	o.LimitPrice.Coef = middle*10 + away
	o.Amount.Coef, o.TimeInForce = 1+random.Int64N(18), order.IOC
	return o
}

// restingOrder returns an order that takes nothing.
func restingOrder(random *rand.Rand, customer int) *trading.PlaceOrder {
	action, away := order.Buy, -(10 + random.Int64N(9_000))
	if random.IntN(2) == 0 {
		action, away = order.Sell, -away
	}
	return &trading.PlaceOrder{CustomerCode: customerCode(customer), Symbol: symbol, Action: action, Type: order.Limit, TimeInForce: order.GTC,
		Amount: fixed.Decimal{Coef: 1 + random.Int64N(9), Scale: 3}, LimitPrice: fixed.Decimal{Coef: middle*10 + away, Scale: 1}}
}

// flow returns the entries of a venue's first n orders, as a reader of the log would return them.
func flow(n int) ([]record.Entry, error) {
	e, entries, err := newEngine()
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		entry, err := e.do(command(trader(), trading.CommandPlaceOrder, drawn(random, i)))
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
