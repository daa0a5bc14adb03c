// Package explanations has what the explanations of all interfaces share: it finds the state that a record met, decides the
// record again, and returns the problems of both.
package explanations

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/streams/past"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

// ErrForeign says that a record is not about the object of the explanation.
var ErrForeign = errors.New("explanations: the record is not about the object")

// DifferentError says that this build decides a record differently from the build that made it.
type DifferentError struct {
	Build  string // that made the record; "" if unknown
	Reason string
}

// Error says why.
func (e *DifferentError) Error() string {
	return "explanations: this build decides otherwise: " + e.Reason
}

// Source finds the decisions of a journal.
type Source struct {
	// Past finds the states. It may be nil: then nothing is explained.
	Past    past.Decisions
	Journal string
	Rules   decide.Rules
	// Unknown returns the error for a record that does not exist, or is not about the object.
	Unknown func() *problem.Problem
}

// Deciding calls look with a record and the state that it met. Its errors are problems, apart from unexpected ones. look may
// return ErrForeign and a *DifferentError.
func (s Source) Deciding(ctx context.Context, sequence int64, look func(past.Met) error) error {
	if s.Past == nil {
		return problem.Unavailable("EXPLANATIONS_UNAVAILABLE", "This node explains no records.", time.Minute)
	}
	err := s.Past.Deciding(ctx, s.Journal, 0, sequence, look)
	var different *DifferentError
	switch {
	case errors.Is(err, ErrForeign), errors.Is(err, past.ErrBefore):
		return s.Unknown()
	case errors.As(err, &different):
		return s.rulesNotInBuild(different.Build).Because(err)
	}
	return s.Failed(err)
}

// Failed returns the problem for an error of a past state, or the error itself.
func (s Source) Failed(err error) error {
	var after *past.AfterError
	var busy *past.BusyError
	var trimmed *record.TrimmedError
	var broken *record.BrokenRecordError
	switch {
	case errors.As(err, &after):
		return problem.Conflict("NOT_YET_DECIDED", "The last record is "+strconv.FormatInt(after.Tip.Sequence, 10)+".").RetryAfter(time.Second)
	case errors.As(err, &busy) && busy.Underway:
		return problem.Unavailable("TOO_MANY_PAST_STATES", "The past state is still being computed. Ask again for it.", busy.RetryAfter)
	case errors.As(err, &busy):
		return problem.Unavailable("TOO_MANY_PAST_STATES", "Too many past states are being computed.", busy.RetryAfter)
	case errors.As(err, &trimmed):
		return problem.Conflict(record.CodeTrimmed, "The records before "+strconv.FormatInt(trimmed.Base.Sequence, 10)+" are only in the archive.").Because(err)
	case errors.As(err, &broken):
		var foreign *past.ForeignError
		build := ""
		if errors.As(err, &foreign) {
			build = foreign.Build
		}
		return s.rulesNotInBuild(build).Because(err)
	}
	return err
}

// rulesNotInBuild is the error for a record that this build decides differently or can't apply. build is the one that made the
// record, or "".
func (s Source) rulesNotInBuild(build string) *problem.Problem {
	if build == "" {
		build = "the one that served at that time"
	}
	return problem.Conflict("RULES_NOT_IN_BUILD", "This build (rules "+strconv.Itoa(s.Rules.Newest())+") decides the record differently. The build that made it is "+build+".")
}

// Again is a record that was decided again.
type Again struct {
	Command decide.Command // without a payload for a step
	Single  bool           // the step did one entry of the due work alone
	// Decided is false for a record of an older form, which does not show all its inputs.
	Decided bool
}

// Redecide decides a record again. The error is a *DifferentError if this build decides something else.
func Redecide(j redecide.Journal, met past.Met) (a Again, err error) {
	result := j.Redecide(met.State, met.Time, met.Entry)
	a.Command = result.Command
	switch result.Verdict {
	case redecide.Same, redecide.NotReproduced:
		a.Decided = true
		if result.Command.Payload == nil {
			var in decide.StepInput
			evidence := decide.Evidence{Input: met.Entry.Record.Input}
			err = evidence.ReadInput(&in)
			a.Single = in.Single
		}
		return a, err
	case redecide.NotRedecidable:
		return a, nil
	}
	return a, &DifferentError{Build: met.Build, Reason: result.Reason}
}
