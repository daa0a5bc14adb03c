// Package validation describes what is invalid in a request: one error per field. The rules, the readers of requests,
// and both interfaces use the same type. How an error is worded for a client is up to the interface: the trading
// interface shows Code and Message, the onboarding interface shows Kind in the words of pydantic 2.
package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxErrors is the usual Limit of the errors in a response, so that a small request cannot cause a huge response.
const MaxErrors = 100

// FieldError is an error in a field of a request. It has a Code, a Kind, or both. The interfaces derive a missing one.
type FieldError struct {
	In   string // the part of the request: InHeader, InQuery, InPath, or "" for the body
	Path Path   // of the field; empty for the whole part
	Code string // in UPPER_SNAKE case
	Kind string // pydantic's type of the error, or Unanswered
	// Message is a sentence for people, without a period.
	Message string
	// Args are the values that the wording of Kind needs. A JSON syntax error has the byte offset.
	Args []any
	// Input is the invalid value, for interfaces that repeat it. It MUST NOT be a secret.
	Input any
}

// The parts of a request that are not the body.
const (
	InHeader = "header"
	InQuery  = "query"
	InPath   = "path"
)

// MarshalJSONTo writes the error as a member of the errors of a problem (RFC 9457).
func (e FieldError) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, struct {
		Field   string `json:"field"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}{e.Path.String(), e.Code, e.Message})
}

// Path leads to a field by names of members (string) and indexes of arrays (int).
type Path []any

// At returns the path of the steps.
func At(steps ...any) Path { return steps }

// Then returns the path with more steps. It shares no memory with other extensions of the path.
func (p Path) Then(steps ...any) Path { return append(p[:len(p):len(p)], steps...) }

// Equal reports whether the paths have the same steps.
func (p Path) Equal(other Path) bool { return slices.Equal(p, other) }

// Within reports whether the path is that of outer, or leads to a field inside it.
func (p Path) Within(outer Path) bool { return len(p) >= len(outer) && p[:len(outer)].Equal(outer) }

// String returns the path in the form "tiers[0].up_to".
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch s := s.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(s) + "]")
		case string:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s)
		}
	}
	return b.String()
}

// Errors collects errors in the order in which they are found. Without an error, it allocates nothing.
type Errors struct {
	List  []FieldError
	Limit int // maximum length of List, beyond which errors are dropped; 0 means no limit
}

// Add adds an error.
func (e *Errors) Add(err FieldError) {
	if e.Limit == 0 || len(e.List) < e.Limit {
		e.List = append(e.List, err)
	}
}

// AddCode adds an error of a top-level field. An empty name means the whole request.
func (e *Errors) AddCode(field, code, format string, args ...any) {
	err := FieldError{Code: code, Message: fmt.Sprintf(format, args...)}
	if field != "" {
		err.Path = At(field)
	}
	e.Add(err)
}

// AddKind adds an error of a kind that needs no Args.
func (e *Errors) AddKind(kind, message string, path ...any) {
	e.Add(FieldError{Kind: kind, Message: message, Path: slices.Clone(path)})
}

// AddTooLong adds the error of a text that has more than limit characters.
func (e *Errors) AddTooLong(limit int, path ...any) {
	e.Add(FieldError{Kind: StringTooLong, Args: []any{limit, "characters"}, Path: slices.Clone(path),
		Message: fmt.Sprintf("must have at most %d characters", limit)})
}

// Any reports whether the field at path has an error.
func (e *Errors) Any(path Path) bool {
	return slices.ContainsFunc(e.List, func(f FieldError) bool { return f.Path.Equal(path) })
}
