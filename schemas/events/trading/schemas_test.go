// Package trading_test holds the trading journal's schemas and golden files against the rules that write it.
package trading_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

var update = flag.Bool("update", false, "write golden files that are missing")

func events() conform.Events { return conform.Events{Folder: ".", Update: *update} }

// TestEventsMatchSchemasAndGoldenFiles holds every event that the rules make in a story (see story_test.go) against
// its schema, and one of each type, the longest, against its golden file, byte for byte in both directions.
func TestEventsMatchSchemasAndGoldenFiles(t *testing.T) {
	registry := trading.Rules().Registry()
	schemas, types := map[string]*jsonschema.Schema{}, map[string]bool{}
	longest, size := map[string]decide.Event{}, map[string]int{}
	for _, e := range tell(t) {
		name := e.EventType()
		made, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if schemas[name] == nil {
			schemas[name] = events().Schema(t, name+".v1.schema.json")
			types[name] = true
		}
		if err := conform.Validate(t, schemas[name], made); err != nil {
			t.Errorf("%s: %v\n%s", name, err, made)
		}
		if len(made) > size[name] {
			longest[name], size[name] = e, len(made)
		}
	}
	for _, shape := range registry.Shapes() {
		if longest[shape.Type] == nil {
			t.Errorf("the story has no %s", shape.Type)
			continue
		}
		events().Event(t, registry, longest[shape.Type])
	}
	events().NothingElse(t, "golden/*.v1.json", types)
	events().NothingElse(t, "*.v1.schema.json", types)
}

// TestCommandSchemas holds what records keep of commands against the schemas, of which there is one for each type.
func TestCommandSchemas(t *testing.T) {
	types := trading.Payloads().Types()
	kept, err := json.Marshal(decide.Kept{Key: "k:1", Fingerprint: "00ff", Source: &decide.Source{Journal: "onboarding", Sequence: 7}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range types {
		events().Command(t, name, []string{string(kept), "{}"}, []string{`{"amount":"1"}`, `{"key":""}`, `{"fingerprint":"XY"}`})
	}
	events().Command(t, "engine.step", []string{"{}"}, nil)
	files, err := filepath.Glob("*.command.schema.json")
	if err != nil || len(files) != len(types)+1 {
		t.Errorf("%d schemas of commands for %d types and the step (%v)", len(files), len(types), err)
	}
}
