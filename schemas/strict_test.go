package schemas_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// files returns the JSON Schemas of records, by their paths below events.
func files(t *testing.T) map[string]map[string]any {
	t.Helper()
	out := make(map[string]map[string]any)
	events := os.DirFS("events")
	err := fs.WalkDir(events, ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".schema.json") {
			return err
		}
		content, err := fs.ReadFile(events, name)
		if err != nil {
			return err
		}
		var schema map[string]any
		if err := json.Unmarshal(content, &schema); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		out[name] = schema
		return nil
	})
	if err != nil || len(out) < 90 {
		t.Fatalf("%d schemas: %v", len(out), err)
	}
	return out
}

// TestSchemaIDs checks that each $id is unique and follows from the file name, and that each schema names the records it describes.
func TestSchemaIDs(t *testing.T) {
	all := files(t)
	ids, types := make(map[string]string), make(map[string][]string)
	for name := range all {
		if folder, file := path.Split(name); folder != "" {
			types[file] = append(types[file], folder)
		}
	}
	for name, schema := range all {
		id := schema["$id"].(string)
		if other, taken := ids[id]; taken {
			t.Errorf("%s and %s have the id %s", name, other, id)
		}
		ids[id] = name
		folder, file := path.Split(name)
		folder = strings.TrimSuffix(folder, "/")
		said, _ := schema["$comment"].(string)
		event, version, isEvent := strings.TrimSuffix(file, ".schema.json"), "", false
		if at := strings.LastIndex(event, ".v"); at >= 0 {
			event, version, isEvent = event[:at], event[at+2:], true
		}
		isCommand := file == "command.schema.json"
		var kind, of, want string
		switch {
		case isCommand:
			kind, of, want, version = "command", "", "whose header ce_type is a type in commands.json;", "1"
		case isEvent:
			kind, of, want = "event", event, "of type "+event+" and version "+version+" "
		default: // record and common
			continue
		}
		if len(types[file]) > 1 { // of a different shape in each journal
			of = strings.TrimSuffix(folder+":"+of, ":")
		}
		if id != "urn:perpetua:"+kind+":"+of+":"+version {
			t.Errorf("%s has the id %s", name, id)
		}
		source := "/journals/" + folder + "/PARTITION"
		if folder == "journal" {
			source = "/journals/JOURNAL/PARTITION"
		}
		if !strings.Contains(said, want) || !strings.Contains(said, "ce_source is "+source) {
			t.Errorf("%s does not say which records it describes: %q", name, said)
		}
	}
	if said := all["journal/record.schema.json"]["$comment"].(string); !strings.Contains(said, "JOURNAL/commands.json lists CE_TYPE, and command.data has the schema JOURNAL/command.schema.json") || !strings.Contains(said, "JOURNAL/TYPE.vVERSION.schema.json") {
		t.Errorf("the record does not say how its headers name schemas: %q", said)
	}
}

// TestSchemasAreStrict checks the rules of ajv's strict mode: known keywords, a type for every keyword that applies to one type, and a
// property for every required member. `make ajv` runs ajv itself.
func TestSchemasAreStrict(t *testing.T) {
	for name, schema := range files(t) {
		for _, wrong := range strict(schema, "#", false) {
			t.Errorf("%s: %s", name, wrong)
		}
	}
	for name, schema := range map[string]string{
		"no type":          `{"properties":{"a":true}}`,
		"required alone":   `{"type":"object","required":["a"]}`,
		"below then":       `{"type":"object","properties":{"a":true},"if":true,"then":{"required":["a"]}}`,
		"a strange word":   `{"type":"object","propertys":{}}`,
		"type of another":  `{"type":"object","properties":{"a":{"minLength":1}}}`,
		"then without if":  `{"then":{}}`,
		"open tuple":       `{"type":"array","prefixItems":[true]}`,
		"two types at all": `{"type":["string","number"]}`,
	} {
		var parsed map[string]any
		if err := json.Unmarshal([]byte(schema), &parsed); err != nil {
			t.Fatal(err)
		}
		if len(strict(parsed, "#", false)) == 0 {
			t.Errorf("%s: %s is taken as strict", name, schema)
		}
	}
}

// typed maps each keyword to the type of value that it applies to.
func typed() map[string]string {
	out := make(map[string]string)
	for kind, words := range map[string]string{
		"object": "properties required additionalProperties unevaluatedProperties patternProperties propertyNames minProperties maxProperties dependentRequired dependentSchemas",
		"array":  "items prefixItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems",
		"string": "minLength maxLength pattern",
		"number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
	} {
		for word := range strings.FieldsSeq(words) {
			out[word] = kind
		}
	}
	return out
}

// strict returns the violations of strict mode in a schema. hasType means that an enclosing schema declares the type of the same value.
func strict(schema map[string]any, at string, hasType bool) (wrong []string) {
	object := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	about := typed()
	_, own := schema["type"]
	hasType = hasType || own
	if several, is := schema["type"].([]any); is && len(several) > 1 && !slices.Contains(several, any("null")) {
		object("several types")
	}
	if _, conditional := schema["if"]; !conditional && (schema["then"] != nil || schema["else"] != nil) {
		object("then or else without if")
	}
	if _, bounded := schema["items"]; schema["prefixItems"] != nil && !bounded {
		object("a tuple without a bound")
	}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if _, is := properties[name.(string)]; !is {
			object("the required property %q is not defined", name)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(schema)) {
		value, below := schema[word], at+"/"+word
		if about[word] != "" && !hasType {
			object("no type for the keyword %q", word)
		}
		switch word {
		case "$schema", "$id", "$ref", "$comment", "title", "description", "type", "enum", "const", "format", "default", "examples",
			"required", "minProperties", "maxProperties", "dependentRequired", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains",
			"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "contentEncoding",
			"x-disclosure", "x-disclosure-owner", "x-disclosure-hashed":
		case "allOf", "anyOf", "oneOf", "prefixItems":
			for n, one := range value.([]any) {
				wrong = append(wrong, strictAny(one, fmt.Sprint(below, "/", n), hasType && word != "prefixItems")...)
			}
		case "if", "then", "else", "not":
			wrong = append(wrong, strictAny(value, below, hasType)...)
		case "properties", "patternProperties", "$defs", "dependentSchemas":
			for name, one := range value.(map[string]any) {
				wrong = append(wrong, strictAny(one, below+"/"+name, false)...)
			}
		case "items", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames":
			wrong = append(wrong, strictAny(value, below, false)...)
		default:
			object("unknown keyword %q", word)
		}
	}
	return wrong
}

// strictAny is strict for a schema that may also be true or false.
func strictAny(schema any, at string, hasType bool) []string {
	if s, is := schema.(map[string]any); is {
		return strict(s, at, hasType)
	}
	return nil
}

// TestAjv compiles the schemas with ajv in strict mode, if PERPETUA_TEST_AJV is a folder in which ajv is installed. `make ajv` installs
// it and runs this test.
func TestAjv(t *testing.T) {
	at := os.Getenv("PERPETUA_TEST_AJV")
	if at == "" {
		t.Skip("PERPETUA_TEST_AJV names no folder with ajv: make ajv")
	}
	node := exec.CommandContext(t.Context(), "node", "testdata/ajv.cjs", "events")
	node.Env = append(os.Environ(), "NODE_PATH="+path.Join(at, "node_modules"))
	said, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("%s", said)
}
