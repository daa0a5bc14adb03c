package disclosetest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// shape is what Full reads of a schema.
type shape struct {
	Ref        string                     `json:"$ref"`
	Type       string                     `json:"type"`
	Enum       []json.RawMessage          `json:"enum"`
	Properties json.RawMessage            `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	OneOf      []shape                    `json:"oneOf"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	properties []property                 // of what Ref refers to
}

// Full returns the events of a journal and those that all journals share, by type and version, each as an element of a
// record's events with every member that its schema describes. Where the schema has alternatives, a list has an element for
// each, and another value is the first one, or with second the second one. Values have the type of the schema and not always
// its pattern; no two texts are the same.
func Full(t testing.TB, files fs.FS, journal string, second bool) map[string]string {
	t.Helper()
	var common shape
	parse(t, files, "common.schema.json", &common)
	out := make(map[string]string)
	for _, folder := range []string{journal, "journal"} {
		names, err := fs.Glob(files, folder+"/*.v*.schema.json")
		if err != nil || len(names) == 0 {
			t.Fatalf("no schemas of %s: %v", folder, err)
		}
		for _, name := range names {
			var text json.RawMessage
			parse(t, files, name, &text)
			event := strings.TrimSuffix(path.Base(name), ".schema.json")
			dot := strings.LastIndex(event, ".v")
			f := &filler{t: t, defs: common.Defs}
			if second {
				f.alternative = 1
			}
			data := f.value(f.read(text), "data", f.alternative)
			out[event] = fmt.Sprintf(`{"type":%q,"version":%s,"data":%s}`, event[:dot], event[dot+2:], data)
		}
	}
	return out
}

func parse(t testing.TB, files fs.FS, name string, to any) {
	t.Helper()
	text, err := fs.ReadFile(files, name)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// filler makes the values of one event.
type filler struct {
	t           testing.TB
	defs        map[string]json.RawMessage
	alternative int // of a value that is not in a list
	texts       int // made so far
}

func (f *filler) read(text json.RawMessage) (s shape) {
	f.t.Helper()
	if err := json.Unmarshal(text, &s); err != nil {
		f.t.Fatalf("%s: %v", text, err)
	}
	if s.Ref == "" {
		return s
	}
	common := f.read(f.defs[path.Base(s.Ref)])
	s.Type, s.Enum, s.OneOf = s.Type+common.Type, append(s.Enum, common.Enum...), append(s.OneOf, common.OneOf...)
	s.properties = common.list()
	if s.Items == nil {
		s.Items = common.Items
	}
	return s
}

// value returns a value of a schema, for the member with the given name.
func (f *filler) value(s shape, name string, alternative int) string {
	members := append(s.properties, s.list()...)
	excluded := make(map[string]bool) // the members of other alternatives only
	for i, one := range s.OneOf {
		for _, m := range one.list() {
			excluded[m.name] = i != min(alternative, len(s.OneOf)-1)
		}
		members = append(members, one.list()...)
	}
	switch {
	case len(members) > 0:
		return f.object(members, excluded)
	case s.Items != nil:
		var elements []string
		one := f.read(s.Items)
		for i := range max(1, len(one.OneOf)) {
			elements = append(elements, f.value(one, name, i))
		}
		return "[" + strings.Join(elements, ",") + "]"
	case len(s.Enum) > 0:
		return string(s.Enum[0])
	case strings.HasPrefix(s.Type, "integer"):
		return "7"
	case strings.HasPrefix(s.Type, "boolean"):
		return "true"
	}
	f.texts++
	return fmt.Sprintf("%q", fmt.Sprint(name, "-", f.texts))
}

// object returns an object with each of the members once.
func (f *filler) object(members []property, excluded map[string]bool) string {
	var out []string
	for _, m := range members {
		if !excluded[m.name] && m.schema.Kind() == '{' {
			excluded[m.name] = true
			out = append(out, fmt.Sprintf("%q:%s", m.name, f.value(f.read(json.RawMessage(m.schema)), m.name, f.alternative)))
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

type property struct {
	name   string
	schema jsontext.Value
}

// list returns the members of an object in the order of the schema.
func (s *shape) list() (out []property) {
	d := jsontext.NewDecoder(strings.NewReader(string(s.Properties)))
	for d.ReadToken(); d.PeekKind() == '"'; {
		name, err := d.ReadToken()
		one := property{name: name.String()}
		if err == nil {
			var text jsontext.Value
			text, err = d.ReadValue()
			one.schema = text.Clone()
		}
		if err != nil {
			return out
		}
		out = append(out, one)
	}
	return out
}
