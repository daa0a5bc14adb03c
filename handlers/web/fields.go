package web

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/perpetua-exchange/perpetua/domain/form"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// String reads a required string, which must not be empty or contain control characters.
func (f *Form) String(name string, rules ...form.Rule) string {
	return f.string(name, true, rules).Value
}

// OptionalString reads an optional string.
func (f *Form) OptionalString(name string, rules ...form.Rule) Optional[string] {
	return f.string(name, false, rules)
}

func (f *Form) string(name string, required bool, rules []form.Rule) Optional[string] {
	return read(f, name, required, func(in form.Value) (string, *validation.FieldError) { return form.ReadText(in, rules...) })
}

// read reads a member by its kind.
func read[V any](f *Form, name string, required bool, kind func(form.Value) (V, *validation.FieldError)) Optional[V] {
	in, ok := f.Member(name, required)
	if !ok {
		return Optional[V]{}
	}
	v, e := kind(in)
	if e != nil {
		f.fail(name, *e)
	}
	if e != nil || in.Broken {
		return Optional[V]{}
	}
	return Optional[V]{v, true}
}

// Member implements form.Source.
func (f *Form) Member(name string, required bool) (form.Value, bool) {
	n := f.member(name, required)
	if n == nil {
		return form.Value{}, false
	}
	return f.value(n), true
}

func (f *Form) value(n *node) form.Value {
	return form.Value{Kind: n.kind, Text: []byte(n.text), Broken: n.broken, Parameter: f.where != inBody}
}

// Report implements form.Source.
func (f *Form) Report(e validation.FieldError) { f.errs.add(f.path, e) }

// AnyText reads an optional string that may be empty and may contain any valid text. The handler validates it.
func (f *Form) AnyText(name string) Optional[string] {
	n := f.member(name, false)
	switch {
	case n == nil, n.broken:
		return Optional[string]{}
	case n.kind != '"':
		f.fail(name, *form.NotAString())
		return Optional[string]{}
	}
	return Optional[string]{n.text, true}
}

// OptionalText reads an optional text, which may be empty and may have several lines.
func (f *Form) OptionalText(name string, rules ...form.Rule) Optional[string] {
	n := f.member(name, false)
	if n == nil || n.broken {
		return Optional[string]{}
	}
	code, message := "", ""
	switch {
	case n.kind != '"':
		code, message = validation.WrongType, "the value must be a string"
	case strings.ContainsFunc(n.text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }):
		code, message = validation.ControlCharacter, "the text holds a control character"
	default:
		code, message = judge(n.text, rules)
	}
	if code != "" {
		f.Fault(name, code, message)
		return Optional[string]{}
	}
	return Optional[string]{n.text, true}
}

// Enum reads a required string that must be one of allowed.
func (f *Form) Enum(name string, allowed ...string) string { return f.enum(name, true, allowed).Value }

// OptionalEnum reads an optional string that must be one of allowed.
func (f *Form) OptionalEnum(name string, allowed ...string) Optional[string] {
	return f.enum(name, false, allowed)
}

func (f *Form) enum(name string, required bool, allowed []string) Optional[string] {
	return read(f, name, required, form.Words(allowed...).Read)
}

// Several reads an optional list of values separated by pipes. Each must be one of allowed.
func Several[T ~string](f *Form, name string, allowed ...T) []T {
	text := f.OptionalString(name)
	if !text.Set {
		return nil
	}
	names := make([]string, len(allowed))
	for i, a := range allowed {
		names[i] = string(a)
	}
	var out []T
	for value := range strings.SplitSeq(text.Value, "|") {
		if !slices.Contains(names, value) {
			f.fail(name, *form.NoneOf(names))
			return nil
		}
		out = append(out, T(value))
	}
	return out
}

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

// OptionalBool reads an optional boolean.
func (f *Form) OptionalBool(name string) Optional[bool] { return f.bool(name, false) }

func (f *Form) bool(name string, required bool) Optional[bool] {
	return read(f, name, required, form.Bool().Read)
}

// Integer reads a required integer between least and most. In a body, it is a JSON number without point or exponent.
func (f *Form) Integer(name string, least, most int64) int64 {
	return f.integer(name, true, least, most).Value
}

// OptionalInteger reads an optional integer.
func (f *Form) OptionalInteger(name string, least, most int64) Optional[int64] {
	return f.integer(name, false, least, most)
}

func (f *Form) integer(name string, required bool, least, most int64) Optional[int64] {
	return read(f, name, required, form.Integer(least, most).Read)
}

// Leverage reads a required leverage between 1 and most: a JSON integer, or a string of digits without sign or
// leading zero.
func (f *Form) Leverage(name string, most int) int {
	return read(f, name, true, form.Leverage(most).Read).Value
}

// OptionalLeverage reads an optional leverage.
func (f *Form) OptionalLeverage(name string, most int) Optional[int] {
	return read(f, name, false, form.Leverage(most).Read)
}

// ID reads a required UUID.
func (f *Form) ID(name string) scalar.ID { return read(f, name, true, form.ID().Read).Value }

// OptionalID reads an optional UUID.
func (f *Form) OptionalID(name string) Optional[scalar.ID] {
	return read(f, name, false, form.ID().Read)
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

// These constants are the widest range of an integer.
const (
	MinInteger = math.MinInt64
	MaxInteger = math.MaxInt64
)
