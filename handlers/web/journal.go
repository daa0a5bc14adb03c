package web

import (
	"errors"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// SetPosition sets the log position in the headers of the response to a write. The user's next read on this node is
// at least that new.
func SetPosition(c echo.Context, p record.LogPosition) { RequestOf(c).answerAt(p) }

// SetReadPosition is SetPosition for a read. sequence is the source's position in the journal's only partition. It
// MUST NOT be called under the lock of the source.
func SetReadPosition(c echo.Context, name string, sequence int64) {
	a, p := RequestOf(c), record.LogPosition{Journal: name, Sequence: sequence}
	a.transport.answerAt(p)
	a.answered.looked(p)
}

// Submit submits a command and sets the position of the response, even for a refusal.
func Submit(a Request, to submit.Submitter, name string, cmd decide.Command) (submit.Result, error) {
	result, err := to.Submit(a.withCredential(), name, cmd)
	if err == nil {
		a.answerAt(result.Position)
		return result, nil
	}
	var refused *submit.RefusedError
	if errors.As(err, &refused) {
		a.answerAt(refused.AsOf)
	}
	return result, err
}

// answerAt sets the position of the response to a write and records it for the user's next read.
func (a Request) answerAt(p record.LogPosition) {
	a.transport.answerAt(p)
	a.answered.wrote(p)
}

// fromJournal returns the problem for an error of the journal, or nil for another error. ProblemOf has already
// handled refusals, which unwrap to a *decide.Refusal.
func fromJournal(err error) *Problem {
	var (
		notAccepted *submit.NotAcceptedError
		unknown     *submit.OutcomeUnknownError
		diverged    *record.DivergedError
		broken      *record.BrokenRecordError
		trimmed     *record.TrimmedError
		base        *record.BaseError
	)
	switch {
	case errors.As(err, &notAccepted):
		return notAcceptedProblem(notAccepted.RetryAfter).Because(err)
	case errors.As(err, &unknown):
		return OutcomeUnknown(unknown.CommandID).Because(err)
	case errors.As(err, &diverged), errors.As(err, &trimmed), errors.As(err, &base):
		return NewProblem(http.StatusServiceUnavailable, record.CodeDiverged,
			"The log does not hold what was read from it before. An operator has to look at it.").Because(err)
	case errors.As(err, &broken):
		return NewProblem(http.StatusServiceUnavailable, record.CodeBroken,
			"The log holds a record that cannot be applied. An operator has to look at it.").Because(err)
	}
	return nil
}

func notAcceptedProblem(retryAfter time.Duration) *Problem {
	return NewProblem(http.StatusServiceUnavailable, submit.CodeNotAccepted,
		"The request was not accepted and has changed nothing. It may be sent again.").RetryAfter(max(retryAfter, time.Second))
}
