package trading_test

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// sessions opens two connections, one of which ends; then nothing is heard of the other's node.
func (s *story) sessions() {
	gateway := scalar.ID{0xaa}
	node := func(payload decide.Payload) {
		c := decide.Command{ID: scalar.ID{2, byte(s.at.Sequence)}, Type: payload.CommandType(), Actor: decide.Actor{System: "node"}, Payload: payload}
		d, err := s.state.Decide(s.at, c)
		if err != nil {
			s.t.Fatal(err)
		}
		s.fold(c.Recorded(), d)
	}
	over := func(session scalar.ID) {
		c := decide.Command{ID: scalar.ID{3, byte(s.at.Sequence)}, Type: trading.CommandPlaceOrder, Actor: decide.Actor{Sub: "broker-a", Broker: "alpha"},
			Metadata: decide.Metadata{Session: session}, Payload: &trading.PlaceOrder{CustomerCode: "bob", Symbol: "BTCUSDC_PERP", Action: order.Buy, Type: order.Limit,
				Amount: dec("0.001"), LimitPrice: dec("60000")}}
		d, err := s.state.Decide(s.at, c)
		if err != nil {
			s.t.Fatal(err)
		}
		s.fold(c.Recorded(), d)
	}
	for _, session := range []scalar.ID{{0xb1}, {0xb2}} {
		node(&trading.OpenSession{Session: session, Gateway: gateway, Username: "broker-a", Broker: "alpha"})
		over(session)
	}
	node(&trading.EndSession{Session: scalar.ID{0xb1}})
	node(&trading.KeepGateway{Gateway: gateway})
	s.at.Time += 15 * scalar.Second
	step := decide.Recorded{Type: "engine.step", Actor: decide.Engine}
	s.fold(step, s.state.Step(s.at, false))
	s.fold(step, s.state.Step(s.at, false))
}
