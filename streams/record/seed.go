package record

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Seed is a state at a position, from which a replay can start.
type Seed struct {
	State    decide.State
	Position Position
	Term     int64       // the term of the last taken record up to the position
	URL      string      // of the node that took that term; "" if unknown
	Time     scalar.Time // of the record at the position
	Journal  scalar.ID   // the journal's identity; zero if unknown
	Anchors  []Position  // ascending positions before it that the replay behind the state has passed
}
