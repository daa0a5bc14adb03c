// Package bundle makes the AsyncAPI file whole. An order, a trade, or a position is described once, in the OpenAPI file;
// schemas/asyncapi/asyncapi.yaml refers to it there. The program serves the bundle, which refers to no other file.
//
// A reference to the OpenAPI file is replaced by a copy of the schema. Members next to the reference extend the copy:
//
//	Order:
//	  $ref: ../openapi/openapi.yaml#/components/schemas/Order
//	  x-renamed: {type: order_type}
//	  required: [channel, type]
//	  properties: {channel: {const: orders}, type: {const: update}}
//
// x-renamed gives properties of the copy other names. Properties and required names are added to those of the copy, and
// a property of the same name replaces the copy's. Any other member replaces the copy's. Schemas to which a copy refers
// are added to the components of the bundle. A copy has no example or examples of the OpenAPI file: those show a resource, not
// a message, and the reader's page of the WebSocket interface renders them inaccessibly. The AsyncAPI file's own stay.
package bundle

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"

	"github.com/perpetua-exchange/perpetua/schemas"
)

// AsyncAPI returns the bundled description of the WebSocket interface, as YAML.
var AsyncAPI = sync.OnceValues(func() ([]byte, error) { return Bundle(schemas.AsyncAPI, schemas.OpenAPI) })

const (
	local    = "#/components/schemas/"
	external = "../openapi/openapi.yaml" + local
	renaming = "x-renamed"
)

// Bundle returns a YAML document in which no schema refers to the library.
func Bundle(document, library []byte) ([]byte, error) {
	b := &bundler{copied: make(map[string]bool)}
	var err error
	if b.document, err = read(document); err != nil {
		return nil, fmt.Errorf("the document: %w", err)
	}
	whole, err := read(library)
	if err != nil {
		return nil, fmt.Errorf("the library: %w", err)
	}
	b.library = schemasOf(whole)
	for _, s := range schemasOf(b.document) {
		if at, ok := s.Value.(yaml.MapSlice); ok && len(at) == 1 && at[0].Value == external+s.Key.(string) {
			b.copied[s.Key.(string)] = true
		}
	}
	resolved, err := b.resolve(b.document)
	if err != nil {
		return nil, err
	}
	b.document = resolved.(yaml.MapSlice)
	if err := b.complete(); err != nil {
		return nil, err
	}
	return yaml.MarshalWithOptions(b.document, yaml.UseLiteralStyleIfMultiline(true))
}

type bundler struct {
	document yaml.MapSlice
	library  yaml.MapSlice   // the library's schemas by name
	wanted   []string        // names to which copies refer, in order
	copied   map[string]bool // names of schemas that are the same in both
}

func read(text []byte) (m yaml.MapSlice, err error) {
	err = yaml.UnmarshalWithOptions(text, &m, yaml.UseOrderedMap())
	return m, err
}

// schemasOf returns the schemas of a document by name.
func schemasOf(document yaml.MapSlice) yaml.MapSlice {
	components, _ := member(document, "components").(yaml.MapSlice)
	all, _ := member(components, "schemas").(yaml.MapSlice)
	return all
}

func member(m yaml.MapSlice, name string) any {
	for _, i := range m {
		if i.Key == name {
			return i.Value
		}
	}
	return nil
}

// put returns m with a member added or replaced.
func put(m yaml.MapSlice, name string, value any) yaml.MapSlice {
	for i := range m {
		if m[i].Key == name {
			m[i].Value = value
			return m
		}
	}
	return append(m, yaml.MapItem{Key: name, Value: value})
}

// resolve returns a value of the document with copies in place of external references.
func (b *bundler) resolve(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = b.resolve(v[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case yaml.MapSlice:
		ref, _ := member(v, "$ref").(string)
		out := make(yaml.MapSlice, 0, len(v))
		for _, i := range v {
			if i.Key == "$ref" && strings.HasPrefix(ref, external) || i.Key == renaming {
				continue
			}
			value, err := b.resolve(i.Value)
			if err != nil {
				return nil, err
			}
			out = append(out, yaml.MapItem{Key: i.Key, Value: value})
		}
		name, found := strings.CutPrefix(ref, external)
		if !found {
			return out, nil
		}
		renamed, _ := member(v, renaming).(yaml.MapSlice)
		return b.extended(name, renamed, out)
	}
	return v, nil
}

// extended returns a copy of the library's schema, extended by the members next to the reference.
func (b *bundler) extended(name string, renamed, members yaml.MapSlice) (yaml.MapSlice, error) {
	original, ok := member(b.library, name).(yaml.MapSlice)
	if !ok {
		return nil, fmt.Errorf("the library has no schema %s", name)
	}
	properties, _ := member(original, "properties").(yaml.MapSlice)
	for _, r := range renamed {
		if member(properties, r.Key.(string)) == nil {
			return nil, fmt.Errorf("the schema %s has no property %v to rename", name, r.Key)
		}
	}
	replaced, _ := member(members, "properties").(yaml.MapSlice)
	schema := b.copy(original, func(property string) string {
		if to, ok := member(renamed, property).(string); ok {
			return to
		}
		return property
	}, replaced).(yaml.MapSlice)
	for _, i := range members {
		switch key := i.Key.(string); key {
		case "properties":
			merged := append(yaml.MapSlice{}, replaced...)
			old, _ := member(schema, key).(yaml.MapSlice)
			for _, p := range old {
				if member(replaced, p.Key.(string)) == nil {
					merged = append(merged, p)
				}
			}
			schema = put(schema, key, merged)
		case "required":
			old, _ := member(schema, key).([]any)
			schema = put(schema, key, append(append([]any{}, i.Value.([]any)...), old...))
		default:
			if member(schema, key) == nil { // a description goes first
				schema = append(yaml.MapSlice{i}, schema...)
			}
			schema = put(schema, key, i.Value)
		}
	}
	return schema, nil
}

// copy returns a deep copy of a library's value, with renamed properties and without the replaced ones and the examples. It
// notes the schemas to which the copy refers. A reference with other members becomes an allOf: JSON Schema of draft 7, which
// AsyncAPI extends, ignores such members.
func (b *bundler) copy(v any, rename func(string) string, replaced yaml.MapSlice) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = b.copy(v[i], rename, nil)
		}
		return out
	case yaml.MapSlice:
		out := make(yaml.MapSlice, 0, len(v))
		for _, i := range v {
			switch key := i.Key.(string); {
			case shows(key):
			case key == "$ref" && slices.ContainsFunc(v, func(m yaml.MapItem) bool { return m.Key != key && !shows(m.Key) }):
				b.want(i.Value.(string))
				out = append(out, yaml.MapItem{Key: "allOf", Value: []any{yaml.MapSlice{i}}})
			case key == "$ref":
				b.want(i.Value.(string))
				out = append(out, i)
			case key == "properties":
				out = append(out, yaml.MapItem{Key: key, Value: b.properties(i.Value.(yaml.MapSlice), rename, replaced)})
			case key == "required":
				names := make([]any, 0)
				for _, name := range i.Value.([]any) {
					names = append(names, rename(name.(string)))
				}
				out = append(out, yaml.MapItem{Key: key, Value: names})
			default:
				out = append(out, yaml.MapItem{Key: key, Value: b.copy(i.Value, rename, nil)})
			}
		}
		return out
	}
	return v
}

// properties copies the properties of a schema. The names inside a property's own schema stay.
func (b *bundler) properties(all yaml.MapSlice, rename func(string) string, replaced yaml.MapSlice) yaml.MapSlice {
	out := make(yaml.MapSlice, 0, len(all))
	for _, p := range all {
		name := rename(p.Key.(string))
		if member(replaced, name) == nil {
			out = append(out, yaml.MapItem{Key: name, Value: b.copy(p.Value, same, nil)})
		}
	}
	return out
}

func same(name string) string { return name }

// shows reports whether a member of a schema only shows values.
func shows(key any) bool { return key == "example" || key == "examples" }

func (b *bundler) want(ref string) { b.wanted = append(b.wanted, strings.TrimPrefix(ref, local)) }

// complete adds the schemas to which copies refer, directly or not. It fails if the document has another schema of the
// same name.
func (b *bundler) complete() error {
	all := schemasOf(b.document)
	for len(b.wanted) > 0 {
		name := b.wanted[0]
		b.wanted = b.wanted[1:]
		switch {
		case b.copied[name]:
			continue
		case member(all, name) != nil:
			return fmt.Errorf("a copy refers to the schema %s, and the document has another one of that name", name)
		}
		schema, err := b.extended(name, nil, nil)
		if err != nil {
			return err
		}
		b.copied[name] = true
		all = append(all, yaml.MapItem{Key: name, Value: schema})
	}
	components := put(member(b.document, "components").(yaml.MapSlice), "schemas", all)
	b.document = put(b.document, "components", components)
	return nil
}
