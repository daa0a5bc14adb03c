package web

import (
	"fmt"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Problem is an error as a client sees it, in the shape of RFC 9457. It implements error, so a handler returns it.
type Problem struct {
	Type      string  `json:"type"`
	Title     string  `json:"title"`
	Status    int     `json:"status"`
	Detail    string  `json:"detail"`
	Instance  string  `json:"instance"`
	Code      string  `json:"code"`
	Errors    []Fault `json:"errors"`
	RequestID string  `json:"request_id"`
	// Order is the persisted order that the engine rejected, on a 422 of an order entry.
	Order any `json:"order,omitempty"`
	// CommandID names the command whose outcome is unknown.
	CommandID string `json:"command_id,omitempty"`
	// Wait is how many seconds the client is to wait before it tries again, as the header Retry-After says: an answer over a
	// socket has no headers. Zero: nothing is said of it.
	Wait int64 `json:"retry_after,omitzero"`

	cause   error
	invalid bool // the command itself is not valid, as the rules found
}

// Fault is one thing wrong with a request.
type Fault struct {
	// Field is the path of the member or the name of the parameter: "amount", "tiers[0].up_to". Empty for the whole.
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`

	// For the onboarding interface:
	in    string // the part of the request: header, query, path, or the body if it is empty
	path  []any  // the same path in steps
	kind  string // FastAPI's name of the fault, where another is needed than the code gives
	words string // and its words, where they are not the message
	input any    // what was sent; never a secret
}

// The codes of faults in a request.
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

// NewProblem makes a problem. The type is about:blank (the code says which problem it is) and the title that of the
// status.
func NewProblem(status int, code, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code,
		Errors: []Fault{}}
}

// Error returns the status, the code and the detail.
func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }

// Unwrap returns what caused the problem, for the server's own log only.
func (p *Problem) Unwrap() error { return p.cause }

// With adds faults.
func (p *Problem) With(faults ...Fault) *Problem {
	p.Errors = append(p.Errors, faults...)
	return p
}

// WithOrder adds the persisted order that the engine rejected.
func (p *Problem) WithOrder(order any) *Problem {
	p.Order = order
	return p
}

// Because keeps the cause for the server's log. Clients never see it.
func (p *Problem) Because(err error) *Problem {
	p.cause = err
	return p
}

// RetryAfter makes the answer carry Retry-After, in whole seconds and at least one. Nothing of it is said for 0.
func (p *Problem) RetryAfter(d time.Duration) *Problem {
	if d > 0 {
		p.Wait = max(1, int64((d+time.Second-1)/time.Second))
	}
	return p
}

// validationFailed is the code of a problem that lists the faults of a request.
const validationFailed = "VALIDATION_FAILED"

// Invalid is a 400 with the faults of the request.
func Invalid(faults ...Fault) *Problem {
	detail := "The request is not valid."
	if len(faults) == 1 {
		detail = "The request is not valid: " + faults[0].Message + "."
	} else if len(faults) > 1 {
		detail = fmt.Sprintf("The request has %d faults.", len(faults))
	}
	return NewProblem(http.StatusBadRequest, validationFailed, detail).With(faults...)
}

// Unauthorized is a 401: no token, or one that is not good.
func Unauthorized(detail string) *Problem {
	return NewProblem(http.StatusUnauthorized, "UNAUTHORIZED", detail)
}

// Forbidden is a 403.
func Forbidden(detail string) *Problem { return NewProblem(http.StatusForbidden, "FORBIDDEN", detail) }

// NotFound is a 404 with a code such as ORDER_NOT_FOUND.
func NotFound(code, detail string) *Problem { return NewProblem(http.StatusNotFound, code, detail) }

// Conflict is a 409.
func Conflict(code, detail string) *Problem { return NewProblem(http.StatusConflict, code, detail) }

// Rejected is a 422: the engine or a rule of business refused what was understood.
func Rejected(code, detail string) *Problem {
	return NewProblem(http.StatusUnprocessableEntity, code, detail)
}

// Unavailable is a 503 for a source that cannot answer now.
func Unavailable(code, detail string, retryAfter time.Duration) *Problem {
	return NewProblem(http.StatusServiceUnavailable, code, detail).RetryAfter(retryAfter)
}

// OutcomeUnknown is the 503 of a command that may still take effect.
func OutcomeUnknown(id scalar.ID) *Problem {
	p := NewProblem(http.StatusServiceUnavailable, "OUTCOME_UNKNOWN",
		"The outcome is not known: the command may still take effect. Repeat it with the same key, or ask for it by its id.").
		RetryAfter(time.Second)
	if !id.IsZero() {
		p.CommandID = id.String()
	}
	return p
}

// Refused is the problem of a refusal by the rules.
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

// Fenced returns the 503 of a venue that another copy has fenced. It carries no Retry-After, because only a take-over ends it.
func Fenced(err error) *Problem {
	return NewProblem(http.StatusServiceUnavailable, "FENCED",
		"This venue is a copy and changes no keys: another holds its fence. An operator can have it take over: perpetua admin take-over.").Because(err)
}
