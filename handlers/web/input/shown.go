package input

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

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
	for i := range f.errs.List {
		x := &f.errs.List[i]
		if x.Input != nil || x.In != f.errs.in || f.errs.fatal && len(x.Path) > 0 || problem.KindOf(x) == validation.JSONInvalid {
			continue
		}
		n := f.root.find(x.Path)
		if n == nil {
			continue
		}
		if f.where != inBody {
			x.Input = n.text
			continue
		}
		if size := n.to - n.from; size > 0 && size <= left && (n.kind != '{' && n.kind != '[' || size <= maxInputWhole) {
			x.Input = jsontext.Value(f.raw[n.from:n.to])
			left -= size
		}
	}
}

// find returns the node at path. If only the last member is missing, it returns the enclosing object or array,
// otherwise nil.
func (n *node) find(path validation.Path) *node {
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
