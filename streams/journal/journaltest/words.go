// Package journaltest provides helpers for tests of packages that use a journal: very simple rules, and a client with a
// broker for the duration of a test.
package journaltest

import (
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Words is a set of rules under which every command is a word. It is accepted and appended to the state.
type Words struct{ Name string } // the journal's name

// WordAdded is the event of an accepted word.
type WordAdded struct {
	Word string `json:"word"`
}

// EventType implements decide.Event.
func (*WordAdded) EventType() string { return "test.said" }

// Journal implements decide.Rules.
func (w Words) Journal() string { return w.Name }

// NewState implements decide.Rules.
func (Words) NewState() decide.State { return new(WordList) }

// Limit implements decide.Rules.
func (Words) Limit() int { return 8 << 10 }

// Newest implements decide.Rules.
func (Words) Newest() int { return 1 }

// Registry implements decide.Rules.
func (Words) Registry() *decide.Registry {
	r := decide.NewRegistry()
	r.Add(func() decide.Event { return new(WordAdded) })
	return r
}

// WordList is the state of Words: all words, in order.
type WordList struct{ Words []string }

// Decide implements decide.State.
func (*WordList) Decide(_ decide.Stamp, c decide.Command) (decide.Decision, error) {
	return decide.Decision{Outcome: decide.Accepted, Events: []decide.Event{&WordAdded{c.Payload.(string)}}}, nil
}

// Evolve implements decide.State.
func (h *WordList) Evolve(_ decide.Stamp, _ decide.Recorded, _ decide.Outcome, events []decide.Event) {
	for _, e := range events {
		if e, ok := e.(*WordAdded); ok {
			h.Words = append(h.Words, e.Word)
		}
	}
}

// Due implements decide.State.
func (*WordList) Due(scalar.Time) decide.Urgency { return decide.Nothing }

// NextDue implements decide.State.
func (*WordList) NextDue() (scalar.Time, bool) { return 0, false }

// Step implements decide.State.
func (*WordList) Step(decide.Stamp, bool) decide.Decision { return decide.Decision{} }

// SetAside implements decide.State.
func (*WordList) SetAside(decide.Stamp, string) decide.Decision { return decide.Decision{} }

// Say returns the command to say a word.
func Say(word string) decide.Command {
	return decide.Command{ID: record.NewCommandID(time.Now()), Type: "test.say", Actor: decide.Actor{Sub: "u"}, Payload: word}
}
