package whatif_test

import (
	"context"
	"crypto/sha256"
	"io"
	"regexp"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/verify"
	"github.com/perpetua-exchange/perpetua/streams/whatif"
)

const symbol = "BTCUSDC_PERP"

var (
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	broker   = decide.Actor{Sub: "broker-a", Broker: "alpha"}
)

// venue decides commands of the trading journal, as its owner does, and is the log of the records.
type venue struct {
	t       *testing.T
	state   *trading.State
	now     scalar.Time
	prev    record.Hash
	values  [][]byte
	records []*record.Record
	older   bool // records have index.updated and order.rejected in version 1

	liquidating  map[string]bool
	liquidations map[string]int64 // that have begun, by customer
}

// open opens a venue that follows the rules with a number. Ann has 1000 USDC and Bea has a million.
func open(t *testing.T, rules int) *venue { return openWith(t, rules, trading.ChangeInstrument{}) }

// openWith opens a venue with other parameters.
func openWith(t *testing.T, rules int, change trading.ChangeInstrument) *venue {
	v := &venue{t: t, state: trading.NewState(), now: 1_800_000_000_000_000, liquidating: make(map[string]bool), liquidations: make(map[string]int64)}
	v.append(decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{7}, Partitions: 1}}})
	v.append(decide.Recorded{Type: record.TypeTermStarted, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 1, Node: "n"}}})
	for n := 2; n <= rules; n++ {
		v.do(operator, &decide.ActivateRules{Rules: n})
	}
	listed := change.ApplyTo(market.Instrument{Symbol: symbol, Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: number("0.1"), AmountStep: number("0.001"), MinAmount: number("0.001"), MaxAmount: number("1000"), ContractSize: number("1"),
		InitMarginReq: number("10"), MaintMarginReq: number("6"), MaxLeverage: 10, FundingIntervalSeconds: 3600, PriceBand: number("5"), LimitBand: number("20"),
		MakerFee: number("2"), TakerFee: number("5")})
	listed.MaxLeverage = min(listed.MaxLeverage, listed.PermittedLeverage())
	v.do(operator, &trading.ListInstrument{Instrument: listed})
	v.index("50000")
	v.register("ann", 1000)
	v.register("bea", 1_000_000)
	return v
}

// register registers a customer with money.
func (v *venue) register(customer string, amount fixed.Money) {
	v.t.Helper()
	v.do(broker, &trading.RegisterCustomer{CustomerCode: customer})
	v.do(operator, &trading.MakeDeposit{CustomerCode: customer, Currency: "USDC", Amount: amount * fixed.Unit})
}

func number(text string) fixed.Decimal {
	d, err := fixed.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func (v *venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: scalar.ID{7}, Sequence: int64(len(v.values)), Time: v.now, Prev: v.prev}
}

// do decides a command and then the due work, and returns the sequence of the command's record.
func (v *venue) do(actor decide.Actor, p decide.Payload) int64 {
	v.t.Helper()
	n, err := v.try(actor, p)
	if err != nil {
		v.t.Fatalf("%s: %v", p.CommandType(), err)
	}
	return n
}

// try is do for a command that may be refused.
func (v *venue) try(actor decide.Actor, p decide.Payload) (int64, error) {
	v.t.Helper()
	c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: actor, Payload: p}
	d, err := v.state.Decide(v.stamp(), c)
	if err != nil {
		return 0, err
	}
	n := v.append(c.Recorded(), d)
	v.work()
	return n, nil
}

// work does what is due.
func (v *venue) work() {
	v.t.Helper()
	for v.state.Due(v.now) != decide.Nothing {
		v.append(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine}, v.state.Step(v.stamp(), false))
	}
}

// wait lets time pass and does what becomes due.
func (v *venue) wait(span scalar.Time) { v.until(v.now + span) }

// until is wait to a time, or returns later if the work takes longer.
func (v *venue) until(end scalar.Time) {
	v.t.Helper()
	for ; ; v.work() {
		due, ok := v.state.NextDue()
		if !ok || due > end {
			v.now = max(v.now, end)
			return
		}
		v.now = max(v.now, due)
	}
}

func (v *venue) append(c decide.Recorded, d decide.Decision) int64 {
	v.t.Helper()
	r := &record.Record{Sequence: int64(len(v.values)), Prev: v.prev, Time: v.now, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	if r.Outcome == "" {
		r.Outcome = decide.Accepted
	}
	value, err := record.Encode(nil, r)
	if v.older && err == nil {
		r, value, err = older(r, value)
	}
	if err != nil {
		v.t.Fatal(err)
	}
	v.state.Evolve(v.stamp(), c, r.Outcome, r.Events)
	for _, code := range v.state.LastAffected() {
		now := v.state.InLiquidation(code)
		if now && !v.liquidating[code] {
			v.liquidations[code]++
		}
		v.liquidating[code] = now
	}
	v.values, v.records, v.prev = append(v.values, value), append(v.records, r), sha256.Sum256(value)
	v.now += scalar.Millisecond
	return r.Sequence
}

// older returns a record as a build wrote it that did not sample premiums and did not record the leverage of rejected orders.
func older(r *record.Record, value []byte) (*record.Record, []byte, error) {
	text := retired.ReplaceAllString(string(value), `"type":"$1","version":1`)
	text = added.ReplaceAllString(text, "")
	read, err := record.Decode(trading.Rules().Registry(), []byte(text))
	return read, []byte(text), err
}

var (
	retired = regexp.MustCompile(`"type":"(index\.updated|order\.rejected)","version":2`)
	added   = regexp.MustCompile(`,"(premium":"[^"]*"|leverage":\d+)`)
)

func (v *venue) index(price string) int64 {
	v.t.Helper()
	return v.do(operator, &trading.SetIndexPrice{Symbol: symbol, Price: number(price)})
}

// place places a limit order and returns the sequence of its record.
func (v *venue) place(customer string, side order.Action, amount, price string) int64 {
	v.t.Helper()
	return v.do(broker, &trading.PlaceOrder{CustomerCode: customer, Symbol: symbol, Action: side, Type: order.Limit, Amount: number(amount), LimitPrice: number(price)})
}

// trade has one customer sell to another.
func (v *venue) trade(seller, buyer, amount, price string) {
	v.t.Helper()
	v.place(seller, order.Sell, amount, price)
	v.place(buyer, order.Buy, amount, price)
}

// Base implements verify.Source.
func (*venue) Base(context.Context) (*record.Base, error) { return nil, nil }

// Open implements verify.Source.
func (v *venue) Open(context.Context) (verify.Batches, error) {
	r := new(batches)
	for n, value := range v.values {
		*r = append(*r, verify.Message{Offset: int64(n), Value: value})
	}
	return r, nil
}

type batches []verify.Message

func (b *batches) Next(context.Context) ([]verify.Message, error) {
	all := *b
	if *b = nil; all == nil {
		return nil, io.EOF
	}
	return all, nil
}

func (*batches) Close() {}

// run compares the log with another world.
func (v *venue) run(cfg whatif.Config, set ...string) (whatif.Report, error) {
	v.t.Helper()
	cfg.Source, cfg.Overrides, cfg.Differences = v, whatif.Overrides{}, 1000
	for _, text := range set {
		if err := cfg.Overrides.Set(text); err != nil {
			return whatif.Report{}, err
		}
	}
	return whatif.Run(v.t.Context(), cfg)
}

// kinds are both kinds of other worlds.
func (v *venue) kinds(check func(t *testing.T, cfg whatif.Config)) {
	v.t.Run("recorded", func(t *testing.T) { check(t, whatif.Config{To: -1}) })
	v.t.Run("cumulative", func(t *testing.T) { check(t, whatif.Config{To: -1, Cumulative: true}) })
}
