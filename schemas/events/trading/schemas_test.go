// Package trading_test holds the trading journal's schemas and golden files against the rules that write it.
package trading_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// A golden file is written once, for a new type or version. An old one never changes: that would change history.
var update = flag.Bool("update", false, "write golden files that are missing")

func compile(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	s, err := c.Compile(file)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// golden returns the bytes of a golden file, which are those that are given if it is to be written.
func golden(t *testing.T, name string, made []byte) []byte {
	t.Helper()
	path := filepath.Join("golden", name)
	want, err := os.ReadFile(path)
	if os.IsNotExist(err) && *update {
		want = append(bytes.Clone(made), '\n')
		err = os.WriteFile(path, want, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(want, []byte("\n"))
}

// TestEventsMatchSchemasAndGoldenFiles holds every event that the rules make in a story (see story_test.go) against
// its schema, and one of each type, the longest, against its golden file, byte for byte in both directions.
func TestEventsMatchSchemasAndGoldenFiles(t *testing.T) {
	registry := trading.Rules().Registry()
	schemas, longest := map[string]*jsonschema.Schema{}, map[string][]byte{}
	for _, e := range tell(t) {
		name := e.EventType()
		made, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if schemas[name] == nil {
			schemas[name] = compile(t, name+".v1.schema.json")
		}
		if err := validate(t, schemas[name], made); err != nil {
			t.Errorf("%s: %v\n%s", name, err, made)
		}
		if len(made) > len(longest[name]) {
			longest[name] = made
		}
	}
	for _, shape := range registry.Shapes() {
		made, file := longest[shape.Type], shape.Type+".v1.json"
		if made == nil {
			t.Errorf("the story has no %s", shape.Type)
			continue
		}
		want := golden(t, file, made)
		if !bytes.Equal(made, want) {
			t.Errorf("%s: the rules now make\n%s, the golden file holds\n%s", file, made, want)
		}
		event, err := registry.Decode(shape.Type, shape.Version, want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(event)
		if err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s: decoded and encoded again it is %s (%v)", file, again, err)
		}
		s := schemas[shape.Type]
		if err := validate(t, s, want); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := validate(t, s, append(bytes.TrimSuffix(want, []byte("}")), `,"more":1}`...)); err == nil {
			t.Errorf("%s: the schema allows an unknown member", file)
		}
		if err := validate(t, s, []byte("{}")); err == nil {
			t.Errorf("%s: the schema requires nothing", file)
		}
	}
	nothingElse(t, "golden/*.v1.json", longest)
	nothingElse(t, "*.v1.schema.json", longest)
}

// nothingElse fails for files that belong to no event type.
func nothingElse(t *testing.T, pattern string, types map[string][]byte) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, _, _ := strings.Cut(filepath.Base(f), ".v1.")
		if types[name] == nil {
			t.Errorf("%s belongs to no event type", f)
		}
	}
}

// TestCommandSchemas holds what records keep of commands against the schemas, of which there is one for each type.
func TestCommandSchemas(t *testing.T) {
	types := []string{trading.CommandRegisterCustomer, trading.CommandListInstrument, trading.CommandChangeInstrument,
		trading.CommandWithdrawInstrument, trading.CommandSetIndexPrice, trading.CommandMakeDeposit,
		trading.CommandRequestWithdrawal, trading.CommandCompleteWithdrawal, trading.CommandCancelWithdrawal,
		trading.CommandSetFeeProfile, trading.CommandSetMarginProfile, trading.CommandPlaceOrder, trading.CommandAmendOrder,
		trading.CommandCancelOrder, trading.CommandCancelAll, trading.CommandSetCancelAllAfter, trading.CommandPutBackDue,
		trading.CommandActivateRules}
	kept, err := json.Marshal(decide.Kept{Key: "k:1", Fingerprint: "00ff", Source: &decide.Source{Journal: "onboarding", Sequence: 7}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range types {
		s := compile(t, name+".command.schema.json")
		for _, ok := range [][]byte{kept, []byte("{}")} {
			if err := validate(t, s, ok); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, bad := range []string{`{"amount":"1"}`, `{"key":""}`, `{"fingerprint":"XY"}`} {
			if err := validate(t, s, []byte(bad)); err == nil {
				t.Errorf("%s: the schema allows %s", name, bad)
			}
		}
	}
	if err := validate(t, compile(t, "engine.step.command.schema.json"), []byte("{}")); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob("*.command.schema.json")
	if err != nil || len(files) != len(types)+1 {
		t.Errorf("%d schemas of commands for %d types and the step (%v)", len(files), len(types), err)
	}
}
