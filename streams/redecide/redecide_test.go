package redecide_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

var (
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	broker   = decide.Actor{Sub: "broker-a", Broker: "alpha"}
)

// venue decides commands of the trading journal and keeps their records.
type venue struct {
	t       *testing.T
	state   *trading.State
	now     scalar.Time
	entries []record.Entry
}

// open opens a venue that follows the rules with a number, with an instrument and a customer.
func open(t *testing.T, rules int) *venue {
	v := &venue{t: t, state: trading.NewState(), now: 1_800_000_000_000_000}
	v.append(decide.Recorded{Type: record.TypeGenesis, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{7}, Partitions: 1}}})
	v.append(decide.Recorded{Type: record.TypeTermStarted, Actor: decide.Engine}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 1, Node: "n"}}})
	for n := 2; n <= rules; n++ {
		v.do(operator, &decide.ActivateRules{Rules: n})
	}
	v.do(operator, &trading.ListInstrument{Instrument: market.Instrument{Symbol: "BTCUSDC_PERP", Underlying: "BTC", QuoteCurrency: "USDC", SettlementCurrency: "USDC",
		PriceTick: number("0.1"), AmountStep: number("0.001"), MinAmount: number("0.001"), MaxAmount: number("1000"), ContractSize: number("1"),
		InitMarginReq: number("5"), MaintMarginReq: number("2.5"), MaxLeverage: 13, FundingIntervalSeconds: 3600, PriceBand: number("5"), LimitBand: number("20"),
		MakerFee: number("2"), TakerFee: number("5")}})
	v.do(operator, &trading.SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65000")})
	v.do(broker, &trading.RegisterCustomer{CustomerCode: "ann"})
	v.do(operator, &trading.MakeDeposit{CustomerCode: "ann", Currency: "USDC", Amount: 1000 * fixed.Unit})
	return v
}

func number(text string) fixed.Decimal {
	d, err := fixed.ParseDecimal(text)
	if err != nil {
		panic(err)
	}
	return d
}

func (v *venue) stamp() decide.Stamp {
	return decide.Stamp{Journal: scalar.ID{7}, Sequence: int64(len(v.entries)), Time: v.now}
}

func (v *venue) do(actor decide.Actor, p decide.Payload) {
	v.t.Helper()
	c := decide.Command{ID: scalar.ID{1}, Type: p.CommandType(), Actor: actor, Payload: p}
	d, err := v.state.Decide(v.stamp(), c)
	if err != nil {
		v.t.Fatalf("%s: %v", c.Type, err)
	}
	v.append(c.Recorded(), d)
}

// due waits for the next due work and appends the record that decides it.
func (v *venue) due(run func(decide.Stamp) decide.Decision) {
	v.t.Helper()
	v.now, _ = v.state.NextDue()
	v.append(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine}, run(v.stamp()))
}

func (v *venue) append(c decide.Recorded, d decide.Decision) {
	v.t.Helper()
	r := &record.Record{Sequence: int64(len(v.entries)), Time: v.now, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	if r.Outcome == "" {
		r.Outcome = decide.Accepted
	}
	e := v.entry(r)
	v.entries = append(v.entries, e)
	v.state.Evolve(e.Stamp(), r.Command, r.Outcome, r.Events)
	v.now++
}

func (v *venue) entry(r *record.Record) record.Entry {
	v.t.Helper()
	value, err := record.Encode(nil, r)
	if err != nil {
		v.t.Fatal(err)
	}
	return v.decoded(value)
}

func (v *venue) decoded(value []byte) record.Entry {
	v.t.Helper()
	r, err := record.Decode(trading.Rules().Registry(), value)
	if err != nil {
		v.t.Fatal(err)
	}
	return record.Entry{Record: r, Journal: scalar.ID{7}, Value: value}
}

// again decides the last record again on a fold of those before it, after it was changed.
func (v *venue) again(change func([]byte) []byte) redecide.Result {
	v.t.Helper()
	before, last := v.entries[:len(v.entries)-1], v.entries[len(v.entries)-1]
	state := trading.NewState()
	for _, e := range before {
		state.Evolve(e.Stamp(), e.Record.Command, e.Record.Outcome, e.Record.Events)
	}
	if change != nil {
		changed := change(bytes.Clone(last.Value))
		if bytes.Equal(changed, last.Value) {
			v.t.Fatalf("%s was not changed", changed)
		}
		last = v.decoded(changed)
	}
	return tradingJournal().Redecide(state, before[len(before)-1].Record.Time, last)
}

func tradingJournal() redecide.Journal {
	return redecide.Journal{Payloads: trading.Payloads(), Limit: trading.Rules().Limit()}
}

func replace(old, by string) func([]byte) []byte {
	return func(value []byte) []byte { return []byte(strings.Replace(string(value), old, by, 1)) }
}

func place(price string, more func(*trading.PlaceOrder)) *trading.PlaceOrder {
	o := &trading.PlaceOrder{CustomerCode: "ann", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Amount: number("0.001"), LimitPrice: number(price)}
	if more != nil {
		more(o)
	}
	return o
}

// TestVerdicts changes records and has each decided again.
func TestVerdicts(t *testing.T) {
	resting := func(v *venue) { v.do(broker, place("64000", nil)) }
	fees := func(v *venue) {
		v.do(operator, &trading.SetFeeProfile{CustomerCode: "ann", Symbol: "BTCUSDC_PERP", MakerFee: number("1"), TakerFee: number("2"), Operator: true})
	}
	expiring := func(v *venue) {
		for range 2 {
			v.do(broker, place("64000", func(o *trading.PlaceOrder) { o.TimeInForce, o.ExpireTime = "GTD", v.now+scalar.Second }))
		}
	}
	step := func(single bool) func(*venue) {
		return func(v *venue) {
			expiring(v)
			v.now += scalar.Second // both are due
			v.append(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine}, v.state.Step(v.stamp(), single))
		}
	}
	reducing := func(v *venue) {
		v.liquidate()
		for v.state.Due(v.now) == decide.Blocking {
			v.append(decide.Recorded{ID: scalar.ID{2}, Type: "engine.step", Actor: decide.Engine}, v.state.Step(v.stamp(), false))
		}
		v.do(broker, &trading.PlaceOrder{CustomerCode: "bea", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Amount: number("100"), LimitPrice: number("35000"), ReduceOnly: true})
	}
	aside := func(v *venue) {
		expiring(v)
		v.due(func(at decide.Stamp) decide.Decision { return v.state.SetAside(at, "it failed") })
	}
	for name, c := range map[string]struct {
		rules  int
		last   func(*venue)
		change func([]byte) []byte
		want   redecide.Verdict
		reason string
	}{
		"an order":                                    {3, resting, nil, redecide.Same, ""},
		"an order under rules 1":                      {1, resting, nil, redecide.Same, ""},
		"an order of another amount":                  {3, resting, replace(`"amount":"0.001"`, `"amount":"0.002"`), redecide.Same, ""},
		"an order of a customer that is none":         {3, resting, replace(`"customer_code":"ann"`, `"customer_code":"bob"`), redecide.Different, "UNKNOWN_CUSTOMER"},
		"an order that was filled by nobody":          {3, resting, replace(`"filled_amount":"0.000"`, `"filled_amount":"0.001"`), redecide.Different, "another record"},
		"an order by another broker":                  {3, resting, replace(`"broker":"alpha"}`, `"broker":"beta"}`), redecide.Different, "UNKNOWN_CUSTOMER"},
		"an order of which the event is gone":         {3, resting, replace(`"type":"order.opened"`, `"type":"order.canceled"`), redecide.Different, "another record"},
		"an order with an unknown input":              {3, resting, replace(`"data":{}},"outcome"`, `"data":{"input":{"more":1}}},"outcome"`), redecide.Different, "input"},
		"an order with an input of no effect":         {3, resting, replace(`"data":{}},"outcome"`, `"data":{"input":{"amount":"0.001"}}},"outcome"`), redecide.Different, "another record"},
		"a changed order under rules 1":               {1, resting, replace(`"filled_amount":"0.000"`, `"filled_amount":"0.001"`), redecide.Different, "another record"},
		"a reduced order":                             {3, reducing, nil, redecide.Same, ""},
		"a reduced order under rules 1":               {1, reducing, nil, redecide.Same, ""},
		"a changed order that reduces, under rules 1": {1, reducing, replace(`"filled_amount":"0.000"`, `"filled_amount":"0.001"`), redecide.NotRedecidable, "did not record the input"},
		"fees":                                 {3, fees, nil, redecide.Same, ""},
		"fees without the input":               {3, fees, replace(`"input":{"operator":true}`, `"fingerprint":"00"`), redecide.Different, "UNKNOWN_CUSTOMER"},
		"fees under rules 2":                   {2, fees, nil, redecide.NotRedecidable, "did not record the input"},
		"a step":                               {3, step(false), nil, redecide.Same, ""},
		"a step with one entry":                {3, step(true), nil, redecide.NotReproduced, "does not fail"},
		"a step with one entry, not so called": {3, step(true), replace(`{"input":{"single":true}}`, `{}`), redecide.Different, "another record"},
		"a step with one entry, under rules 2": {2, step(true), nil, redecide.NotReproduced, "does not fail"},
		"a changed step under rules 2":         {2, step(true), replace(`"status":"expired"`, `"status":"canceled"`), redecide.Different, "another record"},
		"work that is set aside, of another":   {3, aside, replace(`"entry":"expiry/`, `"entry":"trigger/`), redecide.Different, "another record"},
		"work that is put back": {3, func(v *venue) {
			aside(v)
			v.do(operator, &decide.PutBackDue{Entry: v.state.SetAsideEntries()[0].Entry})
		}, nil, redecide.Same, ""},
		"a command of a later build": {3, resting, replace(`"type":"order.place"`, `"type":"order.plan"`), redecide.Different, "no command order.plan"},
		"rules that are not the next": {3, func(v *venue) {
			v.append(decide.Recorded{Type: decide.CommandActivateRules, Actor: operator}, decide.Decision{Events: []decide.Event{&decide.DuePutBack{Entry: "a/b"}}})
		}, nil, redecide.Different, "RULES_NOT_NEXT"},
		"a term": {0, func(*venue) {}, nil, redecide.Same, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := open(t, c.rules)
			c.last(v)
			got := v.again(c.change)
			if got.Verdict != c.want || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%s: %s, and not %s: %s\n%s", got.Verdict, got.Reason, c.want, c.reason, got.Value)
			}
			if last := v.entries[len(v.entries)-1].Value; got.Verdict == redecide.Same && c.change == nil && !bytes.Equal(got.Value, last) {
				t.Errorf("%s is the same as %s", got.Value, last)
			}
		})
	}
}

// TestUndecided: nothing decides a genesis, nor the record that opens a term.
func TestUndecided(t *testing.T) {
	v := open(t, 1)
	for _, e := range v.entries[:2] {
		if got := tradingJournal().Redecide(trading.NewState(), 0, e); got.Verdict != redecide.Undecided {
			t.Errorf("%s: %s: %s", e.Value, got.Verdict, got.Reason)
		}
	}
}

// TestARepeatedCommandHasNoRecord of its own.
func TestARepeatedCommandHasNoRecord(t *testing.T) {
	v := open(t, 3)
	c := decide.Command{Type: trading.CommandPlaceOrder, Actor: broker, Payload: place("64000", nil), Metadata: decide.Metadata{Key: "k", Fingerprint: "00"}}
	d, err := v.state.Decide(v.stamp(), c)
	if err != nil {
		t.Fatal(err)
	}
	v.append(c.Recorded(), d)
	v.append(c.Recorded(), d)
	if got := v.again(nil); got.Verdict != redecide.Different || !strings.Contains(got.Reason, "repeats record 8") {
		t.Errorf("%s: %s", got.Verdict, got.Reason)
	}
}

// TestARetiredVersionIsNotDecidedAgain: no build writes it.
func TestARetiredVersionIsNotDecidedAgain(t *testing.T) {
	v := open(t, 1)
	v.do(operator, &trading.SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("65001")})
	old := func([]byte) []byte {
		value := string(v.entries[len(v.entries)-1].Value)
		at := strings.Index(value, `"events":`)
		return []byte(value[:at] + `"events":[{"type":"index.updated","version":1,"data":{"symbol":"BTCUSDC_PERP","index_price":"65001"}}]}`)
	}
	if got := v.again(old); got.Verdict != redecide.NotRedecidable || !strings.Contains(got.Reason, "no longer written") {
		t.Errorf("%s: %s", got.Verdict, got.Reason)
	}
}

// broken is a state whose rules panic.
type broken struct{ *trading.State }

func (broken) Decide(decide.Stamp, decide.Command) (decide.Decision, error) { panic("broken") }

// TestAPanicIsADifference and is not passed on.
func TestAPanicIsADifference(t *testing.T) {
	v := open(t, 3)
	var panicked *decide.PanicError
	got := tradingJournal().Redecide(broken{v.state}, 0, v.entries[len(v.entries)-1])
	if got.Verdict != redecide.Different || !errors.As(got.Err, &panicked) || !strings.Contains(got.Err.Error(), "broken") {
		t.Errorf("%s: %v", got.Verdict, got.Err)
	}
}
