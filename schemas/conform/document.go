// Package conform compares the behavior of the program with its descriptions under schemas: responses of the REST
// interface with the OpenAPI file, messages of the WebSocket interface with the AsyncAPI file. Tests use it, so that
// neither file can drift away from the program.
//
// Both kinds of file embed JSON Schemas of draft 2020-12. They are compiled inside their document, so that references
// between its parts work.
package conform

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Document is a YAML or JSON file that contains JSON Schemas.
type Document struct {
	name string
	root any

	mu       sync.Mutex // the compiler is not safe for concurrent use
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// base is the base URL of documents, for references between them.
const base = "https://perpetua.invalid/"

// NewDocument reads a file. The name is its path under schemas, like "openapi/openapi.yaml". References to other files
// resolve only if others contains those files under their names.
func NewDocument(name string, source []byte, others map[string][]byte) (*Document, error) {
	d := &Document{name: name, compiler: jsonschema.NewCompiler(), compiled: make(map[string]*jsonschema.Schema)}
	d.compiler.DefaultDraft(jsonschema.Draft2020)
	d.compiler.AssertFormat()
	d.compiler.UseLoader(none{})
	var err error
	if d.root, err = d.add(name, source); err != nil {
		return nil, err
	}
	for other, text := range others {
		if _, err := d.add(other, text); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *Document) add(name string, source []byte) (any, error) {
	text, err := yaml.YAMLToJSON(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := d.compiler.AddResource(base+name, root); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return root, nil
}

// none is a loader that loads nothing, because NewDocument gets every document.
type none struct{}

// Load fails.
func (none) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not one of the documents given", url)
}

// Validate checks a JSON text against the schema at a JSON pointer, like "/components/schemas/Order".
func (d *Document) Validate(pointer string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return d.validate(pointer, value)
}

func (d *Document) validate(pointer string, value any) error {
	schema, err := d.Schema(pointer)
	if err != nil {
		return err
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("against %s#%s: %w", d.name, pointer, err)
	}
	return nil
}

// Schema returns the compiled schema at a JSON pointer.
func (d *Document) Schema(pointer string) (*jsonschema.Schema, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s := d.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := d.compiler.Compile(base + d.name + "#" + escapeFragment(pointer))
	if err != nil {
		return nil, fmt.Errorf("%s#%s: %w", d.name, pointer, err)
	}
	d.compiled[pointer] = s
	return s, nil
}

// At returns the value at a JSON pointer and the value's pointer after resolving references inside the document. It
// returns nil if the value does not exist.
func (d *Document) At(pointer string) (value any, where string) {
	value, where = d.root, ""
	if pointer == "" {
		return value, where
	}
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		value, where = d.child(value, where, token)
		if value == nil {
			return nil, ""
		}
	}
	return value, where
}

// child returns the member or item of a value with an escaped token. It resolves references.
func (d *Document) child(value any, where, token string) (any, string) {
	switch v := value.(type) {
	case map[string]any:
		value = v[unescape(token)]
	case []any:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(v) {
			return nil, ""
		}
		value = v[i]
	default:
		return nil, ""
	}
	where += "/" + token
	if object, ok := value.(map[string]any); ok {
		if ref, ok := object["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
			return d.At(ref[1:])
		}
	}
	return value, where
}

// Escape makes a token of a JSON pointer out of a name.
func Escape(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func unescape(token string) string { return unescaper.Replace(token) }

var unescaper = strings.NewReplacer("~1", "/", "~0", "~")

// escapeFragment percent-encodes the characters of a JSON pointer that a URL fragment must not contain.
func escapeFragment(pointer string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D", " ", "%20").Replace(pointer)
}
