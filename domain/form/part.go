package form

import (
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
	"github.com/perpetua-exchange/perpetua/domain/validation"
)

// Required is a member that must be present and not null. at returns the field of the payload that takes the value.
func Required[T any, V comparable](name string, at func(*T) *V, kind Kind[V]) Part[T] {
	p := Optional(name, at, kind)
	p.required = true
	return p
}

// Optional is a member that may be absent or null. The field then keeps its zero value.
func Optional[T any, V comparable](name string, at func(*T) *V, kind Kind[V]) Part[T] {
	p := Part[T]{name: name, schema: kind.schema,
		read: func(in Value, to *T) *validation.FieldError {
			v, e := kind.read(in)
			*at(to) = v
			return e
		},
		write: func(w *fastjson.Writer, v *T) { kind.write(w, *at(v)) },
		zero: func(v *T) bool {
			var none V
			return *at(v) == none
		},
		clear: func(v *T) {
			var none V
			*at(v) = none
		},
	}
	for _, sample := range kind.samples {
		p.samples = append(p.samples, func(v *T) { *at(v) = sample })
	}
	return p
}

// Pointer is an optional member. If it is absent or null, the field stays nil.
func Pointer[T any, V comparable](name string, at func(*T) **V, kind Kind[V]) Part[T] {
	return Part[T]{name: name, schema: kind.schema,
		read: func(in Value, to *T) *validation.FieldError {
			v, e := kind.read(in)
			if e == nil {
				*at(to) = &v
			}
			return e
		},
		write: func(w *fastjson.Writer, v *T) {
			if p := *at(v); p != nil {
				kind.write(w, *p)
			} else {
				w.Raw("null")
			}
		},
		zero:  func(v *T) bool { return *at(v) == nil },
		clear: func(v *T) { *at(v) = nil },
	}
}

// Name returns the name of the member.
func (p Part[T]) Name() string { return p.name }

// IsZero reports whether v has no value of the member.
func (p Part[T]) IsZero(v *T) bool { return p.zero(v) }

// Clear removes the member's value from v.
func (p Part[T]) Clear(v *T) { p.clear(v) }

// Names returns the names of members.
func Names[T any](parts []Part[T]) []string {
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	return names
}

// Route is a member of the canonical form that is not in the object: the route has its value.
func Route[T any](name string, at func(*T) *string) Part[T] {
	p := Optional(name, at, Kind[string]{write: (*fastjson.Writer).String})
	p.route = true
	return p
}

// Check adds a check of several members. Paths of errors begin at the object. The check also runs if members are invalid:
// their fields are then zero.
func Check[T any](check func(v *T, given Given, errs *validation.Errors)) Part[T] {
	return Part[T]{check: check}
}

// Default has the canonical form show of(v) if the member has no word.
func (p Part[T]) Default(of func(v *T) string) Part[T] {
	write, zero := p.write, p.zero
	p.byDefault = of
	p.write = func(w *fastjson.Writer, v *T) {
		if zero(v) {
			w.String(of(v))
		} else {
			write(w, v)
		}
	}
	return p
}

// CanonicalAfter gives the member another place in the canonical form: after a member that is declared before it.
func (p Part[T]) CanonicalAfter(name string) Part[T] {
	p.after = name
	return p
}

// Added marks a member that the object did not have when the first fingerprints were written to the log. The canonical
// form leaves it out if it is zero, so that requests without it keep their fingerprints.
func (p Part[T]) Added() Part[T] {
	p.added = true
	return p
}
