package problem

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// StatusClosed is the status in the log and the metrics for a request that the client aborted.
const StatusClosed = 499

// Of returns the problem for an error.
func Of(err error) *Problem {
	var (
		problem *Problem
		refusal *decide.Refusal
		echoErr *echo.HTTPError
		limit   *http.MaxBytesError
	)
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &refusal):
		return Refused(refusal)
	case errors.As(err, &limit):
		return TooLarge()
	case errors.As(err, &echoErr):
		return fromEcho(echoErr)
	}
	if p := fromJournal(err); p != nil {
		return p
	}
	if errors.Is(err, context.Canceled) {
		return New(StatusClosed, "CLIENT_CLOSED_REQUEST", "The client closed the connection.").Because(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Unavailable(timeout, "The answer was not ready in time.", time.Second).Because(err)
	}
	return New(http.StatusInternalServerError, "INTERNAL", "The server failed to answer. The request id names the failure.").
		Because(err)
}

func fromEcho(e *echo.HTTPError) *Problem {
	switch e.Code {
	case http.StatusNotFound:
		return NotFound("NOT_FOUND", "There is nothing at this address.")
	case http.StatusMethodNotAllowed:
		return New(e.Code, "METHOD_NOT_ALLOWED", "This address does not take this method.")
	case http.StatusRequestEntityTooLarge:
		return TooLarge()
	case http.StatusUnauthorized:
		return Unauthorized("A valid bearer token is required.")
	}
	code := strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_", "'", "").Replace(http.StatusText(e.Code)))
	if code == "" {
		code = "ERROR"
	}
	return New(e.Code, code, http.StatusText(e.Code)+".").Because(e)
}

// fromJournal returns the problem for an error of the journal, or nil for another error. Of has already
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
		return NotAccepted(notAccepted.RetryAfter).Because(err)
	case errors.As(err, &unknown):
		return OutcomeUnknown(unknown.CommandID).Because(err)
	case errors.As(err, &diverged), errors.As(err, &trimmed), errors.As(err, &base):
		return New(http.StatusServiceUnavailable, record.CodeDiverged,
			"The log does not hold what was read from it before. An operator has to look at it.").Because(err)
	case errors.As(err, &broken):
		return New(http.StatusServiceUnavailable, record.CodeBroken,
			"The log holds a record that cannot be applied. An operator has to look at it.").Because(err)
	}
	return nil
}

// NotAccepted returns the 503 for a request that changed nothing and may be sent again.
func NotAccepted(retryAfter time.Duration) *Problem {
	return New(http.StatusServiceUnavailable, submit.CodeNotAccepted,
		"The request was not accepted and has changed nothing. It may be sent again.").RetryAfter(max(retryAfter, time.Second))
}

// TooLarge returns the 413 for a JSON body above the limit.
func TooLarge() *Problem {
	return New(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", "The body is larger than 1 MiB.")
}

// HeaderGivenTwice returns the problem for a header that is given more than once.
func HeaderGivenTwice(name string) *Problem {
	return InvalidHeader(name, validation.DuplicateField, "the header is given more than once")
}

// InvalidHeader returns the 400 for a request header with an invalid value.
func InvalidHeader(name, code, message string) *Problem {
	return Invalid(validation.FieldError{In: validation.InHeader, Path: validation.At(name), Code: code, Message: message})
}

// timeout is the code of an error of which only the deadline is known.
const timeout = "TIMEOUT"

// SourceFailed returns the problem for a failed read, or one that took too long. Problems and errors of the log are returned
// unchanged.
func SourceFailed(err error) error {
	var known *Problem
	if p := Of(err); errors.As(err, &known) || p.Code != "INTERNAL" && p.Code != timeout {
		return err
	}
	return Unavailable("SOURCE_UNAVAILABLE", "The source of this answer is not available.", time.Second).Because(err)
}

// Failed reports whether the problem is an error of the server, which must be logged.
func (p *Problem) Failed() bool {
	return p.Status >= http.StatusInternalServerError && p.Status != http.StatusServiceUnavailable
}

// JSON returns the encoded problem.
func (p *Problem) JSON() []byte {
	body, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true)) // a replaced character is better than no response
	if err != nil {
		panic("problem: a problem has no JSON form: " + err.Error())
	}
	return body
}
