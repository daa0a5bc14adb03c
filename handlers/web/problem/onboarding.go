package problem

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// IsOnboarding reports whether responses on a path have the form of the onboarding interface, which is FastAPI's.
func IsOnboarding(path string) bool {
	return strings.HasPrefix(path, "/api/v1/") || path == "/api/v1" || strings.HasPrefix(path, "/auth/") || path == "/auth"
}

// manyErrors limits the errors in a response of the onboarding interface. It is large enough for one error for each
// answer of a questionnaire response.
const manyErrors = 5000

// MaxErrors returns the maximum number of errors in a response on a path.
func MaxErrors(path string) int {
	if IsOnboarding(path) {
		return manyErrors
	}
	return validation.MaxErrors
}

// detail is an element of a FastAPI validation error.
type detail struct {
	Type    string `json:"type"`
	Loc     []any  `json:"loc"`
	Message string `json:"msg"`
	Input   any    `json:"input"`
}

// Onboarding returns the problem in the form of the onboarding interface: {"detail": CODE} or, for validation errors, 422
// with a list.
func (p *Problem) Onboarding() (status int, body []byte, err error) {
	status, answer := p.Status, any(p.Code)
	switch {
	case p.Code == ValidationFailed, p.invalid:
		status = http.StatusUnprocessableEntity
		list := make([]detail, 0, len(p.Errors))
		for i := range p.Errors {
			list = append(list, detailOf(&p.Errors[i]))
		}
		answer = list
	case p.Code == MalformedQuery:
		status = http.StatusUnprocessableEntity
		answer = []detail{{Type: validation.ValueError, Loc: []any{"query"}, Message: valueError("the query string is not valid")}}
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
	body, err = json.Marshal(struct {
		Detail any `json:"detail"`
	}{answer}, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) // accept replaced characters
	return status, body, err
}

// wordings are pydantic's messages by the kind of the error. The verbs stand for its Args. Existing clients depend on
// them.
var wordings = map[string]string{
	validation.Missing:          "Field required",
	validation.Enum:             "Input should be %s",
	validation.ExtraForbidden:   "Extra inputs are not permitted",
	validation.StringType:       "Input should be a valid string",
	validation.StringTooShort:   "String should have at least %d %s",
	validation.StringTooLong:    "String should have at most %d %s",
	validation.StringUnicode:    "Input should be a valid string, unable to parse raw data as a unicode string",
	validation.StringPattern:    "String should match pattern '%s'",
	validation.IntType:          "Input should be a valid integer",
	validation.IntFractional:    "Input should be a valid integer, got a number with a fractional part",
	validation.IntParsing:       "Input should be a valid integer, unable to parse string as an integer",
	validation.LessThanEqual:    "Input should be less than or equal to %d",
	validation.GreaterThanEqual: "Input should be greater than or equal to %d",
	validation.BoolType:         "Input should be a valid boolean",
	validation.BoolParsing:      "Input should be a valid boolean, unable to interpret input",
	validation.ListType:         "Input should be a valid list",
	validation.ListTooShort:     "List should have at least %d %s after validation, not %d",
	validation.ListTooLong:      "List should have at most %d %s after validation, not %d",
	validation.ModelType:        "Input should be a valid dictionary or object to extract fields from",
	validation.UUIDType:         "UUID input should be a string, bytes or UUID object",
	validation.UUIDParsing:      "Input should be a valid UUID, %s",
	validation.JSONInvalid:      "JSON decode error",
	validation.MultipartInvalid: "Multipart decode error: %s",
}

// KindOf returns the kind of an error.
func KindOf(e *validation.FieldError) string {
	if e.Kind != "" {
		return e.Kind
	}
	switch e.Code {
	case validation.Required, validation.NullNotAllowed: // null counts as absent
		return validation.Missing
	case validation.UnknownField, validation.UnknownParameter:
		return validation.ExtraForbidden
	case validation.MalformedJSON, validation.TrailingData, validation.TooDeep:
		return validation.JSONInvalid
	case validation.InvalidUTF8, validation.LoneSurrogate:
		return validation.StringUnicode
	}
	return validation.ValueError
}

// detailOf converts an error to FastAPI's form.
func detailOf(e *validation.FieldError) detail {
	in := e.In
	if in == "" {
		in = "body"
	}
	d := detail{Type: KindOf(e), Loc: append([]any{in}, e.Path...), Input: e.Input}
	args := e.Args
	switch d.Type {
	case validation.ValueError:
		d.Message = valueError(e.Message)
		return d
	case validation.Unanswered:
		d.Type, d.Message = validation.Missing, e.Message
		return d
	case validation.JSONInvalid:
		d.Loc, d.Input, args = append(d.Loc, args...), struct{}{}, nil
	case validation.Enum:
		args = []any{quoteList(args[0].([]string))}
	case validation.ListTooShort, validation.ListTooLong:
		args = []any{args[0], plural(args[0].(int), "item"), args[1]}
	}
	d.Message = fmt.Sprintf(wordings[d.Type], args...)
	return d
}

func valueError(message string) string { return "Value error, " + message }

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// quoteList joins names as pydantic does: 'a', 'b' or 'c'.
func quoteList(names []string) string {
	var b strings.Builder
	for i, name := range names {
		switch {
		case i > 0 && i == len(names)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString("'" + name + "'")
	}
	return b.String()
}
