// Package asof answers reads as of a past record: it reads the parameter as_of, finds the record that it means, and names
// that record in the response.
//
// A question names positions ("trading/0@123", several separated by commas), or a time. A position may carry the record's
// root ("trading/0@123:ROOT"): if the record has another root, the response is 409 ROOT_MISMATCH. A time means the last
// record with that time or an earlier one. A journal that is not named is resolved by the time of the named records, the
// latest if there are several. The same question gets the same answer for ever, with one exception: while a journal is
// idle, a time after its last record means that record, and the response says that this is not final.
//
// Rights are those of today. An object that did not exist yet is 404 NOT_YET, and a record that does not exist yet is 409
// NOT_YET_DECIDED. No answer is empty because its history is not known.
package asof

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/projections"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Parameter is the name of the query parameter.
const Parameter = "as_of"

// Question is a valid parameter as_of: positions, or a time.
type Question struct {
	positions []named
	time      scalar.Time
}

// journals are the journals that a position may name.
var journals = []string{"trading", "onboarding", "identity"}

// Read reads the parameter. It returns nil if the request has none or an invalid one; Done of the form reports the latter.
func Read(query *input.Form) *Question {
	text := query.OptionalString(Parameter)
	if !text.Set {
		return nil
	}
	if !strings.Contains(text.Value, "@") {
		at := query.Bound(Parameter, false)
		if !at.Set {
			return nil
		}
		return &Question{time: at.Value}
	}
	q := &Question{}
	for part := range strings.SplitSeq(text.Value, ",") {
		p, err := parseNamed(part)
		switch {
		case err != nil || !slices.Contains(journals, p.Journal) || p.Partition != 0:
			query.Fault(Parameter, validation.InvalidValue,
				"as_of must be a time, or positions like trading/0@123 or trading/0@123:ROOT separated by commas, with record roots in base64")
			return nil
		case slices.ContainsFunc(q.positions, func(o named) bool { return o.Journal == p.Journal }):
			query.Fault(Parameter, validation.InvalidValue, "as_of names the journal "+p.Journal+" more than once")
			return nil
		}
		q.positions = append(q.positions, p)
	}
	return q
}

// Source holds the rows and the log that answer a question about a journal.
type Source struct {
	Rows rows.Source
	// Log follows the journal. It knows where the log ends.
	Log record.Follower
	// Roots knows the roots of the records of all journals.
	Roots Roots
	// States finds whole states of the journal, for AnswerState. It may be nil.
	States *States
	// Failed returns the problem for an error of States, or the error itself.
	Failed func(error) error
	// Clock is the journal's.
	Clock *logclock.Clock
}

// idle is how long a journal must have had no record until a time after its last record is answered. Records that are on
// their way have earlier times.
const idle = scalar.Second

// waitLimit is how long a question waits for rows that are behind the log.
const waitLimit = 2 * time.Second

// Answer finds the record that the question means, sets the positions of the response, and calls read with the record's
// sequence. The errors of read are those of projections.ReadAsOf.
func (q *Question) Answer(c echo.Context, s Source, read func(ctx context.Context, db projections.DB, sequence int64) error) (err error) {
	defer func() { keepNoPosition(c, err) }()
	ctx := rest.RequestOf(c).Context()
	sequence, err := q.find(c, s)
	if err != nil {
		return err
	}
	return s.Read(ctx, sequence, read)
}

// Read calls read with the rows and a sequence. It calls read again after the rows have reached the sequence, or, if they lack the
// object that is asked for, the end of the log. The errors of read are those of projections.ReadAsOf and Unknown, and Read returns
// their problems.
func (s Source) Read(ctx context.Context, sequence int64, read func(ctx context.Context, db projections.DB, sequence int64) error) error {
	again := func(until int64) error {
		if err := s.catchUp(ctx, until); err != nil {
			return err
		}
		return read(ctx, s.Rows.DB, sequence)
	}
	err := read(ctx, s.Rows.DB, sequence)
	if errors.Is(err, projections.ErrAhead) {
		err = again(sequence)
	}
	var unknown *unknownError
	if errors.As(err, &unknown) {
		err = again(-1)
	}
	return problemOf(err)
}

// unknownError is the problem of a read that did not find an object.
type unknownError struct{ error }

func (e *unknownError) Unwrap() error { return e.error }

// Unknown marks the problem of an object that the rows do not have. Source.Read then waits until the rows have reached the end of the
// log and reads again: a record after the one that the question means may have made the object. The answer is NOT_YET then.
func Unknown(err error) error { return &unknownError{err} }

// find returns the sequence of the record that the question means, and sets the positions of the response.
func (q *Question) find(c echo.Context, s Source) (sequence int64, err error) {
	ctx := rest.RequestOf(c).Context()
	sequence, final, err := q.resolve(ctx, s)
	if err != nil {
		return sequence, err
	}
	if err := q.confirm(ctx, s); err != nil {
		return sequence, err
	}
	var all []record.LogPosition
	for _, p := range q.positions {
		all = append(all, p.LogPosition)
	}
	if !slices.ContainsFunc(all, func(p record.LogPosition) bool { return p.Journal == s.Rows.Journal }) {
		all = append(all, record.LogPosition{Journal: s.Rows.Journal, Sequence: sequence})
	}
	rest.RequestOf(c).SetPastPositions(all, final)
	if sequence < 0 {
		return sequence, NotYet("The journal " + s.Rows.Journal + " had no records.")
	}
	return sequence, nil
}

// resolve returns the sequence of the record, and whether the question will always mean this record.
func (q *Question) resolve(ctx context.Context, s Source) (sequence int64, final bool, err error) {
	at, named := q.time, false
	for _, p := range q.positions {
		if p.Journal == s.Rows.Journal {
			sequence, named = p.Sequence, true
			continue
		}
		if p.Sequence < 0 {
			continue
		}
		recorded, found, err := projections.TimeOf(ctx, s.Rows.DB, p.LogPosition)
		if err != nil {
			return 0, false, problem.SourceFailed(err)
		}
		if !found {
			return 0, false, notYetDecided(p.String())
		}
		at = max(at, recorded)
	}
	if named {
		return sequence, true, nil
	}
	if at.IsZero() { // before the genesis of another journal, there was nothing here either
		return -1, true, nil
	}
	m, err := projections.MomentOf(ctx, s.Rows.DB, s.Rows.Journal, at)
	if err == nil && !m.Final { // the log may have a later record
		if err = s.catchUp(ctx, -1); err == nil {
			m, err = projections.MomentOf(ctx, s.Rows.DB, s.Rows.Journal, at)
		}
	}
	if err != nil {
		return 0, false, problemOf(err)
	}
	now := s.Clock.Now()
	if !m.Final && (at > now || m.Tip > now-idle) {
		return 0, false, notYetDecided(at.String())
	}
	return m.Sequence, m.Final, nil
}

// catchUp waits until the rows have reached the end of the log, or the sequence if that is earlier and not negative. It
// returns a 409 if the log ends before the sequence.
func (s Source) catchUp(ctx context.Context, sequence int64) error {
	waiting, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	if err := s.reach(waiting, sequence); err != nil {
		return err
	}
	tip := sequence
	if tip < 0 {
		tip = s.Log.Position().Sequence
	}
	return unavailable(ctx, s.Rows.Wait(waiting, tip))
}

// reach waits until the fold has reached the end of the log. It returns a 409 if the log ends before the sequence.
func (s Source) reach(ctx context.Context, sequence int64) error {
	waiting, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	if err := s.Log.WaitTip(waiting); err != nil {
		return unavailable(ctx, err)
	}
	if s.Log.Position().Sequence < sequence {
		return notYetDecided(record.LogPosition{Journal: s.Rows.Journal, Sequence: sequence}.String())
	}
	return nil
}

// unavailable returns the problem for an error of a wait, unless the request was canceled.
func unavailable(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		err = problem.Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
	}
	return err
}

// problemOf returns the response to an error of a read.
func problemOf(err error) error {
	var missing *projections.HistoryError
	var known *problem.Problem
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &missing):
		from := record.LogPosition{Journal: missing.Journal, Sequence: missing.From}
		if missing.Dropped {
			return problem.New(http.StatusGone, "HISTORY_DROPPED", fmt.Sprintf("The history before %s is no longer kept.", from))
		}
		return problem.Conflict("HISTORY_NOT_BUILT", fmt.Sprintf("The history before %s was not built. `perpetua rebuild` builds it.", from))
	}
	return problem.SourceFailed(err)
}

// NotYet returns the 404 for an object that did not exist as of the record.
func NotYet(detail string) *problem.Problem { return problem.NotFound("NOT_YET", detail) }

// BornBy returns the error of a read, or the 404 for an object that a later record made, or none that the rows have: born is the
// sequence of that record, or -1. detail is that of the 404.
func BornBy(err error, born, sequence int64, detail string) error {
	if err == nil && (born < 0 || born > sequence) {
		return NotYet(detail)
	}
	return err
}

// keepNoPosition removes the position of the response if the record that the question means does not exist: clients may send a
// position that they got in X-Min-Log-Position.
func keepNoPosition(c echo.Context, err error) {
	if p, ok := errors.AsType[*problem.Problem](err); ok && p.Code == undecided {
		c.Response().Header().Del(operation.HeaderLogPosition)
		c.Response().Header().Del(operation.HeaderLogPositionFinal)
	}
}

const undecided = "NOT_YET_DECIDED"

func notYetDecided(what string) *problem.Problem {
	return problem.Conflict(undecided, "Which record is the last one as of "+what+" is not decided yet.").RetryAfter(time.Second)
}
