package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/projections/column"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// ErrAhead says that the rows have not reached a sequence.
var ErrAhead = errors.New("projections: the rows have not reached the sequence")

// HistoryError says that the tables of history do not answer as of a sequence.
type HistoryError struct {
	Journal  string
	Sequence int64
	From     int64 // the first sequence as of which they answer
	// Dropped says that the earlier versions were dropped for their age. Otherwise an earlier build did not write them, and
	// a rebuild makes them.
	Dropped bool
}

// Error describes the bound.
func (e *HistoryError) Error() string {
	return fmt.Sprintf("projections: the history of %s begins at sequence %d, after %d", e.Journal, e.From, e.Sequence)
}

// ReadAsOf runs statements that read rows as of a sequence of a journal, in one snapshot. It returns ErrAhead if the rows
// have not reached the sequence, and a *HistoryError if versions of that time are missing. The collected rows
// are then meaningless.
func ReadAsOf(ctx context.Context, db DB, journal string, sequence int64, statements ...Statement) error {
	var begins, retained int64 = -1, -1
	lock := ""
	if journal == partitioned {
		lock = lockHistory
	}
	asOf, err := read(ctx, db, journal, lock, append([]Statement{{
		bounds, []any{journal}, func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&begins, &retained}, func() error { return nil })
			return err
		}}}, statements...)...)
	switch {
	case err != nil:
		return err
	case asOf < sequence:
		return ErrAhead
	case sequence < retained:
		return &HistoryError{journal, sequence, retained, true}
	case sequence < begins:
		return &HistoryError{journal, sequence, begins, false}
	}
	return nil
}

// Number returns a statement that reads one integer, or -1 without a row.
func Number(into *int64, sql string, args ...any) Statement {
	return Statement{sql, args, func(rows pgx.Rows) error {
		*into = -1
		_, err := pgx.ForEachRow(rows, []any{into}, func() error { return nil })
		return err
	}}
}

// Moment is the meaning of a time in a journal.
type Moment struct {
	Sequence int64 // of the last record with that time or an earlier one; -1 without one
	// Final says that a later record was applied, so that no record can change the Sequence: times never decrease.
	Final bool
	Tip   scalar.Time // the time of the last record applied; zero without records
}

// MomentOf finds the last record of a journal with a time or an earlier one.
func MomentOf(ctx context.Context, db DB, journal string, at scalar.Time) (m Moment, err error) {
	var w Where
	later := column.Timestamp(at + 1)
	find := w.bind("SELECT "+first+" - 1", journal, later, later, journal)
	tip, err := Read(ctx, db, journal, Number(&m.Sequence, find, w.args...),
		Statement{"SELECT time FROM checkpoints WHERE journal = $1 AND partition = 0", []any{journal}, func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{column.IntoTime(&m.Tip)}, func() error { return nil })
			return err
		}})
	m.Final = m.Sequence < tip
	return m, err
}

// TimeOf returns the time of a record, or false if the rows have not reached it.
func TimeOf(ctx context.Context, db DB, p record.LogPosition) (at scalar.Time, found bool, err error) {
	_, err = Read(ctx, db, p.Journal, Statement{"SELECT time FROM records WHERE journal = $1 AND sequence = $2", []any{p.Journal, p.Sequence},
		func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{column.IntoTime(&at)}, func() error { found = true; return nil })
			return err
		}})
	return at, found, err
}
