package journaltest

import "github.com/perpetua-exchange/perpetua/domain/decide"

// Squeamish is Words with a state that panics on applying the word "poison".
type Squeamish struct{ Words }

// NewState implements decide.Rules.
func (Squeamish) NewState() decide.State { return new(faint) }

type faint struct{ WordList }

// Evolve implements decide.State.
func (f *faint) Evolve(at decide.Stamp, c decide.Recorded, o decide.Outcome, events []decide.Event) {
	for _, e := range events {
		if e, ok := e.(*WordAdded); ok && e.Word == "poison" {
			panic("no " + e.Word)
		}
	}
	f.WordList.Evolve(at, c, o, events)
}
