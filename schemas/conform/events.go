package conform

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// Events is a folder with the JSON Schemas of the events and commands in a journal's records. Its subfolder golden has
// an example of each. A golden file is written once, for a new type or version. An old one never changes: that would
// change history.
type Events struct {
	Folder string
	Update bool // writes the golden files that are missing
}

// Schema compiles a schema of the folder.
func (e Events) Schema(t testing.TB, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	shared, err := os.ReadFile(filepath.Join(e.Folder, "..", "common.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := jsonschema.UnmarshalJSON(bytes.NewReader(shared))
	if err == nil {
		err = c.AddResource("urn:perpetua:common", parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(filepath.Join(e.Folder, file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Validate checks a JSON text against a schema.
func Validate(t testing.TB, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// Strict fails if a schema rejects a text, accepts it with an unknown member, or accepts an empty object.
func Strict(t testing.TB, name string, s *jsonschema.Schema, text []byte) {
	t.Helper()
	if err := Validate(t, s, text); err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
	if Validate(t, s, append(bytes.TrimSuffix(bytes.Clone(text), []byte("}")), `,"more":1}`...)) == nil {
		t.Errorf("%s: the schema allows an unknown member", name)
	}
	if Validate(t, s, []byte("{}")) == nil {
		t.Errorf("%s: the schema requires nothing", name)
	}
}

// Golden compares a text with a golden file and returns the content of the file.
func (e Events) Golden(t testing.TB, name string, made []byte) []byte {
	t.Helper()
	path := filepath.Join(e.Folder, "golden", name)
	want, err := os.ReadFile(path)
	if os.IsNotExist(err) && e.Update {
		want = append(bytes.Clone(made), '\n')
		err = os.WriteFile(path, want, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if want = bytes.TrimSuffix(want, []byte("\n")); !bytes.Equal(made, want) {
		t.Errorf("%s: the rules now make\n%s, the golden file holds\n%s", name, made, want)
	}
	return want
}

// Written returns the content of the golden file for an event's type and version, or nil if there is none.
func (e Events) Written(t testing.TB, event decide.Event) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.Folder, "golden", nameOf(event)+".json"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// IsShared reports whether every journal may hold an event or command. The shared ones are described with the journal's
// own records.
func IsShared(name string) bool {
	return slices.ContainsFunc(decide.NewRegistry().Shapes(), func(s decide.Shape) bool { return s.Type == name }) ||
		slices.Contains(decide.NewPayloads().Types(), name)
}

func nameOf(event decide.Event) string {
	return fmt.Sprintf("%s.v%d", event.EventType(), decide.VersionOf(event))
}

// Event compares an event with its golden file, byte for byte in both directions, and validates the file with its
// schema.
func (e Events) Event(t testing.TB, registry *decide.Registry, event decide.Event) {
	t.Helper()
	name := nameOf(event)
	made, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	want := e.Golden(t, name+".json", made)
	read, err := registry.Decode(event.EventType(), decide.VersionOf(event), want)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || !bytes.Equal(again, want) {
		t.Errorf("%s: decoded and encoded again it is %s (%v)", name, again, err)
	}
	Strict(t, name, e.Schema(t, name+".schema.json"), want)
}

// Retired checks the golden file of a version that is no longer written: its schema accepts it, and the registry
// decodes it as the current version.
func (e Events) Retired(t testing.TB, registry *decide.Registry, eventType string, version int) decide.Event {
	t.Helper()
	name := fmt.Sprintf("%s.v%d", eventType, version)
	text, err := os.ReadFile(filepath.Join(e.Folder, "golden", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.TrimSuffix(text, []byte("\n"))
	Strict(t, name, e.Schema(t, name+".schema.json"), text)
	event, err := registry.Decode(eventType, version, text)
	if err != nil {
		t.Fatal(err)
	}
	return event
}

// Command checks that the list of commands has a type, and that the schema accepts the good texts as its recorded data
// and rejects the bad ones.
func (e Events) Command(t testing.TB, name string, good, bad []string) {
	t.Helper()
	c, listed := e.Commands(t)[name]
	if !listed {
		t.Errorf("the list of commands has no %s", name)
	}
	s := e.Schema(t, "command.schema.json")
	var input *jsonschema.Schema
	if slices.Contains(e.Inputs(t), name) {
		input = e.Schema(t, "command.schema.json#/$defs/"+name)
	}
	accepts := func(text string) bool {
		var data map[string]jsontext.Value
		if err := json.Unmarshal([]byte(text), &data); err != nil {
			t.Fatal(err)
		}
		given, has := data["input"]
		if delete(data, "input"); c.Empty && len(data) > 0 || has && (input == nil || Validate(t, input, given) != nil) {
			return false
		}
		return Validate(t, s, []byte(text)) == nil
	}
	for _, text := range good {
		if !accepts(text) {
			t.Errorf("%s: the schema rejects %s", name, text)
		}
	}
	for _, text := range bad {
		if accepts(text) {
			t.Errorf("%s: the schema allows %s", name, text)
		}
	}
}

// Command is an entry of a journal's list of commands, the file commands.json.
type Command struct {
	Type        string `json:"type"`
	Description string `json:"description"`
	Empty       bool   `json:"empty"` // the recorded data of the type has no member but the input
}

// Inputs returns the command types for which the folder has a schema of their inputs.
func (e Events) Inputs(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.Folder, "command.schema.json"))
	var s struct {
		Defs map[string]struct{} `json:"$defs"`
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(s.Defs))
}

// CheckInputs fails if the command types with a schema of their inputs are not those of which the payload may have one, and
// the given types of steps.
func (e Events) CheckInputs(t testing.TB, payloads *decide.Payloads, steps ...string) {
	t.Helper()
	want := append(slices.DeleteFunc(slices.Clone(payloads.Types()), func(name string) bool { return !payloads.Lacks(name) }), steps...)
	if slices.Sort(want); !slices.Equal(e.Inputs(t), want) {
		t.Errorf("inputs of %v have schemas, records have inputs of %v", e.Inputs(t), want)
	}
}

// Input checks that the schema of a command type's inputs accepts the inputs, and compares the longest with its golden file.
func (e Events) Input(t testing.TB, name string, inputs []string) {
	t.Helper()
	if len(inputs) == 0 {
		t.Fatalf("there is no input of %s", name)
	}
	longest := ""
	for _, input := range inputs {
		e.Command(t, name, []string{`{"input":` + input + `}`}, []string{`{"input":{}}`, `{"input":{"more":1}}`})
		if len(input) > len(longest) {
			longest = input
		}
	}
	e.Golden(t, name+".input.json", []byte(longest))
}

// Commands returns the folder's list of commands by type. It fails if the list is not sorted, if a type is listed twice,
// or if an entry has no description.
func (e Events) Commands(t testing.TB) map[string]Command {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.Folder, "commands.json"))
	var list []Command
	if err == nil {
		err = json.Unmarshal(text, &list, json.RejectUnknownMembers(true))
	}
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]Command, len(list))
	for i, c := range list {
		if c.Description == "" || i > 0 && c.Type <= list[i-1].Type {
			t.Errorf("commands.json: %+v has no description or is not in its place", c)
		}
		out[c.Type] = c
	}
	return out
}

// OtherCommands fails if the list of commands does not consist of the types.
func (e Events) OtherCommands(t testing.TB, types []string) {
	t.Helper()
	if listed := slices.Sorted(maps.Keys(e.Commands(t))); !slices.Equal(listed, slices.Sorted(slices.Values(types))) {
		t.Errorf("commands.json lists %v, there are %v", listed, types)
	}
}

// NothingElse fails for a file that belongs to none of the types. The last star in the pattern matches the type.
func (e Events) NothingElse(t testing.TB, pattern string, types map[string]bool) {
	t.Helper()
	before, after, _ := strings.Cut(filepath.Base(pattern), "*")
	files, err := filepath.Glob(filepath.Join(e.Folder, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !types[strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), before), after)] {
			t.Errorf("%s belongs to nothing", f)
		}
	}
	if len(files) == 0 {
		t.Errorf("there is nothing at %s", pattern)
	}
}

// NoCopies fails if the schemas describe an object of several members more than once. They should refer to one
// description in common.schema.json.
func NoCopies(t testing.TB, pattern string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("there is nothing at %s (%v)", pattern, err)
	}
	seen := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var schema map[string]any
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		eachObject(schema, func(members map[string]any) {
			shape, err := json.Marshal(members, json.Deterministic(true))
			if err != nil {
				t.Fatal(err)
			}
			if other, known := seen[string(shape)]; known {
				t.Errorf("%s and %s describe the same members: %.200s", other, file, shape)
			}
			seen[string(shape)] = file
		})
	}
}

// eachObject calls each with the members of every described object that has more than two.
func eachObject(schema any, each func(map[string]any)) {
	switch s := schema.(type) {
	case map[string]any:
		delete(s, "description")
		for _, part := range s {
			eachObject(part, each)
		}
		if members, ok := s["properties"].(map[string]any); ok && len(members) > 2 {
			each(members)
		}
	case []any:
		for _, part := range s {
			eachObject(part, each)
		}
	}
}
