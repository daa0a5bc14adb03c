package redecide_test

import (
	"strings"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// wait lets time pass until the next due work.
func (v *venue) wait() { v.now, _ = v.state.NextDue() }

// expire places two orders and waits until both have expired.
func (v *venue) expire() {
	until := v.now + scalar.Second
	for range 2 {
		v.do(broker, place("64000", func(o *trading.PlaceOrder) { o.TimeInForce, o.ExpireTime = order.GTD, until }))
	}
	v.wait()
}

// forge appends a record of the engine without a check.
func (v *venue) forge(c decide.Recorded, d decide.Decision) {
	c.Actor = decide.Engine
	v.append(c, d)
}

// TestForgeries appends records that no owner writes. Each is decided again as something else.
func TestForgeries(t *testing.T) {
	step := decide.Recorded{ID: scalar.ID{2}, Type: "engine.step"}
	deposit := func(v *venue) {
		v.do(operator, &trading.MakeDeposit{CustomerCode: "ann", Currency: "USDC", Amount: fixed.Unit})
	}
	for name, c := range map[string]struct {
		last   func(*venue)
		change func([]byte) []byte
		want   redecide.Verdict
		reason string
	}{
		"healthy work set aside": {func(v *venue) {
			v.expire()
			v.forge(step, v.state.SetAside(v.stamp(), "it failed"))
		}, nil, redecide.Different, "does not fail"},
		"healthy work set aside for its size": {func(v *venue) {
			v.expire()
			v.forge(step, v.state.SetAside(v.stamp(), "the record would be too large: 262145 bytes"))
		}, nil, redecide.Different, "does not fail"},
		"healthy work set aside by a panic": {func(v *venue) {
			v.expire()
			v.forge(step, v.state.SetAside(v.stamp(), "panic: anything"))
		}, nil, redecide.NotReproduced, "does not fail"},
		"a step of one entry without need": {func(v *venue) {
			v.expire()
			v.forge(step, v.state.Step(v.stamp(), true))
		}, nil, redecide.NotReproduced, "does not fail"},
		"a step of another type": {func(v *venue) {
			v.expire()
			v.forge(decide.Recorded{Type: "engine.foo"}, v.state.Step(v.stamp(), false))
		}, nil, redecide.Different, "first event"},
		"a step with a key": {func(v *venue) {
			v.expire()
			v.forge(decide.Recorded{Type: step.Type, Metadata: decide.Metadata{Key: "k"}}, v.state.Step(v.stamp(), false))
		}, nil, redecide.Different, "metadata"},
		"a step with a source": {func(v *venue) {
			v.expire()
			v.forge(decide.Recorded{Type: step.Type, Metadata: decide.Metadata{Source: &decide.Source{Journal: "identity", Sequence: 1 << 40}}}, v.state.Step(v.stamp(), false))
		}, nil, redecide.Different, "metadata"},
		"a step before it is due": {func(v *venue) {
			v.expire()
			v.now--
			v.forge(step, decide.Decision{Events: []decide.Event{&trading.Step{Work: trading.WorkExpiry}}})
		}, nil, redecide.Different, "nothing is decided"},
		"a term with a source": {func(v *venue) {
			v.forge(decide.Recorded{Type: record.TypeTermStarted, Metadata: decide.Metadata{Source: &decide.Source{Journal: "identity", Sequence: 1}}},
				decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 2, Node: "n"}}})
		}, nil, redecide.Different, "metadata"},
		"a term with an input": {func(v *venue) {
			v.forge(decide.Recorded{Type: record.TypeTermStarted}, decide.Decision{Input: `{"a":1}`, Events: []decide.Event{&record.TermStarted{Term: 2, Node: "n"}}})
		}, nil, redecide.Different, "input"},
		"a rejected term": {func(v *venue) {
			v.forge(decide.Recorded{Type: record.TypeTermStarted}, decide.Decision{Outcome: decide.Rejected, Events: []decide.Event{&record.TermStarted{Term: 2, Node: "n"}}})
		}, nil, redecide.Different, "rejected"},
		"a term by a client": {func(v *venue) {
			v.append(decide.Recorded{Type: record.TypeTermStarted, Actor: broker}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 2, Node: "n"}}})
		}, nil, redecide.Different, "actor"},
		"a term with more events": {func(v *venue) {
			v.forge(decide.Recorded{Type: record.TypeTermStarted}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 2, Node: "n"},
				&trading.IndexUpdated{Symbol: "BTCUSDC_PERP", IndexPrice: number("1")}}})
		}, nil, redecide.Different, "events"},
		"a term with another event": {func(v *venue) {
			v.forge(decide.Recorded{Type: record.TypeTermStarted}, decide.Decision{Events: []decide.Event{&trading.Step{Work: trading.WorkExpiry}}})
		}, nil, redecide.Different, "first event"},
		"a second genesis": {func(v *venue) {
			v.forge(decide.Recorded{Type: record.TypeGenesis}, decide.Decision{Events: []decide.Event{&record.Genesis{Journal: "trading", JournalID: scalar.ID{7}, Partitions: 1}}})
		}, nil, redecide.Different, "genesis"},
		"a deposit of a type that does not exist": {deposit, replace(`"type":"deposit.make"`, `"type":"deposit.made"`), redecide.Different, "no command deposit.made"},
		"a deposit with an event of a retired version": {deposit, func(value []byte) []byte {
			text := strings.Replace(string(value), `"balance":"1001.`, `"balance":"9001.`, 1)
			return []byte(strings.TrimSuffix(text, "]}") + `,{"type":"index.updated","version":1,"data":{"symbol":"BTCUSDC_PERP","index_price":"65001"}}]}`)
		}, redecide.Different, "another record"},
		"a deposit by the engine": {deposit, replace(`"actor":{"sub":"operator","broker":"venue"}`, `"actor":{"system":"engine"}`), redecide.Different, "actor"},
		"an order before blocking work": {func(v *venue) {
			v.liquidate()
			v.do(broker, &trading.PlaceOrder{CustomerCode: "bea", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Amount: number("0.001"), LimitPrice: number("64000")})
		}, nil, redecide.Different, "due work"},
		"a step before its predecessor": {func(v *venue) {
			v.expire()
			v.now += 10
			v.do(broker, place("63000", nil))
			v.now -= 2
			v.forge(step, v.state.Step(v.stamp(), false))
		}, nil, redecide.Different, "before that of the previous record"},
		"an order before its predecessor": {func(v *venue) {
			v.now -= 1000 * scalar.Second
			v.do(broker, place("64000", nil))
		}, nil, redecide.Different, "before that of the previous record"},
		"a term before its predecessor": {func(v *venue) {
			v.now -= 1000 * scalar.Second
			v.forge(decide.Recorded{Type: record.TypeTermStarted}, decide.Decision{Events: []decide.Event{&record.TermStarted{Term: 2, Node: "n"}}})
		}, nil, redecide.Different, "before that of the previous record"},
	} {
		t.Run(name, func(t *testing.T) {
			v := open(t, trading.Rules().Newest())
			c.last(v)
			if got := v.again(c.change); got.Verdict != c.want || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%s: %s, and not %s: %s\n%s", got.Verdict, got.Reason, c.want, c.reason, got.Value)
			}
		})
	}
}

// liquidate makes a liquidation due.
func (v *venue) liquidate() {
	v.t.Helper()
	v.do(broker, &trading.RegisterCustomer{CustomerCode: "bea"})
	v.do(operator, &trading.MakeDeposit{CustomerCode: "bea", Currency: "USDC", Amount: 1_000_000 * fixed.Unit})
	v.do(broker, &trading.PlaceOrder{CustomerCode: "bea", Symbol: "BTCUSDC_PERP", Action: order.Sell, Type: order.Limit, Amount: number("0.1"), LimitPrice: number("65000")})
	v.do(broker, &trading.PlaceOrder{CustomerCode: "ann", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit, Amount: number("0.1"), LimitPrice: number("65000")})
	v.do(operator, &trading.SetIndexPrice{Symbol: "BTCUSDC_PERP", Price: number("40000")})
	if v.state.Due(v.now) != decide.Blocking {
		v.t.Fatal("no liquidation is due")
	}
}
