package record

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Record is what one command caused. It is appended, valid and applied as a whole.
type Record struct {
	Sequence int64       // number of valid records before this one
	Prev     Hash        // of the value of the previous valid record; zero for the genesis
	Time     scalar.Time // of the decision; never before that of the previous record
	Command  decide.Recorded
	Input    string // the part of the command that the events do not carry; see decide.Decision
	Outcome  decide.Outcome
	Events   []decide.Event // at least one
}

// Entry is a valid record and its position in the log. Entries may be shared and MUST NOT be changed.
type Entry struct {
	Record   *Record // nil if the reader asked not to decode it; see Chain.DecodeFrom
	Position Position
	Journal  scalar.ID // the identity of the journal, from its genesis
	Value    []byte    // the bytes in the log
}

// Stamp returns the stamp that the rules got when they decided the record.
func (e Entry) Stamp() decide.Stamp {
	return decide.Stamp{Journal: e.Journal, Sequence: e.Record.Sequence, Time: e.Record.Time, Prev: e.Record.Prev}
}
