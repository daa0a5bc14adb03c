package peer

import (
	"cmp"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// Form describes the payload of a type of command. If two builds have different hashes, they encode it differently.
type Form struct {
	Type string
	Hash uint64
}

func (f *Form) visit(c *pack.Coder) {
	pack.String(c, &f.Type)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], f.Hash)
	c.Raw(b[:])
	if hash := binary.BigEndian.Uint64(b[:]); hash != f.Hash { // a form that is written may be shared
		f.Hash = hash
	}
}

// visitForms visits the list that each side sends of a journal's forms. It is sorted by type.
func visitForms(all *[]Form) func(*pack.Coder) { return list(all, (*Form).visit) }

// FormsOf returns the forms of the payloads of a journal.
func FormsOf(payloads *decide.Payloads) []Form {
	var all []Form
	for _, name := range payloads.Types() {
		payload, _ := payloads.New(name)
		all = append(all, Form{name, hashOf(payload)})
	}
	slices.SortFunc(all, func(a, b Form) int { return strings.Compare(a.Type, b.Type) })
	return all
}

// declared is a payload with a declared form.
type declared interface {
	FormHash() uint64 // of the declaration
}

// hashOf returns the hash of a payload's form. It covers the names, order, and kinds of the members, and the declaration if there is one.
func hashOf(payload any) uint64 {
	h := fnv.New64a()
	describe(h, reflect.TypeOf(payload), nil)
	if d, ok := payload.(declared); ok {
		fmt.Fprintf(h, "declared as %d", d.FormHash())
	}
	return h.Sum64()
}

var (
	ownText = reflect.TypeFor[encoding.TextMarshaler]()
	ownJSON = reflect.TypeFor[json.Marshaler]()
)

// describe writes the form of a type in JSON. within are the types that contain it.
func describe(h hash.Hash, t reflect.Type, within []reflect.Type) {
	if slices.Contains(within, t) {
		fmt.Fprintf(h, "the %dth type around", slices.Index(within, t))
		return
	}
	within = append(within, t)
	if p := reflect.PointerTo(t); t.Kind() != reflect.Pointer && (p.Implements(ownText) || p.Implements(ownJSON) || hasOwnForm(p)) {
		fmt.Fprintf(h, "%s ", t.Name()) // its methods decide on the form
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		fmt.Fprintf(h, "%s of ", t.Kind())
		describe(h, t.Elem(), within)
	case reflect.Map:
		fmt.Fprint(h, "map of ")
		describe(h, t.Key(), within)
		describe(h, t.Elem(), within)
	case reflect.Struct:
		fmt.Fprint(h, "{")
		describeMembers(h, t, within)
		fmt.Fprint(h, "}")
	default:
		fmt.Fprintf(h, "%s ", t.Kind())
	}
}

// describeMembers writes the members of a struct. Those of an embedded struct without a name are members of the outer one.
func describeMembers(h hash.Hash, t reflect.Type, within []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" && options == "":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct && !slices.Contains(within, inner):
			describeMembers(h, inner, append(within, inner))
		case f.IsExported():
			fmt.Fprintf(h, "%q %q: ", cmp.Or(name, f.Name), options)
			describe(h, f.Type, within)
		}
	}
}

// hasOwnForm reports whether a type has the method by which the JSON library lets it encode itself.
func hasOwnForm(t reflect.Type) bool {
	_, ok := t.MethodByName("MarshalJSONTo")
	return ok
}

// compareForms returns the types of commands that are missing on the other side, and the types with different forms.
func compareForms(ours, other []Form) (unknown map[string]bool, differ []string) {
	hashes := make(map[string]uint64, len(other))
	for _, f := range other {
		hashes[f.Type] = f.Hash
	}
	unknown = make(map[string]bool)
	for _, f := range ours {
		switch there, ok := hashes[f.Type]; {
		case !ok:
			unknown[f.Type] = true
		case there != f.Hash:
			differ = append(differ, f.Type)
		}
	}
	return unknown, differ
}
