package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Problem is an error in the form of RFC 9457. It implements error, so handlers return it.
type Problem struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail"`
	Instance  string  `json:"instance"`
	Code      string  `json:"code"`
	Errors    []Fault `json:"errors"`
	RequestID string  `json:"request_id"`
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

// Fault is a validation error of a request.
type Fault struct {
	// Field is the path of a member or the name of a parameter: "amount", "tiers[0].up_to". It is empty for the whole
	// request.
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`

	// The following fields are for the onboarding interface.
	in    string // part of the request: header, query, path; "" is the body
	path  []any  // the path as a list of steps
	kind  string // FastAPI's type if it does not follow from the code
	words string // FastAPI's message if it differs from Message
	input any    // the input; MUST NOT be a secret
}

// These are the codes of validation errors.
const (
	Required         = "REQUIRED"
	NullNotAllowed   = "NULL_NOT_ALLOWED"
	WrongType        = "WRONG_TYPE"
	UnknownField     = "UNKNOWN_FIELD"
	UnknownParameter = "UNKNOWN_PARAMETER"
	DuplicateField   = "DUPLICATE_FIELD"
	MalformedJSON    = "MALFORMED_JSON"
	TrailingData     = "TRAILING_DATA"
	InvalidUTF8      = "INVALID_UTF8"
	LoneSurrogate    = "LONE_SURROGATE"
	ControlCharacter = "CONTROL_CHARACTER"
	InvalidDecimal   = "INVALID_DECIMAL"
	TooManyDigits    = "TOO_MANY_DIGITS"
	InvalidValue     = "INVALID_VALUE"
	OutOfRange       = "OUT_OF_RANGE"
	TooLong          = "TOO_LONG"
	TooDeep          = "TOO_DEEP"
)

// NewProblem returns a problem. Its type is about:blank, because the code identifies the problem, and its title is
// the status text.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code,
		Errors: []Fault{}}
}

// Error returns the status, the code and the detail.
func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

// Unwrap returns the cause of the problem, for the server's log only.
func (p *Problem) Unwrap() error { return p.cause }

// With adds validation errors.
func (p *Problem) With(faults ...Fault) *Problem {
	p.Errors = append(p.Errors, faults...)
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

// validationFailed is the code of a problem that lists validation errors.
const validationFailed = "VALIDATION_FAILED"

// Invalid returns a 400 with validation errors.
func Invalid(faults ...Fault) *Problem {
	detail := "The request is not valid."
	if len(faults) == 1 {
		detail = "The request is not valid: " + faults[0].Message + "."
	} else if len(faults) > 1 {
		detail = fmt.Sprintf("The request has %d faults.", len(faults))
	}
	return NewProblem(http.StatusBadRequest, validationFailed, detail).With(faults...)
}

// Unauthorized returns a 401: the token is missing or invalid.
func Unauthorized(detail string) *Problem {
	return NewProblem(http.StatusUnauthorized, "UNAUTHORIZED", detail)
}

// Forbidden returns a 403.
func Forbidden(detail string) *Problem { return NewProblem(http.StatusForbidden, "FORBIDDEN", detail) }

// NotFound returns a 404 with a code such as ORDER_NOT_FOUND.
func NotFound(code, detail string) *Problem { return NewProblem(http.StatusNotFound, code, detail) }

// Conflict returns a 409.
func Conflict(code, detail string) *Problem { return NewProblem(http.StatusConflict, code, detail) }

// Rejected returns a 422: the engine or a business rule refused a well-formed request.
func Rejected(code, detail string) *Problem {
	return NewProblem(http.StatusUnprocessableEntity, code, detail)
}

// Unavailable returns a 503: a source cannot answer now.
func Unavailable(code, detail string, retryAfter time.Duration) *Problem {
	return NewProblem(http.StatusServiceUnavailable, code, detail).RetryAfter(retryAfter)
}

// OutcomeUnknown returns the 503 for a command that may still take effect.
func OutcomeUnknown(id scalar.ID) *Problem {
	p := NewProblem(http.StatusServiceUnavailable, "OUTCOME_UNKNOWN",
		"The outcome is not known: the command may still take effect. Repeat it with the same key, or ask for it by its id.").
		RetryAfter(time.Second)
	if !id.IsZero() {
		p.CommandID = id.String()
	}
	return p
}

// Refused returns the problem for a refusal by the rules.
func Refused(r *decide.Refusal) *Problem {
	status := http.StatusBadRequest
	switch r.Kind {
	case decide.Invalid:
		status = http.StatusBadRequest
	case decide.NotFound:
		status = http.StatusNotFound
	case decide.Conflict:
		status = http.StatusConflict
	case decide.Unacceptable:
		status = http.StatusUnprocessableEntity
	case decide.TooLarge:
		status = http.StatusRequestEntityTooLarge
	case decide.Forbidden:
		status = http.StatusForbidden
	}
	p := NewProblem(status, r.Code, r.Message)
	p.invalid = r.Kind == decide.Invalid
	if r.Field != "" {
		p.Errors = append(p.Errors, Fault{Field: r.Field, Code: r.Code, Message: r.Message, path: []any{r.Field}})
	}
	return p
}

// Fenced returns the 503 for a venue that another copy has fenced. It has no Retry-After, because only a take-over
// ends it.
func Fenced(err error) *Problem {
	return NewProblem(http.StatusServiceUnavailable, "FENCED",
		"This venue is a copy and changes no keys: another holds its fence. An operator can have it take over: perpetua admin take-over.").Because(err)
}
