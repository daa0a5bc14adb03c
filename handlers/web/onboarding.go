package web

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// isOnboarding reports whether responses on a path have the form of the onboarding interface, which is FastAPI's.
func isOnboarding(path string) bool {
	return strings.HasPrefix(path, "/api/v1/") || path == "/api/v1" || strings.HasPrefix(path, "/auth/") || path == "/auth"
}

// manyFaults limits the errors in a response of the onboarding interface. It is large enough for one error for each
// answer of a questionnaire response.
const manyFaults = 5000

// maxFaults returns the maximum number of errors in the response to the request.
func (a Ask) maxFaults() int {
	if isOnboarding(a.way.target()) {
		return manyFaults
	}
	return maxFaults
}

// detail is an element of a FastAPI validation error.
type detail struct {
	Type    string `json:"type"`
	Loc     []any  `json:"loc"`
	Message string `json:"msg"`
	Input   any    `json:"input"`
}

// writeOnboarding writes {"detail": CODE} or, for validation errors, 422 with a list. A header names the command of
// an unknown outcome.
func writeOnboarding(c echo.Context, p *Problem) error {
	if p.CommandID != "" {
		c.Response().Header().Set(HeaderCommandID, p.CommandID)
	}
	status, answer := p.Status, any(p.Code)
	switch {
	case p.Code == validationFailed, p.invalid:
		status = http.StatusUnprocessableEntity
		list := make([]detail, 0, len(p.Errors))
		for _, f := range p.Errors {
			list = append(list, detailOf(f))
		}
		answer = list
	case p.Code == malformedQuery:
		status = http.StatusUnprocessableEntity
		answer = []detail{{Type: ValueError, Loc: []any{"query"}, Message: valueError("the query string is not valid")}}
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
	}{answer}, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) // accept replaced characters
	if err != nil {
		return err
	}
	return c.Blob(status, "application/json", body)
}

// detailOf converts an error to FastAPI's types and messages, on which existing clients depend.
func detailOf(f Fault) detail {
	in := f.in
	if in == "" {
		in = "body"
	}
	d := detail{Type: ValueError, Loc: append([]any{in}, f.path...), Message: valueError(f.Message), Input: f.input}
	switch {
	case f.kind != "" && f.words != "":
		d.Type, d.Message = f.kind, f.words
	case f.kind != "":
		d.Type, d.Message = f.kind, f.Message
	case f.Code == Required, f.Code == NullNotAllowed: // null counts as absent
		d.Type, d.Message = "missing", "Field required"
	case f.Code == UnknownField, f.Code == UnknownParameter:
		d.Type, d.Message = "extra_forbidden", "Extra inputs are not permitted"
	case f.Code == MalformedJSON, f.Code == TrailingData, f.Code == TooDeep:
		d.Type, d.Message, d.Input = "json_invalid", "JSON decode error", struct{}{}
	case f.Code == InvalidUTF8, f.Code == LoneSurrogate:
		d.Type, d.Message = "string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string"
	}
	return d
}

// FormFault returns an error of a form field with FastAPI's type, message and input. The input is returned to the
// client; it MUST be nil for a missing or secret field. An empty name means the whole form.
func FormFault(name, kind, message string, input any) Fault {
	f := Fault{Field: name, Code: InvalidValue, Message: message, kind: kind, input: input}
	if name != "" {
		f.path = []any{name}
	}
	return f
}

// These constants limit the inputs that a response repeats, in bytes of JSON: each object or array, and all inputs
// together. An error of a missing member repeats the enclosing object, and there may be one such error for each
// member of the schema.
const (
	maxInputWhole = 4 << 10
	maxInputs     = 1 << 20
)

// showInputs sets the input of errors without one: the invalid value, or the object that lacks a member. An input
// over the limits is null.
func (f *Form) showInputs() {
	left := maxInputs
	for i := range f.faults.list {
		x := &f.faults.list[i]
		if x.input != nil || x.in != f.faults.in || f.faults.fatal && len(x.path) > 0 {
			continue
		}
		n := f.root.find(x.path)
		if n == nil {
			continue
		}
		if f.where != inBody {
			x.input = n.text
			continue
		}
		if size := n.to - n.from; size > 0 && size <= left && (n.kind != '{' && n.kind != '[' || size <= maxInputWhole) {
			x.input = jsontext.Value(f.raw[n.from:n.to])
			left -= size
		}
	}
}

// find returns the node at path. If only the last member is missing, it returns the enclosing object or array,
// otherwise nil.
func (n *node) find(path []any) *node {
	for i, s := range path {
		var next *node
		switch s := s.(type) {
		case string:
			next = n.members[s]
			if next == nil && i == len(path)-1 && (n.kind == '{' || n.kind == '[') && n.to > 0 {
				return n
			}
		case int:
			if s < len(n.items) {
				next = n.items[s]
			}
		}
		if next == nil {
			return nil
		}
		n = next
	}
	return n
}
