package recordtest

import (
	"errors"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Note is an event that the generic encoder encodes.
type Note struct {
	Text string   `json:"text"`
	List []string `json:"list,omitempty"`
}

// EventType returns test.note.
func (*Note) EventType() string { return "test.note" }

// EventVersion returns 2.
func (*Note) EventVersion() int { return 2 }

// Quick is an event that encodes itself. Its N must be 7, and encoding fails if it is negative.
type Quick struct {
	N int `json:"n"`
}

// EventType returns test.quick.
func (*Quick) EventType() string { return "test.quick" }

// AppendJSON implements record.Appender.
func (q *Quick) AppendJSON(b []byte) ([]byte, error) {
	if q.N < 0 {
		return b, errors.New("negative")
	}
	return append(b, `{"n":7}`...), nil
}

// Rules are the rules of a trading journal with the events Note and Quick. They decide nothing.
type Rules struct{}

// Journal returns trading.
func (Rules) Journal() string { return "trading" }

// NewState returns nil.
func (Rules) NewState() decide.State { return nil }

// Limit returns 1 MiB.
func (Rules) Limit() int { return 1 << 20 }

// Newest returns 1.
func (Rules) Newest() int { return 1 }

// Registry returns the events.
func (Rules) Registry() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(Note) })
	r.Add(func() decide.Event { return new(Quick) })
	return r
}

// Sample returns a record of Rules with every member set.
func Sample() *record.Record {
	return &record.Record{Sequence: 12, Prev: record.Hash{0xab, 0x01}, Time: scalar.TimeOf(time.Date(2026, 3, 4, 5, 6, 7, 89000, time.UTC)),
		Command: decide.Recorded{ID: scalar.ID{1, 2, 3}, Type: "test.say", Actor: decide.Actor{Sub: "alice", Broker: "alpha", Customer: "C1"},
			Metadata: decide.Metadata{Key: "k<1>", Fingerprint: "00ff", Source: &decide.Source{Journal: "onboarding", Sequence: 9}}},
		Outcome: decide.Rejected, Events: []decide.Event{&Note{Text: "a<b>&\u2028\"é\\", List: []string{"x"}}, &Quick{7}}}
}

// Link returns the value of a record with the sequence and the events that follows the value with the hash prev.
func Link(sequence int64, prev record.Hash, events ...decide.Event) []byte {
	r := Sample()
	r.Sequence, r.Prev, r.Events = sequence, prev, events
	switch events[0].(type) {
	case *record.Genesis, *record.TermStarted:
		r.Command.Type = events[0].EventType()
	}
	value, err := record.Encode(nil, r)
	if err != nil {
		panic(err)
	}
	return value
}
