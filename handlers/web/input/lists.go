package input

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// OptionalStrings reads an optional array of strings.
func (f *Form) OptionalStrings(name string, rules ...form.Rule) Optional[[]string] {
	return f.strings(name, false, rules)
}

func (f *Form) strings(name string, required bool, rules []form.Rule) Optional[[]string] {
	n := f.member(name, required)
	if n == nil {
		return Optional[[]string]{}
	}
	if n.kind != '[' {
		f.fail(name, notAList("the value must be an array of strings"))
		return Optional[[]string]{}
	}
	out := Optional[[]string]{Value: make([]string, 0, len(n.items)), Set: true}
	for i, item := range n.items {
		text, e := form.ReadText(f.value(item), rules...)
		if e != nil {
			f.errs.add(f.path.Then(name, i), *e)
		}
		out.Set = out.Set && e == nil && !item.broken
		out.Value = append(out.Value, text)
	}
	if !out.Set {
		return Optional[[]string]{}
	}
	return out
}

// OptionalEnums reads an optional array of strings. Each must be one of allowed.
func (f *Form) OptionalEnums(name string, allowed ...string) Optional[[]string] {
	given := f.OptionalStrings(name)
	for i, s := range given.Value {
		if !slices.Contains(allowed, s) {
			f.errs.add(f.path.Then(name, i), *form.NoneOf(allowed))
			given.Set = false
		}
	}
	if !given.Set {
		return Optional[[]string]{}
	}
	return given
}

// Distinct reads a required array of strings, with at least one item and no duplicates. The rules apply to each
// string.
func (f *Form) Distinct(name string, rules ...form.Rule) []string {
	return f.distinct(name, true, rules).Value
}

// OptionalDistinct is Distinct for an optional array.
func (f *Form) OptionalDistinct(name string, rules ...form.Rule) Optional[[]string] {
	return f.distinct(name, false, rules)
}

func (f *Form) distinct(name string, required bool, rules []form.Rule) Optional[[]string] {
	given := f.strings(name, required, rules)
	n := f.member(name, false)
	if n == nil || n.kind != '[' {
		return given
	}
	if len(n.items) == 0 {
		f.Fault(name, validation.Required, "at least one is needed")
	}
	seen := make(map[string]bool, len(n.items))
	for i, item := range n.items {
		if item.kind != '"' {
			continue
		}
		if seen[item.text] {
			f.errs.add(f.path.Then(name, i), validation.FieldError{Code: validation.InvalidValue, Message: "the value is given more than once"})
			given = Optional[[]string]{}
		}
		seen[item.text] = true
	}
	return given
}

// OptionalIDs reads an optional array of at most most UUIDs.
func (f *Form) OptionalIDs(name string, most int) Optional[[]scalar.ID] {
	n := f.member(name, false)
	switch {
	case n == nil:
		return Optional[[]scalar.ID]{}
	case n.kind != '[':
		f.fail(name, notAList("the value must be an array of UUIDs"))
		return Optional[[]scalar.ID]{}
	case len(n.items) > most:
		f.fail(name, tooMany(0, most, len(n.items)))
		return Optional[[]scalar.ID]{}
	}
	out := Optional[[]scalar.ID]{Value: make([]scalar.ID, 0, len(n.items)), Set: true}
	for i, item := range n.items {
		id, e := form.ID().Read(f.value(item))
		if e != nil {
			f.errs.add(f.path.Then(name, i), *e)
		}
		out.Set = out.Set && e == nil && !item.broken
		out.Value = append(out.Value, id)
	}
	if !out.Set {
		return Optional[[]scalar.ID]{}
	}
	return out
}

// OptionalObject reads an optional nested object and reports whether it is present.
func (f *Form) OptionalObject(name string, read func(*Form)) bool { return f.object(name, false, read) }

func (f *Form) object(name string, required bool, read func(*Form)) bool {
	n := f.member(name, required)
	if n == nil {
		return false
	}
	if n.kind != '{' {
		f.fail(name, notAnObject("the value must be an object"))
		return false
	}
	read(f.below(n, f.path.Then(name)))
	return true
}

// Objects reads a required array of least to most objects.
func (f *Form) Objects(name string, least, most int, read func(i int, item *Form)) {
	f.objects(name, true, least, most, read)
}

// OptionalObjects reads an optional array of objects and reports whether it is present.
func (f *Form) OptionalObjects(name string, least, most int, read func(i int, item *Form)) bool {
	return f.objects(name, false, least, most, read)
}

func (f *Form) objects(name string, required bool, least, most int, read func(int, *Form)) bool {
	n := f.array(name, required, least, most)
	if n == nil {
		return false
	}
	for i, item := range n.items {
		at := f.path.Then(name, i)
		if item.kind != '{' {
			f.errs.add(at, notAnObject("the item must be an object"))
			continue
		}
		read(i, f.below(item, at))
	}
	return true
}

// array returns an array of least to most objects, or nil if it is absent or invalid.
func (f *Form) array(name string, required bool, least, most int) *node {
	n := f.member(name, required)
	switch {
	case n == nil:
	case n.kind != '[':
		f.fail(name, notAList("the value must be an array of objects"))
	case len(n.items) < least || len(n.items) > most:
		f.fail(name, tooMany(least, most, len(n.items)))
	default:
		return n
	}
	return nil
}

func (f *Form) below(n *node, path validation.Path) *Form {
	child := &Form{where: f.where, root: n, path: path, errs: f.errs}
	f.nested = append(f.nested, child)
	return child
}
