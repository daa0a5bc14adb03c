package trading_test

import (
	"bytes"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/streams/commitment"
	"github.com/perpetua-exchange/perpetua/streams/liabilities"
)

// stated tells of the next instant of funding, and what the venue owes then.
func (s *story) stated() {
	_, next, ok := s.state.Funding("BTCUSDC_PERP")
	if !ok {
		s.t.Fatal("there will be no funding")
	}
	s.at.Time = max(s.at.Time, next)
	fixed := func() (trading.FundingInstant, bool) {
		instant, _ := s.state.FundingInstant()
		return instant, instant.Time >= next
	}
	for range 100 {
		if _, ok := fixed(); ok {
			break
		}
		s.fold(decide.Recorded{Type: "engine.step", Actor: decide.Engine}, s.state.Step(s.at, false))
	}
	instant, ok := fixed()
	if !ok {
		s.t.Fatal("no funding was fixed")
	}
	key, err := commitment.ParseEpochKey(bytes.Repeat([]byte{7}, commitment.KeySize))
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := liabilities.State(liabilities.Of(s.state, instant), key)
	if err != nil {
		s.t.Fatal(err)
	}
	c := decide.Command{ID: scalar.ID{4, byte(s.at.Sequence)}, Type: trading.CommandRecordLiabilities, Actor: decide.Actor{System: "liabilities"},
		Payload: &trading.RecordLiabilities{Statement: b.Statement}}
	d, err := s.state.Decide(s.at, c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.fold(c.Recorded(), d)
}
