package rest

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// errorHandler returns the handler that writes an error as a problem, in the form that belongs to the path. ro may be nil.
func errorHandler(log *slog.Logger, ro *ReadOnly) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed { // a response that has begun cannot become a problem
			return
		}
		var proposed *operation.ProposedError
		if errors.As(err, &proposed) {
			private(c)
			err = c.JSON(http.StatusAccepted, wire.NewProposal(proposed.Journal, &proposed.Proposal, proposed.Proposal.Created))
			if err == nil {
				return
			}
		}
		p := RequestOf(c).Problem(err)
		if p.Failed() {
			log.ErrorContext(c.Request().Context(), "request failed", "request_id", p.RequestID, "error", err)
		}
		private(c)
		h := c.Response().Header()
		if p.Wait > 0 {
			h.Set("Retry-After", strconv.FormatInt(p.Wait, 10))
		}
		if p.Status == http.StatusMethodNotAllowed {
			allow(c, ro)
		}
		if p.Status == http.StatusUnauthorized {
			h.Set("WWW-Authenticate", `Bearer realm="perpetua"`)
		}
		if err := writeProblem(c, &p); err != nil {
			log.DebugContext(c.Request().Context(), "an error could not be written", "request_id", p.RequestID, "error", err)
		}
	}
}

// allow completes the header Allow of a 405 and of the answer to OPTIONS. It adds HEAD, which Echo omits, and OPTIONS, which the
// server answers; notForOthers omits both. It removes what a follower refuses. ro may be nil.
func allow(c echo.Context, ro *ReadOnly) {
	h := c.Response().Header()
	methods := h.Get(echo.HeaderAllow)
	taken := func(method string) bool {
		switch {
		case method == http.MethodOptions:
			return true
		case ro != nil && ro.refused(method, c.Path()) != nil:
			return false
		}
		return strings.Contains(methods, method) || method == http.MethodHead && strings.Contains(methods, http.MethodGet)
	}
	all := []string{http.MethodOptions, http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}
	h.Set(echo.HeaderAllow, strings.Join(slices.DeleteFunc(all, func(m string) bool { return !taken(m) }), ", "))
}

func writeProblem(c echo.Context, p *problem.Problem) error {
	if p.Status == problem.StatusClosed {
		return c.NoContent(problem.StatusClosed)
	}
	if !problem.IsOnboarding(c.Request().URL.Path) {
		return c.Blob(p.Status, "application/problem+json", p.JSON())
	}
	if p.CommandID != "" {
		c.Response().Header().Set(operation.HeaderCommandID, p.CommandID)
	}
	status, body, err := p.Onboarding()
	if err != nil {
		return err
	}
	return c.Blob(status, echo.MIMEApplicationJSON, body)
}
