// Package form declares the JSON objects of requests. An Object lists its members once: name, type, rule, and the field
// of the payload that takes the value. Decoding, the errors of an invalid request, the canonical form that fingerprints
// are computed from, the JSON Schema, and the hash that nodes compare follow from that list.
//
// Object.Decode reads the usual form of a valid object in one pass and allocates almost nothing. It refuses everything
// else: an invalid object, and a form that clients rarely write, such as a string with escapes. Object.Read then reads
// the parsed object from a Source, and reports every error. Both use the same Kind for a value, so that they accept the
// same values.
package form

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// maxMembers is the greatest number of members of an Object.
const maxMembers = 64

// Object declares the JSON object of a request with the payload T. It is immutable.
type Object[T any] struct {
	name      string
	parts     []Part[T]
	names     names
	required  uint64 // members, by their index in parts
	canonical []*Part[T]
}

// Part is a member of an Object, or a check of several members.
type Part[T any] struct {
	name      string
	required  bool
	route     bool            // the value comes from the route
	byDefault func(*T) string // what stands for no value; nil for a member without a default
	added     bool            // left out of the canonical form if it is zero
	after     string          // member that it follows in the canonical form; "" for the order of declaration
	schema    func() string
	read      func(in Value, to *T) *validation.FieldError
	write     func(w *fastjson.Writer, v *T)
	zero      func(v *T) bool
	clear     func(v *T)
	samples   []func(v *T) // set the member to each of its values, if they are few
	check     func(v *T, given Given, errs *validation.Errors)
	canonical string // the quoted name and a colon
}

// New declares an object. Errors are reported in the order of the parts: those of a member where it is declared, those
// of a check where the check is declared. New panics if a name occurs twice or is too long, or if CanonicalAfter names no
// earlier member, which are programming errors.
func New[T any](name string, parts ...Part[T]) *Object[T] {
	o := &Object[T]{name: name, parts: slices.Clone(parts)}
	for i := range o.parts {
		p := &o.parts[i]
		if p.check != nil {
			continue
		}
		if len(parts) > maxMembers || len(p.name) >= len(o.names.byLength) || o.names.index(p.name) >= 0 {
			panic("form: " + name + " declares " + p.name + " twice, a name that is too long, or too many members")
		}
		if !p.route {
			o.names.add(p.name, i)
		}
		if p.required {
			o.required |= 1 << i
		}
		o.addCanonical(p)
	}
	return o
}

// addCanonical adds a member to the canonical form.
func (o *Object[T]) addCanonical(p *Part[T]) {
	at := len(o.canonical)
	if p.after != "" {
		at = 1 + slices.IndexFunc(o.canonical, func(other *Part[T]) bool { return other.name == p.after })
		if at == 0 {
			panic("form: " + o.name + " declares no " + p.after + " before " + p.name)
		}
	}
	p.canonical = `"` + p.name + `":`
	o.canonical = slices.Insert(o.canonical, at, p)
}

// Given is the set of an object's members that are present and not null, valid or not.
type Given struct {
	names *names
	set   uint64
}

// Has reports whether the member is present and not null.
func (g Given) Has(name string) bool {
	i := g.names.index(name)
	return i >= 0 && g.set&(1<<i) != 0
}

// Decode reads an object into a zero value. It returns false if the object is invalid or has an unusual form. The value
// is then undefined, and Read decides.
func (o *Object[T]) Decode(b []byte, to *T) bool {
	r := fastjson.NewReader(b)
	var seen, set uint64
	more := r.Token("{") && !r.Token("}")
	for more {
		r.Space()
		i := o.names.index(string(r.Quoted()))
		if i < 0 || seen&(1<<i) != 0 || !r.Token(":") {
			return false
		}
		seen |= 1 << i
		r.Space()
		if kind, text := r.Plain(); kind != 'n' {
			if r.Failed() || o.parts[i].read(Value{Kind: kind, Text: text}, to) != nil {
				return false
			}
			set |= 1 << i
		}
		if more = r.Token(","); !more && !r.Token("}") {
			return false
		}
	}
	r.Space()
	return seen != 0 && r.Done() && o.required&^set == 0 && o.sound(to, Given{&o.names, set})
}

// sound reports whether no check finds an error.
func (o *Object[T]) sound(v *T, given Given) bool {
	var errs validation.Errors
	for i := range o.parts {
		if check := o.parts[i].check; check != nil {
			check(v, given, &errs)
		}
	}
	return len(errs.List) == 0
}

// Source is a parsed object, of which members are read one by one. It may have more members than an Object reads.
type Source interface {
	// Member returns a value. It returns false if the member is absent or null, and reports an error if it is required.
	Member(name string, required bool) (Value, bool)
	// Has reports whether the member is present and not null.
	Has(name string) bool
	// Report adds an error. Its path begins at the object.
	Report(e validation.FieldError)
}

// Read reads an object into a zero value and reports all errors. After an error, the value is undefined.
func (o *Object[T]) Read(from Source, to *T) {
	given := Given{names: &o.names}
	for i := range o.parts {
		if p := &o.parts[i]; p.check == nil && !p.route && from.Has(p.name) {
			given.set |= 1 << i
		}
	}
	for i := range o.parts {
		p := &o.parts[i]
		switch {
		case p.check != nil:
			var errs validation.Errors
			p.check(to, given, &errs)
			for _, e := range errs.List {
				from.Report(e)
			}
		case !p.route:
			if in, ok := from.Member(p.name, p.required); ok {
				if e := p.read(in, to); e != nil {
					e.Path = validation.At(p.name)
					from.Report(*e)
				}
			}
		}
	}
}

// names finds members by their names. A search compares the few names of the same length.
type names struct {
	byLength [24][]named
}

type named struct {
	name string
	at   int
}

func (n *names) add(name string, at int) {
	n.byLength[len(name)] = append(n.byLength[len(name)], named{name, at})
}

// index returns the index of a name, or -1.
func (n *names) index(name string) int {
	if len(name) < len(n.byLength) {
		for _, m := range n.byLength[len(name)] {
			if m.name == name {
				return m.at
			}
		}
	}
	return -1
}
