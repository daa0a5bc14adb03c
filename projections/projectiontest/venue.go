package projectiontest

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/liabilities"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Venue makes up entries of the trading journal: random ones, consistent enough for the read models. It keeps what the
// rows should say, so that tests can compare.
type Venue struct {
	random      *rand.Rand
	journal     scalar.ID
	at          record.Position
	time        scalar.Time
	Customers   []string
	Orders      map[scalar.ID]*order.Order
	live        []scalar.ID
	Withdrawals map[scalar.ID]ledger.Transaction
	pending     []scalar.ID
	Balances    map[string]fixed.Money // of customers
	Accounts    map[ledger.Account]fixed.Money
	Positions   map[[2]string]fixed.Decimal // by customer and symbol, in steps of 0.001
	Costs       map[[2]string]fixed.Money
	// old selects entries of rules 1, in which only trigger.fired says when a stop fired.
	old      bool
	proposed *decide.ProposalMade // the last proposal; nil for none
	ended    int                  // how many proposals have ended
}

// NewVenue returns a venue. Its entries are a function of the seed.
func NewVenue(seed uint64) *Venue {
	v := &Venue{random: rand.New(rand.NewPCG(seed, 1)), at: record.Before, Orders: map[scalar.ID]*order.Order{},
		Withdrawals: map[scalar.ID]ledger.Transaction{}, Balances: map[string]fixed.Money{},
		Accounts: map[ledger.Account]fixed.Money{}, Positions: map[[2]string]fixed.Decimal{}, Costs: map[[2]string]fixed.Money{}}
	v.old = seed%2 == 0
	v.time = scalar.TimeOf(time.Date(2026, 3, 31, 8, 0, 0, 0, time.UTC))
	binary.BigEndian.PutUint64(v.journal[:], seed+1)
	return v
}

// Symbols are the instruments that every venue lists first.
func Symbols() []string { return []string{"BTCUSDC_PERP", "ETHUSDC_PERP"} }

// Entries returns the next n entries. The first ones of a venue are its genesis, its instruments and three customers.
func (v *Venue) Entries(n int) []record.Entry {
	out := make([]record.Entry, n)
	for i := range out {
		out[i] = v.next()
	}
	return out
}

// Entry returns the next entry, with the given events.
func (v *Venue) Entry(command string, actor decide.Actor, outcome decide.Outcome, events ...decide.Event) record.Entry {
	for _, e := range events {
		if o, ok := e.(trading.OrderEvent); ok && v.old {
			o.After().Triggered = 0
		}
	}
	p := record.Position{Sequence: v.at.Sequence + 1, Offset: v.at.Offset + 1 + int64(v.random.IntN(8)/7)}
	value := fmt.Appendf(nil, "%d %v %v %s", p.Sequence, v.at.Hash, v.time, command)
	p.Hash = sha256.Sum256(value)
	r := &record.Record{Sequence: p.Sequence, Prev: v.at.Hash, Time: v.time, Outcome: outcome, Events: events,
		Command: decide.Recorded{ID: v.id(), Type: command, Actor: actor}}
	v.at = p
	v.time += scalar.Time(v.random.IntN(3)) * scalar.Millisecond
	return record.Entry{Record: r, Position: p, Journal: v.journal, Value: value}
}

// decided returns the entry of a decision. Its events are decoded from their JSON, as a reader of the journal would do.
func (v *Venue) decided(t testing.TB, rules decide.Rules, kind string, actor decide.Actor, d decide.Decision) record.Entry {
	t.Helper()
	events := make([]decide.Event, len(d.Events))
	for i, e := range d.Events {
		text, err := json.Marshal(e)
		if err == nil {
			events[i], err = rules.Registry().Decode(e.EventType(), decide.VersionOf(e), text)
		}
		if err != nil {
			t.Fatalf("event %s: %v", e.EventType(), err)
		}
	}
	e := v.Entry(kind, actor, d.Outcome, events...)
	e.Record.Input = d.Input
	return e
}

// Pass lets time pass before the next entry, and returns the time then.
func (v *Venue) Pass(d scalar.Time) scalar.Time {
	v.time += d
	return v.time
}

// stamp is that of the next entry.
func (v *Venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: v.journal, Sequence: v.at.Sequence + 1, Time: v.time, Prev: v.at.Hash}
}

func (v *Venue) id() (id scalar.ID) {
	binary.BigEndian.PutUint64(id[:8], v.random.Uint64())
	binary.BigEndian.PutUint64(id[8:], v.random.Uint64())
	return id
}

// BrokerOf returns the broker that a made-up customer belongs to.
func BrokerOf(customer string) string {
	if (customer[len(customer)-1]-'0')%2 == 0 {
		return "alpha"
	}
	return "beta"
}

func (v *Venue) next() record.Entry {
	switch s := v.at.Sequence + 1; {
	case s == 0:
		return v.Entry(record.TypeGenesis, decide.Engine, decide.Accepted, &record.Genesis{Journal: "trading", JournalID: v.journal, Partitions: 1})
	case s == 1:
		return v.Entry(record.TypeTermStarted, decide.Engine, decide.Accepted, &record.TermStarted{Term: 1, Node: "n"})
	case s <= 3:
		i := Instrument(Symbols()[s-2])
		return v.Entry("instrument.list", decide.Actor{Sub: "operator", Broker: "venue"}, decide.Accepted, &trading.InstrumentListed{Instrument: i})
	case s <= 6:
		return v.register()
	}
	customer := v.Customers[v.random.IntN(len(v.Customers))]
	switch n := v.random.IntN(100); {
	case n < 2:
		return v.register()
	case n < 10:
		return v.deposit(customer)
	case n < 16:
		return v.withdraw(customer)
	case n < 24 && len(v.pending) > 0:
		return v.settleWithdrawal()
	case n < 26:
		return v.setting(customer)
	case n < 30:
		return v.price()
	case n < 34 && v.waiting() >= 0:
		return v.fire(v.Orders[v.live[v.waiting()]])
	case n < 55 && len(v.live) > 2:
		return v.change()
	case n < 60:
		return v.reject(customer)
	default:
		return v.placeOrder(customer)
	}
}

func actor(customer string) decide.Actor {
	return decide.Actor{Sub: "broker-a", Broker: BrokerOf(customer)}
}

// Instrument returns an instrument with the given symbol.
func Instrument(symbol string) market.Instrument {
	d := func(s string) fixed.Decimal {
		v, err := fixed.ParseDecimal(s)
		if err != nil {
			panic(err)
		}
		return v
	}
	return market.Instrument{Symbol: symbol, Underlying: symbol[:3], QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		Status: market.Open, PriceTick: d("0.1"), AmountStep: d("0.001"), MinAmount: d("0.001"), MaxAmount: d("1000.000"),
		ContractSize: d("1"), InitMarginReq: d("5.00"), MaintMarginReq: d("2.50"), MaxLeverage: 13, FundingIntervalSeconds: 3600,
		PriceBand: d("5.00"), LimitBand: d("20.00"), MakerFee: d("2"), TakerFee: d("5"),
		Tiers: []market.Tier{{InitMarginReq: d("5.00"), MaintMarginReq: d("2.50")}}}
}

func (v *Venue) register() record.Entry {
	code := fmt.Sprintf("C%d", len(v.Customers))
	v.Customers = append(v.Customers, code)
	return v.Entry("customer.register", actor(code), decide.Accepted, &trading.CustomerRegistered{CustomerCode: code,
		Broker: BrokerOf(code), Name: "Account " + code, Created: v.time})
}

func (v *Venue) setting(customer string) record.Entry {
	symbol := Symbols()[v.random.IntN(2)]
	fee := fixed.Decimal{Coef: int64(v.random.IntN(1000)) - 100, Scale: 1}.Trim()
	b := BrokerOf(customer)
	switch v.random.IntN(4) {
	case 0:
		return v.Entry("fee_profile.set", actor(customer), decide.Accepted, &trading.FeeProfileSet{CustomerCode: customer, Broker: b, Symbol: symbol, MakerFee: fee, TakerFee: fee})
	case 1:
		return v.Entry("margin_profile.set", actor(customer), decide.Accepted, &trading.MarginProfileSet{CustomerCode: customer, Broker: b,
			Leverage: v.random.IntN(14), InitialMargin: fixed.Decimal{Coef: 770, Scale: 2}, MaintenanceMargin: fixed.Decimal{Coef: 385, Scale: 2}})
	case 2:
		return v.Entry("leverage.set", actor(customer), decide.Accepted, &trading.LeverageChanged{CustomerCode: customer, Broker: b, Symbol: symbol, Leverage: v.random.IntN(14)})
	}
	return v.Entry("order.place", actor(customer), decide.Accepted, &trading.LeverageSet{CustomerCode: customer, Broker: b, Symbol: symbol, Leverage: 1 + v.random.IntN(13)})
}

func (v *Venue) price() record.Entry {
	symbol := Symbols()[v.random.IntN(2)]
	if v.random.IntN(3) == 0 {
		i := Instrument(symbol)
		i.Status = []market.Status{market.Open, market.PostOnly, market.TradeHalt}[v.random.IntN(3)]
		return v.Entry("instrument.change", decide.Actor{Sub: "operator", Broker: "venue"}, decide.Accepted, &trading.InstrumentChanged{Instrument: i})
	}
	p := fixed.Decimal{Coef: 650000 + int64(v.random.IntN(1000)), Scale: 1}
	switch n := v.random.IntN(4); {
	case n == 0:
		return v.Entry("engine.step", decide.Engine, decide.Accepted, &trading.Step{Work: trading.WorkFunding}, &trading.FundingFixed{Symbol: symbol,
			FundingRate: market.Rate(int64(v.random.IntN(1000)) - 500), IndexPrice: p, MarkPrice: p, IntervalSeconds: 3600, Time: v.time, Missed: v.random.IntN(2) == 0})
	case p.Coef%4 == 0: // which draws no random number
		return v.statement(p.Coef)
	}
	return v.Entry("index.set", decide.Actor{Sub: "operator", Broker: "venue"}, decide.Accepted, &trading.IndexUpdated{Symbol: symbol, IndexPrice: p, MarkPrice: p})
}

// statement returns the record of a statement of liabilities about the record before. Its numbers have up to 39 digits.
func (v *Venue) statement(n int64) record.Entry {
	s := liabilities.Statement{Timestamp: v.time, Position: liabilities.Position{Sequence: v.at.Sequence, Hash: v.at.Hash.String()}}
	s.Totals = liabilities.Totals{Asset: "USDC", Scale: 8, Leaves: 64, Total: liabilities.Amount{Hi: uint64(n) % 3 << 62, Lo: uint64(n) * 10_000_000_000},
		Venue: liabilities.Venue{Insurance: liabilities.Balance(n), Fees: -7, Funding: 0, Clearing: liabilities.Balance(-n) * 1_000_000, Rounding: 1}, Root: liabilities.Hash{1, byte(n)}}
	s.NetPaidIn = s.Venue.Insurance + s.Venue.Fees + s.Venue.Clearing + s.Venue.Rounding
	s.Deficits = s.Total
	return v.Entry(trading.CommandRecordLiabilities, decide.Actor{System: "liabilities", Broker: "venue"}, decide.Accepted,
		append(v.propose(), &trading.LiabilitiesRecorded{Statement: s})...)
}

// propose returns the end of the last proposal, if there is one, and the next proposal. It draws no random number.
func (v *Venue) propose() (events []decide.Event) {
	if last := v.proposed; last != nil {
		end := decide.ProposalEnd{ID: last.ID, Action: last.Action, ProposedBy: last.ProposedBy, Proposed: last.Seen + 1, By: "supervisor", Time: v.time}
		switch v.ended++; v.ended % 3 {
		case 1:
			events = append(events, &decide.ProposalVoided{ProposalEnd: end, Changed: v.at.Sequence})
		case 2:
			events = append(events, &decide.ProposalRejected{ProposalEnd: end, Reason: "not now"})
		default:
			events = append(events, &decide.ProposalConfirmed{ProposalEnd: end})
		}
	}
	v.proposed = &decide.ProposalMade{ID: v.stamp().Derive(len(events)), Action: "instrument.delist", Command: "instrument.delist", Content: `{"symbol":"BTCUSDC_PERP"}`,
		Objects: []string{"instrument/BTCUSDC_PERP"}, ProposedBy: "operator", Seen: v.at.Sequence, Created: v.time, Expires: v.time + scalar.Day}
	return append(events, v.proposed)
}
