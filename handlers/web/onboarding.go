package web

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// isOnboarding says which paths answer in the shape of the onboarding interface, which is FastAPI's.
func isOnboarding(path string) bool {
	return strings.HasPrefix(path, "/api/v1/") || path == "/api/v1" || strings.HasPrefix(path, "/auth/") || path == "/auth"
}

// detail is one element of a FastAPI validation error.
type detail struct {
	Type    string `json:"type"`
	Loc     []any  `json:"loc"`
	Message string `json:"msg"`
	Input   any    `json:"input"`
}

// writeOnboarding answers with {"detail": CODE}, or for faults of the request with 422 and a list of them.
func writeOnboarding(c echo.Context, p *Problem) error {
	status, answer := p.Status, any(p.Code)
	switch {
	case p.Code == validationFailed:
		status = http.StatusUnprocessableEntity
		list := make([]detail, 0, len(p.Errors))
		for _, f := range p.Errors {
			list = append(list, detailOf(f))
		}
		answer = list
	case p.Code == "IDEMPOTENCY_KEY_REUSED":
		status = http.StatusUnprocessableEntity
	case p.Code == "UNAUTHORIZED":
		answer = "Unauthorized"
	case p.Code == "FORBIDDEN":
		answer = "Forbidden"
	case p.Code == "NOT_FOUND":
		answer = "Not Found"
	case p.Code == "METHOD_NOT_ALLOWED":
		answer = "Method Not Allowed"
	case p.Code == "INTERNAL":
		answer = "Internal Server Error"
	}
	body, err := json.Marshal(struct {
		Detail any `json:"detail"`
	}{answer}, jsontext.AllowInvalidUTF8(true)) // better a replaced character than no answer
	if err != nil {
		return err
	}
	return c.Blob(status, "application/json", body)
}

// detailOf names a fault in FastAPI's words, which existing clients know.
func detailOf(f Fault) detail {
	d := detail{Type: "value_error", Loc: append([]any{"body"}, f.path...), Message: "Value error, " + f.Message, Input: f.input}
	if f.kind != "" {
		d.Type, d.Message = f.kind, f.Message
		return d
	}
	switch f.Code {
	case Required:
		d.Type, d.Message = "missing", "Field required"
	case UnknownField, UnknownParameter:
		d.Type, d.Message = "extra_forbidden", "Extra inputs are not permitted"
	case MalformedJSON, TrailingData:
		d.Type, d.Message = "json_invalid", "JSON decode error"
	}
	switch {
	case f.Code == UnknownParameter:
		d.Loc[0] = "query"
	case f.Field == HeaderMinLogPosition, f.Field == HeaderIdempotencyKey:
		d.Loc[0] = "header"
	}
	return d
}

// FormFault is a fault of a form field as FastAPI words it: its type, its message and the input, which the client
// sees again and which must be nil for a field that is missing or secret. An empty
// name means the whole form.
func FormFault(name, kind, message string, input any) Fault {
	f := Fault{Field: name, Code: InvalidValue, Message: message, kind: kind, input: input}
	if name != "" {
		f.path = []any{name}
	}
	return f
}
