// Package problem holds the errors that clients see, in the form of RFC 9457, and turns every other error into one: a
// refusal by the rules, an error of the journal, an error of Echo. The onboarding interface writes the same errors in
// FastAPI's form (Onboarding).
//
// Handlers return problems and never write them; the server writes the error that a handler returns.
package problem

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Problem is an error in the form of RFC 9457. It implements error, so handlers return it.
type Problem struct {
	Type      string                  `json:"type"`
	Title     string                  `json:"title"`
	Status    int                     `json:"status"`
	Detail    string                  `json:"detail"`
	Instance  string                  `json:"instance"`
	Code      string                  `json:"code"`
	Errors    []validation.FieldError `json:"errors"`
	RequestID string                  `json:"request_id"`
	// Order is the persisted order that the engine rejected. It is set on a 422 of an order entry.
	Order any `json:"order,omitempty"`
	// CommandID is the command with the unknown outcome.
	CommandID string `json:"command_id,omitempty"`
	// Wait is the number of seconds to wait before a retry. It equals the header Retry-After and is repeated here
	// because responses over a WebSocket have no headers. Zero: no value.
	Wait int64 `json:"retry_after,omitzero"`

	cause   error
	invalid bool // the engine found the command itself invalid
}

// New returns a problem. Its type is about:blank, because the code identifies the problem, and its title is
// the status text.
func New(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code,
		Errors: []validation.FieldError{}}
}

// Error returns the status, the code and the detail.
func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

// Unwrap returns the cause of the problem, for the server's log only.
func (p *Problem) Unwrap() error { return p.cause }

// With adds validation errors.
func (p *Problem) With(errs ...validation.FieldError) *Problem {
	p.Errors = append(p.Errors, errs...)
	return p
}

// WithOrder adds the persisted order that the engine rejected.
func (p *Problem) WithOrder(order any) *Problem {
	p.Order = order
	return p
}

// Because sets the cause for the server's log. Clients do not see it.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// RetryAfter sets Retry-After to d, rounded up to whole seconds. It does nothing if d is not positive.
func (p *Problem) RetryAfter(d time.Duration) *Problem {
	if d > 0 {
		p.Wait = max(1, int64((d+time.Second-1)/time.Second))
	}
	return p
}

// The codes of problems about the input of a request.
const (
	// ValidationFailed is the code of a problem that lists validation errors.
	ValidationFailed = "VALIDATION_FAILED"
	// MalformedQuery is the code for a query that cannot be decoded.
	MalformedQuery = "MALFORMED_QUERY"
)

// Invalid returns a 400 with validation errors.
func Invalid(errs ...validation.FieldError) *Problem {
	detail := "The request is not valid."
	if len(errs) == 1 {
		detail = "The request is not valid: " + errs[0].Message + "."
	} else if len(errs) > 1 {
		detail = fmt.Sprintf("The request has %d faults.", len(errs))
	}
	return New(http.StatusBadRequest, ValidationFailed, detail).With(errs...)
}

// Unauthorized returns a 401: the token is missing or invalid.
func Unauthorized(detail string) *Problem {
	return New(http.StatusUnauthorized, "UNAUTHORIZED", detail)
}

// Forbidden returns a 403.
func Forbidden(detail string) *Problem { return New(http.StatusForbidden, "FORBIDDEN", detail) }

// NotFound returns a 404 with a code such as ORDER_NOT_FOUND.
func NotFound(code, detail string) *Problem { return New(http.StatusNotFound, code, detail) }

// Conflict returns a 409.
func Conflict(code, detail string) *Problem { return New(http.StatusConflict, code, detail) }

// Rejected returns a 422: the engine or a business rule refused a well-formed request.
func Rejected(code, detail string) *Problem {
	return New(http.StatusUnprocessableEntity, code, detail)
}

// Unavailable returns a 503: a source cannot answer now.
func Unavailable(code, detail string, retryAfter time.Duration) *Problem {
	return New(http.StatusServiceUnavailable, code, detail).RetryAfter(retryAfter)
}

// OutcomeUnknown returns the 503 for a command that may still take effect.
func OutcomeUnknown(id scalar.ID) *Problem {
	p := New(http.StatusServiceUnavailable, "OUTCOME_UNKNOWN",
		"The outcome is not known: the command may still take effect. Repeat it with the same key, or ask for it by its id.").
		RetryAfter(time.Second)
	if !id.IsZero() {
		p.CommandID = id.String()
	}
	return p
}

// statuses are the statuses of refusals by their kind.
var statuses = map[decide.Kind]int{
	decide.Invalid: http.StatusBadRequest, decide.NotFound: http.StatusNotFound, decide.Conflict: http.StatusConflict,
	decide.Unacceptable: http.StatusUnprocessableEntity, decide.TooLarge: http.StatusRequestEntityTooLarge,
	decide.Forbidden: http.StatusForbidden,
}

// Refused returns the problem for a refusal by the rules.
func Refused(r *decide.Refusal) *Problem {
	p := New(cmp.Or(statuses[r.Kind], http.StatusBadRequest), r.Code, r.Message)
	p.invalid = r.Kind == decide.Invalid
	if r.Field != "" {
		p.Errors = append(p.Errors, validation.FieldError{Path: validation.At(r.Field), Code: r.Code, Message: r.Message})
	}
	return p
}

// ReadOnly returns the 403 for a request that would change something, at a node that follows a venue. venue is the URL of the
// venue's interfaces, or "".
func ReadOnly(venue string) *Problem {
	return New(http.StatusForbidden, "READ_ONLY", "This node follows the venue and changes nothing. "+sendTo(venue))
}

// AskTheVenue returns the 403 for a request that only a node of the venue can answer, at a node that follows it.
func AskTheVenue(venue string) *Problem {
	return New(http.StatusForbidden, "ASK_THE_VENUE", "This node follows the venue and has no keys of it. "+sendTo(venue))
}

func sendTo(venue string) string {
	if venue == "" {
		return "Send the request to the venue."
	}
	return "Send the request to " + venue + "."
}

// Fenced returns the 503 for a venue that another copy has fenced. It has no Retry-After, because only a take-over
// ends it.
func Fenced(err error) *Problem {
	return New(http.StatusServiceUnavailable, "FENCED",
		"This venue is a copy and changes no keys: another holds its fence. An operator can have it take over: perpetua admin take-over.").Because(err)
}

// keyMissingRetry is the delay after which a client may ask again for data without a key. An operator has to act first.
const keyMissingRetry = time.Minute

// KeysFailed returns the problem for an error of the key store: the store is away, it has no key of an owner, or another venue holds
// its fence. Any other error is returned unchanged.
func KeysFailed(err error) error {
	const code = "KEYS_UNAVAILABLE"
	switch {
	case errors.Is(err, seal.ErrFenced):
		return Fenced(err)
	case errors.Is(err, seal.ErrAway):
		return Unavailable(code, "The keys that data is sealed with can't be read now.", time.Second).Because(err)
	case errors.Is(err, seal.ErrMissing): // the store lost it, or is not that of the venue
		return Unavailable(code, "The key store has no key of a person or corporate in this answer. An operator must restore it, or erase the owner.",
			keyMissingRetry).Because(err)
	}
	return err
}
