// Package input reads what clients send: the JSON object of a body, the parameters of a query, those of a route. A Form
// reports every error of a request, not the first one, and gives the content its fingerprint.
//
// A request with a declared form (domain/form) is decoded in one pass by its form.Object; a Form explains why that
// failed (Explain), and reads everything else member by member.
package input

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Form reads the members of a JSON object or the parameters of a query. Each is read by a method that specifies its
// type. The methods do not fail: they record errors and return the zero value, and Done returns all errors. A member
// that no method read is an error.
//
// A required member must be present and not null. For an optional member, null is the same as absent.
type Form struct {
	where   paramSource
	root    *node
	path    validation.Path
	errs    *partErrors // shared with the forms of nested objects
	problem *problem.Problem
	raw     []byte
	names   []string // names read so far; a short list
	nulls   []string // names for which Null was called
	nested  []*Form
	checked bool // unknown members have been checked
	mac     func([]byte) []byte
	normal  any
}

type paramSource int

const (
	inBody paramSource = iota
	inQuery
	inPath
)

// partErrors collects the validation errors of one part of a request.
type partErrors struct {
	validation.Errors
	in string // the part of the request to which the paths refer; "" for the body
	// fatal means that the body could not be parsed, so no errors of fields are reported.
	fatal bool
}

// newErrors returns an empty list for a part of a request.
func newErrors(in string) *partErrors {
	return &partErrors{Errors: validation.Errors{Limit: validation.MaxErrors}, in: in}
}

// add adds an error. Its path begins at the path under.
func (f *partErrors) add(under validation.Path, e validation.FieldError) {
	e.In, e.Path = f.in, shortened(under.Then(e.Path...))
	if e.Code == "" {
		e.Code = codeOf(e.Kind)
	}
	f.Add(e)
}

// codeOf returns the code of an error that has only a kind.
func codeOf(kind string) string {
	switch kind {
	case validation.Missing:
		return validation.Required
	case validation.StringTooLong:
		return validation.TooLong
	case validation.ListTooLong, validation.ListTooShort:
		return validation.OutOfRange
	}
	return validation.InvalidValue
}

// maxName limits the length of a client's field name in a response. Otherwise every error below a long name would
// repeat the whole name.
const maxName = 128

// shortened returns the path with names that are short and valid UTF-8.
func shortened(path validation.Path) validation.Path {
	out := slices.Clone(path)
	for i, s := range out {
		if name, ok := s.(string); ok {
			if len(name) > maxName {
				name = name[:maxName] + "…"
			}
			out[i] = strings.ToValidUTF8(name, "\uFFFD")
		}
	}
	return out
}

// Optional is an optional value.
type Optional[T any] struct {
	Value T
	Set   bool // present, not null and valid
}

// Or returns the value, or fallback if it is not set.
func (o Optional[T]) Or(fallback T) T {
	if o.Set {
		return o.Value
	}
	return fallback
}

// Pointer returns a pointer to the value, or nil if it is not set.
func (o Optional[T]) Pointer() *T {
	if o.Set {
		return &o.Value
	}
	return nil
}

// Has reports whether the member is present and not null. It does not count as reading the member.
func (f *Form) Has(name string) bool {
	n := f.root.members[name]
	return n != nil && n.kind != 'n'
}

// Null reports whether the member is present and null, for the few members that null clears.
func (f *Form) Null(name string) bool {
	f.nulls = append(f.nulls, name)
	n := f.root.members[name]
	return n != nil && n.kind == 'n'
}

// Ignore accepts a member with any value.
func (f *Form) Ignore(name string) { f.ask(name) }

// Fault adds an error of a member that only the handler can detect. An empty name means the whole form.
func (f *Form) Fault(name, code, message string) {
	f.fail(name, validation.FieldError{Code: code, Message: message})
}

// Merge adds the errors of another part of the request and returns the form.
func (f *Form) Merge(other *Form) *Form {
	f.Also(other.Done())
	return f
}

// Also adds the errors of another part of the request. A problem that is not a list of errors replaces all others.
func (f *Form) Also(err error) {
	if err == nil || f.problem != nil {
		return
	}
	p := problem.Of(err)
	if p.Code != problem.ValidationFailed {
		f.problem = p
		return
	}
	f.errs.List = append(f.errs.List, p.Errors...)
}

// Faulty reports whether the member at a path has an error.
func (f *Form) Faulty(path ...any) bool { return f.errs.Any(f.path.Then(path...)) }

// Sound reports whether the form and its members have no errors so far.
func (f *Form) Sound() bool {
	return !slices.ContainsFunc(f.errs.List, func(e validation.FieldError) bool { return e.Path.Within(f.path) })
}

// Done returns nil for a valid form. It returns a single problem such as 413 or 415 alone, and otherwise 400
// with all errors.
func (f *Form) Done() error {
	if f.problem != nil {
		return f.problem
	}
	if !f.errs.fatal {
		f.unknown()
	}
	if len(f.errs.List) == 0 {
		return nil
	}
	f.showInputs()
	return problem.Invalid(f.errs.List...)
}

// elsewhere maps the parameters that only some reads take to the message of the other reads.
var elsewhere = map[string]string{"as_of": "this read cannot be answered as of a past record"}

func (f *Form) unknown() {
	code, message := validation.UnknownField, "there is no such field"
	if f.where == inQuery {
		code, message = validation.UnknownParameter, "there is no such parameter"
	}
	if f.checked {
		return
	}
	f.checked = true
	for _, name := range f.root.names {
		if !slices.Contains(f.names, name) {
			text, known := elsewhere[name]
			if !known || f.where != inQuery {
				text = message
			}
			f.Fault(name, code, fmt.Sprintf("%s: %s", text, printable(name)))
		}
	}
	for _, n := range f.nested {
		n.unknown()
	}
}

// printable quotes and shortens a client's name, so that messages contain no control characters.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strconv.QuoteToASCII(s)
}

func (f *Form) ask(name string) {
	if f.names == nil {
		f.names = make([]string, 0, 24)
	}
	if !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
}

// member returns a member's value, or nil if it is absent or null. It records an error if a required member is absent
// or null.
func (f *Form) member(name string, required bool) *node {
	f.ask(name)
	n := f.root.members[name]
	switch {
	case n == nil && required:
		if f.problem == nil && !f.errs.fatal {
			f.Fault(name, validation.Required, "the "+f.noun()+" is required")
		}
		return nil
	case n == nil:
		return nil
	case n.kind == 'n':
		if required {
			f.Fault(name, validation.NullNotAllowed, "the field must not be null")
		}
		return nil
	}
	return n
}

func (f *Form) noun() string {
	if f.where == inBody {
		return "field"
	}
	return "parameter"
}

// Canonical returns bytes that are equal for requests with the same content: the canonical form of the body (RFC
// 8785) without null members, or the query. It keeps the null members for which Null was called.
func (f *Form) Canonical() []byte {
	if f.where == inQuery {
		return f.raw
	}
	return CanonicalJSON(WithoutNulls(f.raw, f.nulls...))
}

// asSent is Canonical with all null members.
func (f *Form) asSent() []byte {
	if f.where == inQuery {
		return f.raw
	}
	return CanonicalJSON(f.raw)
}
