package trading_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/checkpointkey/checkpointkeytest"
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// TestTheStoryIsDecidedAgain tells the story by the newest rules. Every record is decided again as the same bytes, commands
// of every type occur, and their inputs match their schemas and golden files.
func TestTheStoryIsDecidedAgain(t *testing.T) {
	s := newStory(t)
	s.activate(trading.Rules().Newest())
	s.do(decide.CommandRotateCommitment, &decide.RotateCommitment{Generation: 1, Secret: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"})
	s.do(decide.CommandDiscloseCommitment, &decide.DiscloseCommitment{From: 0, To: 1, Recipient: "Auditors & Co."})
	log := checkpointkeytest.Origin("trading", s.at.Journal)
	s.do(decide.CommandRotateCheckpointKey, &decide.RotateCheckpointKey{Generation: 2, Previous: checkpointkeytest.Key(log, 1), Key: checkpointkeytest.Key(log, 2)})
	s.tell()
	for _, name := range append(trading.Payloads().Types(), "engine.step") {
		if s.same[name] == 0 {
			t.Errorf("the story has no %s", name)
		}
	}
	for _, name := range events().Inputs(t) {
		events().Input(t, name, s.inputs[name])
	}
	events().CheckInputs(t, trading.Payloads(), "engine.step")
}

// redecide decides a record again before the state changes.
func (s *story) redecide(c decide.Recorded, d decide.Decision) {
	s.t.Helper()
	r := &record.Record{Sequence: s.at.Sequence, Time: s.at.Time, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	value, err := record.Encode(nil, r)
	if err != nil {
		s.t.Fatal(err)
	}
	if r, err = record.Decode(trading.Rules().Registry(), value); err != nil {
		s.t.Fatal(err)
	}
	result := redecide.Journal{Payloads: trading.Payloads(), Limit: trading.Rules().Limit()}.Redecide(s.state, 0, record.Entry{Record: r, Journal: s.at.Journal, Value: value})
	switch {
	case result.Verdict == redecide.Same, bytes.Equal(result.Value, value): // the story divides work and sets it aside without need
		s.same[c.Type]++
	case result.Verdict == redecide.Different || s.state.RecordsInputs():
		s.t.Fatalf("%s\nis decided again (%s: %s) as\n%s", value, result.Verdict, result.Reason, result.Value)
	}
	if d.Input != "" && !slices.Contains(s.inputs[c.Type], d.Input) {
		s.inputs[c.Type] = append(s.inputs[c.Type], d.Input)
	}
}

// partial gives commands with members that no event carries.
func (s *story) partial() {
	const btc = "BTCUSDC_PERP"
	amount, price, until := dec("0.4"), dec("59000"), s.at.Time+scalar.Hour
	for _, reference := range []string{"bob-8", "bob-9"} { // the second time, the leverage is in force already
		s.place("bob", order.Buy, "60000", "0.001", reference, func(p *trading.PlaceOrder) {
			p.Leverage, p.TimeInForce, p.ExpireTime = 7, order.GTD, s.at.Time+scalar.Hour
		})
	}
	s.do(trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: "bob", ReferenceID: "bob-8", LimitPrice: &price})
	s.do(trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: "bob", ReferenceID: "bob-8", Amount: &amount, LimitPrice: &price, ExpireTime: &until})

	// A position of bob's, and an order that is reduced to it.
	alice := s.state.CustomersOf("alpha")[0].Code
	s.do(trading.CommandCancelAll, &trading.CancelAll{CustomerCode: alice})
	s.place(alice, order.Sell, "65500", "0.01", "", nil)
	s.place("bob", order.Buy, "65500", "0.01", "", func(p *trading.PlaceOrder) { p.TimeInForce = order.IOC })
	held, _ := s.state.Position("bob", btc)
	side, away := order.Sell, "66500"
	if held.Amount.Sign() < 0 {
		side, away = order.Buy, "60500"
	}
	s.place("bob", side, away, "900", "bob-10", func(p *trading.PlaceOrder) { p.ReduceOnly, p.Leverage = true, 7 })
	large := dec("800")
	s.do(trading.CommandAmendOrder, &trading.AmendOrder{CustomerCode: "bob", ReferenceID: "bob-10", Amount: &large})

	s.do(trading.CommandSetFeeProfile, &trading.SetFeeProfile{CustomerCode: "bob", Symbol: btc, MakerFee: dec("-0.5"), TakerFee: dec("3"), Operator: true})
	tiers := instrument(btc).Tiers
	fee, stale := dec("4.4"), 60
	s.do(trading.CommandChangeInstrument, &trading.ChangeInstrument{Symbol: btc, TakerFee: &fee, IndexStaleSeconds: &stale, Tiers: tiers})
	s.at.Time = until
	s.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, s.state.Step(s.at, true))
}
