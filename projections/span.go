package projections

import (
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
)

// Span is a span of time: From inclusive, To exclusive. The zero Time leaves that end open.
type Span struct{ From, To scalar.Time }

// first is the sequence of a journal's first record at or after a time, or of its next record if there is none. Times
// never go back along the sequence and no record is missing, so halving finds it by the records' key: below every low
// all records are earlier, and from high on none is.
const first = `(WITH RECURSIVE half (low, high) AS (
		SELECT -1::bigint, (SELECT COALESCE(max(r.sequence), -1) + 1 FROM records r WHERE r.journal = ?)
		UNION ALL
		SELECT CASE WHEN r.time < ? THEN r.sequence ELSE low END, CASE WHEN r.time < ? THEN high ELSE r.sequence END
		FROM half, LATERAL (SELECT r.sequence, r.time FROM records r WHERE r.journal = ? AND r.sequence = (low + high) / 2 OFFSET 0) r
		WHERE high - low > 1
	) SELECT min(high) FROM half)`

// In confines rows, whose record a column names, to the records of the journal within the span. The span of time is
// turned into one of sequences, which the index of every list is made of.
func (s Span) In(w *Where, journal, sequence string) {
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
