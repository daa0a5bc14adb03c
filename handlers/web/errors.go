package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// statusClosed is the status in the log and the metrics for a request that the client aborted.
const statusClosed = 499

// ProblemOf returns the problem for an error.
func ProblemOf(err error) *Problem {
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
		return tooLarge()
	case errors.As(err, &echoErr):
		return fromEcho(echoErr)
	}
	if p := fromJournal(err); p != nil {
		return p
	}
	if errors.Is(err, context.Canceled) {
		return NewProblem(statusClosed, "CLIENT_CLOSED_REQUEST", "The client closed the connection.").Because(err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Unavailable("TIMEOUT", "The answer was not ready in time.", time.Second).Because(err)
	}
	return NewProblem(http.StatusInternalServerError, "INTERNAL", "The server failed to answer. The request id names the failure.").
		Because(err)
}

func fromEcho(e *echo.HTTPError) *Problem {
	switch e.Code {
	case http.StatusNotFound:
		return NotFound("NOT_FOUND", "There is nothing at this address.")
	case http.StatusMethodNotAllowed:
		return NewProblem(e.Code, "METHOD_NOT_ALLOWED", "This address does not take this method.")
	case http.StatusRequestEntityTooLarge:
		return tooLarge()
	case http.StatusUnauthorized:
		return Unauthorized("A valid bearer token is required.")
	}
	code := strings.ToUpper(strings.NewReplacer(" ", "_", "-", "_", "'", "").Replace(http.StatusText(e.Code)))
	if code == "" {
		code = "ERROR"
	}
	return NewProblem(e.Code, code, http.StatusText(e.Code)+".").Because(e)
}

// errorHandler returns the handler that writes an error as a problem, in the form that belongs to the path.
func errorHandler(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed { // a response that has begun cannot become a problem
			return
		}
		p := RequestOf(c).problem(err)
		if p.failed() {
			log.ErrorContext(c.Request().Context(), "request failed", "request_id", p.RequestID, "error", err)
		}
		private(c)
		h := c.Response().Header()
		if p.Wait > 0 {
			h.Set("Retry-After", strconv.FormatInt(p.Wait, 10))
		}
		if p.Status == http.StatusMethodNotAllowed {
			h.Set(echo.HeaderAllow, allowed(h.Get(echo.HeaderAllow)))
		}
		if p.Status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="perpetua"`)
		}
		if err := writeProblem(c, &p); err != nil {
			log.DebugContext(c.Request().Context(), "an error could not be written", "request_id", p.RequestID, "error", err)
		}
	}
}

// problem returns the problem for an error of this request.
func (a Request) problem(err error) Problem {
	p := *ProblemOf(err) // copy, because requests may share the original
	p.RequestID = a.id
	p.Instance = a.transport.target() // a URI reference; the unescaped path may not be valid text
	return p
}

// failed reports whether the problem is an error of the server, which must be logged.
func (p *Problem) failed() bool {
	return p.Status >= http.StatusInternalServerError && p.Status != http.StatusServiceUnavailable
}

// PartProblem returns the problem of one part of a request that is answered part by part. An error of the
// server is logged with the request.
func (a Request) PartProblem(err error) *Problem {
	p := a.problem(err)
	a.problems = append(a.problems, p.Code)
	if p.failed() {
		a.failures = append(a.failures, err)
	}
	return &p
}

// allowed returns the Allow header for a path with the given methods. It adds HEAD, which Echo omits, and OPTIONS,
// which the server answers; notForOthers omits both.
func allowed(methods string) string {
	taken := func(method string) bool {
		return method == http.MethodOptions || strings.Contains(methods, method) || method == http.MethodHead && strings.Contains(methods, http.MethodGet)
	}
	all := []string{http.MethodOptions, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	return strings.Join(slices.DeleteFunc(all, func(m string) bool { return !taken(m) }), ", ")
}

func writeProblem(c echo.Context, p *Problem) error {
	if p.Status == statusClosed {
		return c.NoContent(statusClosed)
	}
	if isOnboarding(c.Request().URL.Path) {
		return writeOnboarding(c, p)
	}
	return c.Blob(p.Status, "application/problem+json", p.text())
}

// text returns the encoded problem.
func (p *Problem) text() []byte {
	body, err := json.Marshal(p, jsontext.AllowInvalidUTF8(true)) // a replaced character is better than no response
	if err != nil {
		panic("web: a problem has no JSON form: " + err.Error())
	}
	return body
}
