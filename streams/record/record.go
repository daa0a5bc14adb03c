package record

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Record is what one command caused, and the unit of everything: it is appended, valid and applied as a whole.
type Record struct {
	Sequence int64
	Prev     Hash // of the previous valid record's value
	Time     scalar.Time
	Command  decide.Recorded
	Outcome  decide.Outcome
	Events   []decide.Event // never empty
}

// Entry is one valid record and its place in the log. Entries are shared: nobody may change what they hold.
type Entry struct {
	Record   *Record
	Position Position
	Journal  scalar.ID // the journal's random identity
	Value    []byte    // as it stands in the log
}

// Stamp returns the stamp that the record was decided at.
func (e Entry) Stamp() decide.Stamp {
	return decide.Stamp{Journal: e.Journal, Sequence: e.Record.Sequence, Time: e.Record.Time}
}
