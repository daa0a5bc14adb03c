package projections

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/projections/column"
)

// Span is a span of time: From inclusive, To exclusive. The zero Time leaves that end open.
type Span struct{ From, To decide.Time }

// In confines rows to the records of the journal within the span. Times never go back along the sequence, so the span
// of time is turned into one of sequences, which the index of every list is made of.
func (s Span) In(w *Where, journal string) {
	const first = "(SELECT r.sequence FROM records r WHERE r.journal = ? AND r.time >= ? ORDER BY r.time, r.sequence LIMIT 1)"
	if !s.From.IsZero() {
		w.And("sequence >= "+first, journal, column.Timestamp(s.From)) // nothing is >= NULL, which is right
	}
	if !s.To.IsZero() {
		w.And("sequence < COALESCE("+first+", 9223372036854775807)", journal, column.Timestamp(s.To))
	}
}
