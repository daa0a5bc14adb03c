package projections

import (
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
)

// Span is a range of time: From inclusive, To exclusive. A zero Time leaves that end open.
type Span struct{ From, To scalar.Time }

// first selects the sequence of a journal's first record at or after a time, or the next free sequence if there is none.
// Record times never decrease and sequences have no gaps, so a binary search by the primary key finds it: records up to
// low are earlier, and records from high on are not.
const first = `(WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = ?)
		UNION ALL
		SELECT CASE WHEN r.time < ? THEN r.sequence ELSE low END, CASE WHEN r.time < ? THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = ? AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half)`

// in limits rows to records of the journal within the span. The named column must contain the record's sequence. The
// condition is on sequences, since the indexes of all lists begin with them.
func (s Span) in(w *Where, journal, sequence string) {
	bound := func(operator string, t scalar.Time) {
		at := column.Timestamp(t)
		w.And(sequence+" "+operator+" "+first, journal, at, at, journal)
	}
	if !s.From.IsZero() {
		bound(">=", s.From)
	}
	if !s.To.IsZero() {
		bound("<", s.To)
	}
}
