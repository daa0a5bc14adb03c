package record

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Seed is a state to start a fold from, and where it stands.
type Seed struct {
	State    decide.State
	Position Position
	Term     int64       // of the last taken record up to the position
	URL      string      // of the node that took it; "" if that isn't known
	Time     scalar.Time // of the record at the position
	Journal  scalar.ID   // the journal's identity; zero if that isn't known
	Anchors  []Position  // positions before it, in order, that the fold which made the state has passed
}
