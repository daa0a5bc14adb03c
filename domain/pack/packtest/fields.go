package packtest

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// Derived names the fields that are not saved, as "package.Type.field", each with the reason: what it follows from, or
// why it is not part of the state. The name of a type alone stands for all its fields.
type Derived map[string]string

// Fields checks that every field of a state of type S is saved or derived. The states that Try is given MUST together
// have a value of every field that is saved.
type Fields[S any] struct {
	save func(*S) []byte
	fields
}

// NewFields returns a check for which no state was tried so far.
func NewFields[S any](save func(*S) []byte, derived Derived) *Fields[S] {
	f := &Fields[S]{save, fields{derived: derived, open: make(map[string]bool), known: make(map[string]bool)}}
	f.know(reflect.TypeFor[S]())
	return f
}

// Try changes each field that was not seen to be saved so far, in one place of the state after another, until the saved
// form changes. Afterwards the state is as it was.
func (f *Fields[S]) Try(s *S) {
	if len(f.open) == 0 {
		return
	}
	f.changes, f.seen = nil, make(map[unsafe.Pointer]bool)
	f.walk(reflect.ValueOf(s).Elem(), func() {})
	was := f.save(s)
	for _, c := range f.changes {
		if !f.open[c.field] {
			continue
		}
		undo := c.change()
		now, failed := attempt(func() []byte { return f.save(s) })
		undo()
		if failed && c.structural || !failed && !bytes.Equal(now, was) {
			delete(f.open, c.field)
		}
	}
}

// Report fails the test for each field that is neither saved nor derived, and for each derived field that does not
// exist or has no reason.
func (f *Fields[S]) Report(t *testing.T) {
	t.Helper()
	for _, field := range slices.Sorted(maps.Keys(f.open)) {
		t.Errorf("%s is neither saved nor on the list of derived fields, or no state has a value of it", field)
	}
	for field, reason := range f.derived {
		if !f.known[field] || reason == "" {
			t.Errorf("the derived field %s does not exist, or has no reason", field)
		}
	}
}

// attempt calls save, which may panic because of a change that cannot be.
func attempt(save func() []byte) (saved []byte, failed bool) {
	defer func() { failed = recover() != nil }()
	return save(), false
}

type fields struct {
	derived Derived
	known   map[string]bool // fields and types that exist
	open    map[string]bool // fields that were not seen to be saved so far
	changes []change
	seen    map[unsafe.Pointer]bool
}

// change changes one place of a field.
type change struct {
	field      string
	structural bool // a pointer, list or map became empty or shorter, at which save may also panic
	change     func() (undo func())
}

// walk collects the changes of everything below v, which is addressable. commit writes v back if it is a copy.
func (f *fields) walk(v reflect.Value, commit func()) {
	switch v.Kind() {
	case reflect.Pointer:
		if p := v.UnsafePointer(); p != nil && !f.seen[p] {
			f.seen[p] = true
			f.walk(v.Elem(), func() {})
		}
	case reflect.Slice:
		for i := range v.Len() {
			f.walk(v.Index(i), func() {})
		}
	case reflect.Array:
		for i := range v.Len() {
			f.walk(v.Index(i), commit)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(key))
			f.walk(value, func() { v.SetMapIndex(key, value); commit() })
		}
	case reflect.Struct:
		f.walkStruct(v, commit)
	}
}

func (f *fields) walkStruct(v reflect.Value, commit func()) {
	if !ours(v.Type()) || f.derived[typeName(v.Type())] != "" {
		return
	}
	for i := range v.NumField() {
		name := typeName(v.Type()) + "." + v.Type().Field(i).Name
		if f.derived[name] != "" || isView(v.Type().Field(i)) {
			continue
		}
		part := reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem()
		f.change(name, part, commit)
		f.walk(part, commit)
	}
}

// isView reports whether a field is an embedded interface: a view of other fields of the same struct.
func isView(f reflect.StructField) bool { return f.Anonymous && f.Type.Kind() == reflect.Interface }

// know notes the fields of a type and of the types that it is made of. A field without a size holds nothing to save.
func (f *fields) know(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		f.know(t.Elem())
	case reflect.Map:
		f.know(t.Elem())
	case reflect.Struct:
		name := typeName(t)
		if !ours(t) || f.known[name] {
			return
		}
		f.known[name] = true
		for i := range t.NumField() {
			field := name + "." + t.Field(i).Name
			f.known[field] = true
			if f.derived[name] == "" && f.derived[field] == "" && t.Field(i).Type.Size() > 0 && !isView(t.Field(i)) {
				f.open[field] = true
				f.know(t.Field(i).Type)
			}
		}
	}
}

// change adds the changes of one place of a field: of every scalar in it, or of its length.
func (f *fields) change(field string, v reflect.Value, commit func()) {
	set := func(structural bool, to func() reflect.Value) {
		f.changes = append(f.changes, change{field, structural, func() func() {
			was := reflect.New(v.Type()).Elem()
			was.Set(v)
			v.Set(to())
			commit()
			return func() { v.Set(was); commit() }
		}})
	}
	switch v.Kind() {
	case reflect.Struct:
		if ours(v.Type()) {
			for i := range v.NumField() {
				f.change(field, reflect.NewAt(v.Field(i).Type(), unsafe.Pointer(v.Field(i).UnsafeAddr())).Elem(), commit)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			f.change(field, v.Index(i), commit)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			set(true, func() reflect.Value { return reflect.Zero(v.Type()) })
		}
	case reflect.Slice:
		if v.Len() > 0 {
			set(true, func() reflect.Value { return v.Slice(0, v.Len()-1) })
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			set(true, func() reflect.Value { return without(v, key) })
		}
	default:
		set(false, func() reflect.Value { return other(v, 1) })
		set(false, func() reflect.Value { return other(v, -1) }) // of a length that is counted, more may panic
	}
}

// without returns a copy of a map without a key.
func without(m, key reflect.Value) reflect.Value {
	fewer := reflect.MakeMap(m.Type())
	for _, k := range m.MapKeys() {
		fewer.SetMapIndex(k, m.MapIndex(k))
	}
	fewer.SetMapIndex(key, reflect.Value{})
	return fewer
}

// other returns another value of a scalar's type: for a number, that much more.
func other(v reflect.Value, more int64) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch {
	case v.CanInt():
		out.SetInt(v.Int() + more)
	case v.CanUint():
		out.SetUint(v.Uint() ^ 1)
	case v.Kind() == reflect.Bool:
		out.SetBool(!v.Bool())
	case v.Kind() == reflect.String:
		out.SetString(v.String() + "x")
	default:
		panic(fmt.Sprintf("packtest: a state holds a %s", v.Type()))
	}
	return out
}

// ours reports whether a type belongs to a state: it is declared below domain/.
func ours(t reflect.Type) bool { return strings.Contains(t.PkgPath(), "/domain/") }

// typeName returns the name of a type with its package, without the paths of packages in type arguments.
func typeName(t reflect.Type) string {
	name := t.String()
	at := strings.IndexByte(name, '[')
	if at < 0 {
		return name
	}
	argument := strings.TrimPrefix(name[at+1:], "*")
	if slash := strings.LastIndexByte(argument, '/'); slash >= 0 {
		argument = argument[slash+1:]
	}
	return name[:at] + "[" + argument
}
