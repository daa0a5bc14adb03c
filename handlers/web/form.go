package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Form reads the members of a JSON object, or the parameters of a query, each with a method that says of what type
// it has to be. Nothing fails on the way: a reader returns the zero value where there is a fault, and Done returns
// all of them, unknown members included. A member that no method asked for is unknown.
//
// A required member that is absent or null is a fault. For an optional one, null is the same as absent.
type Form struct {
	where   place
	root    *node
	path    []any
	faults  *faults // shared with the forms of nested objects
	problem *Problem
	raw     []byte
	asked   []string // few: a handler names them
	nested  []*Form
	checked bool // for unknown members
	mac     func([]byte) []byte
	normal  any
}

type place int

const (
	inBody place = iota
	inQuery
	inPath
)

// inHeader is the part of a request that its headers are.
const inHeader = "header"

// faults gathers what is wrong with one request.
type faults struct {
	list  []Fault
	in    string // the part of the request that the paths are of, "" for the body
	limit int    // of how many are kept, 0 for maxFaults
	// fatal says that the body could not be read at all, so nothing more is said about its fields.
	fatal bool
}

// maxFaults bounds how many faults an answer lists, so that a small request cannot ask for a huge one.
const maxFaults = 100

func (f *faults) add(path []any, code, message string) {
	f.addFlaw(path, flaw{code: code, message: message})
}

func (f *faults) addFlaw(path []any, w flaw) {
	limit := maxFaults
	if f.limit > 0 {
		limit = f.limit
	}
	if len(f.list) >= limit {
		return
	}
	path = shortened(path)
	f.list = append(f.list, Fault{Field: pathString(path), Code: w.code, Message: w.message, in: f.in, path: path, kind: w.kind, words: w.words})
}

// maxName bounds how much of a name that a client made up an answer repeats. Every fault below a long name would
// otherwise repeat all of it.
const maxName = 128

// shortened returns the path with names that an answer may hold: short, and valid UTF-8.
func shortened(path []any) []any {
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

func pathString(path []any) string {
	var b strings.Builder
	for _, s := range path {
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

// Optional is the value of a member that may be absent.
type Optional[T any] struct {
	Value T
	Set   bool // present, not null and without a fault
}

// Or returns the value, or a default where it is absent.
func (o Optional[T]) Or(fallback T) T {
	if o.Set {
		return o.Value
	}
	return fallback
}

// Pointer returns the value, or nil where it is absent.
func (o Optional[T]) Pointer() *T {
	if o.Set {
		return &o.Value
	}
	return nil
}

// Has reports whether the member is present and not null. It does not count as asking for it.
func (f *Form) Has(name string) bool {
	n := f.root.members[name]
	return n != nil && n.kind != 'n'
}

// Null reports whether the member is present and null, for the few members that null clears.
func (f *Form) Null(name string) bool {
	n := f.root.members[name]
	return n != nil && n.kind == 'n'
}

// Ignore accepts a member, whatever it holds.
func (f *Form) Ignore(name string) { f.ask(name) }

// Fault adds a fault of a member, for what only the handler can judge. An empty name means the whole.
func (f *Form) Fault(name, code, message string) {
	path := f.path
	if name != "" {
		path = step(f.path, name)
	}
	f.faults.add(path, code, message)
}

// Also adds the faults of another part of the request, and returns the form.
func (f *Form) Also(other *Form) *Form {
	f.also(other.Done())
	return f
}

// FaultAt adds a fault of a member below this form, for what only the handler can judge: path leads there, by names (string)
// and places in arrays (int). Where that member, or one that it lies in, has a fault already, there is no second one.
func (f *Form) FaultAt(path []any, code, message string) {
	at := f.path
	for _, s := range path {
		at = step(at, s)
		field := pathString(at)
		if slices.ContainsFunc(f.faults.list, func(x Fault) bool { return x.Field == field }) {
			return
		}
	}
	f.faults.add(at, code, message)
}

// also adds the faults of another part of the request. A problem that is none of faults stands alone.
func (f *Form) also(err error) {
	if err == nil || f.problem != nil {
		return
	}
	p := ProblemOf(err)
	if p.Code != validationFailed {
		f.problem = p
		return
	}
	f.faults.list = append(f.faults.list, p.Errors...)
}

// Faulty reports whether a member, to which names lead, already has a fault.
func (f *Form) Faulty(names ...string) bool {
	at := f.path
	for _, name := range names {
		at = step(at, name)
	}
	field := pathString(at)
	return slices.ContainsFunc(f.faults.list, func(x Fault) bool { return x.Field == field })
}

// Sound reports whether nothing that was sent under the form has a fault so far.
func (f *Form) Sound() bool {
	return !slices.ContainsFunc(f.faults.list, func(x Fault) bool {
		return len(x.path) >= len(f.path) && slices.Equal(x.path[:len(f.path)], f.path)
	})
}

// Done returns nil, or a problem with everything that was found: 413 and 415 alone, else 400 with all faults.
func (f *Form) Done() error {
	if f.problem != nil {
		return f.problem
	}
	if !f.faults.fatal {
		f.unknown()
	}
	if len(f.faults.list) == 0 {
		return nil
	}
	f.showInputs()
	return Invalid(f.faults.list...)
}

func (f *Form) unknown() {
	code, message := UnknownField, "there is no such field"
	if f.where == inQuery {
		code, message = UnknownParameter, "there is no such parameter"
	}
	if f.checked {
		return
	}
	f.checked = true
	for _, name := range f.root.names {
		if !slices.Contains(f.asked, name) {
			f.Fault(name, code, fmt.Sprintf("%s: %s", message, printable(name)))
		}
	}
	for _, n := range f.nested {
		n.unknown()
	}
}

// printable quotes a name that a client sent, shortened, so that a message never carries its control characters.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64]
	}
	return strconv.QuoteToASCII(s)
}

func (f *Form) ask(name string) {
	if f.asked == nil {
		f.asked = make([]string, 0, 24)
	}
	if !slices.Contains(f.asked, name) {
		f.asked = append(f.asked, name)
	}
}

// member returns what was sent under a name, nil where there is nothing or null, and reports the fault of a
// required one.
func (f *Form) member(name string, required bool) *node {
	f.ask(name)
	n := f.root.members[name]
	switch {
	case n == nil && required:
		if f.problem == nil && !f.faults.fatal {
			f.Fault(name, Required, "the "+f.noun()+" is required")
		}
		return nil
	case n == nil:
		return nil
	case n.kind == 'n':
		if required {
			f.Fault(name, NullNotAllowed, "the field must not be null")
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

// Canonical returns the bytes by which two requests with the same content are the same: the canonical form of the
// body (RFC 8785), or the query.
func (f *Form) Canonical() []byte {
	if f.where == inQuery {
		return f.raw
	}
	v := jsontext.Value(slices.Clone(f.raw))
	if err := v.Canonicalize(); err != nil {
		return f.raw
	}
	return v
}
