// Package trading_test holds the trading journal's schemas and golden files against the rules that write it.
package trading_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

var update = flag.Bool("update", false, "write golden files that are missing")

func events() conform.Events { return conform.Events{Folder: ".", Update: *update} }

// TestEventsMatchSchemasAndGoldenFiles holds every event that the rules make in a story (see story_test.go) against
// its schema, and one of each type against its golden file, byte for byte in both directions: that which the file was made
// of, or the longest. So a story that goes on changes no file.
func TestEventsMatchSchemasAndGoldenFiles(t *testing.T) {
	registry := trading.Rules().Registry()
	schemas, types := map[string]*jsonschema.Schema{}, [3]map[string]bool{1: {}, 2: {}} // by version
	longest, size := map[string]decide.Event{}, map[string]int{}
	for _, e := range tell(t) {
		name := e.EventType()
		if conform.IsShared(name) {
			continue
		}
		made, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if schemas[name] == nil {
			schemas[name] = events().Schema(t, fmt.Sprintf("%s.v%d.schema.json", name, decide.VersionOf(e)))
		}
		if err := conform.Validate(t, schemas[name], made); err != nil {
			t.Errorf("%s: %v\n%s", name, err, made)
		}
		if bytes.Equal(made, events().Written(t, e)) {
			size[name] = math.MaxInt
			longest[name] = e
		} else if len(made) > size[name] {
			longest[name], size[name] = e, len(made)
		}
	}
	for _, shape := range registry.Shapes() {
		if conform.IsShared(shape.Type) {
			continue
		}
		types[shape.Version][shape.Type] = true
		if shape.New == nil {
			events().Retired(t, registry, shape.Type, shape.Version)
			continue
		}
		if longest[shape.Type] == nil {
			t.Errorf("the story has no %s", shape.Type)
			continue
		}
		events().Event(t, registry, longest[shape.Type])
	}
	for version := 1; version < len(types); version++ {
		events().NothingElse(t, fmt.Sprintf("golden/*.v%d.json", version), types[version])
		events().NothingElse(t, fmt.Sprintf("*.v%d.schema.json", version), types[version])
	}
}

// TestRejectedOrdersOfVersion1 are read as orders of which nobody wrote down the leverage, and as nothing else.
func TestRejectedOrdersOfVersion1(t *testing.T) {
	registry := trading.Rules().Registry()
	e := events().Retired(t, registry, "order.rejected", 1).(*trading.OrderRejected)
	if decide.VersionOf(e) != 2 || e.Leverage != 0 || e.Status != order.Rejected || e.CustomerCode == "" || e.Reason == "" {
		t.Errorf("%+v", *e)
	}
	for _, text := range []string{`{"code":"x"}`, `{"unknown":1}`} {
		if e, err := registry.Decode("order.rejected", 1, []byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, e)
		}
	}
}

// TestFirstIndexUpdated: an index price of before there were samples is read as one without, with the mark that it had.
func TestFirstIndexUpdated(t *testing.T) {
	e, ok := events().Retired(t, trading.Rules().Registry(), "index.updated", 1).(*trading.IndexUpdated)
	if !ok || e.Symbol != "BTCUSDC_PERP" || e.IndexPrice.String() != "65000.25" || e.MarkPrice.String() != "65000.25" || e.Premium != nil {
		t.Errorf("%+v", e)
	}
}

// TestCommandSchemas holds what records keep of commands against the schema and the list of types.
func TestCommandSchemas(t *testing.T) {
	types := slices.DeleteFunc(trading.Payloads().Types(), conform.IsShared)
	kept, err := json.Marshal(decide.Metadata{Key: decide.BatchKey("k:1", "0123456789abcdef0123456789abcdef", 49), Fingerprint: "00ff", Session: scalar.ID{1}, Source: &decide.Source{Journal: "onboarding", Sequence: 7}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range types {
		events().Command(t, name, []string{string(kept), "{}"}, []string{`{"amount":"1"}`, `{"key":""}`, `{"key":"a/b"}`, `{"fingerprint":"XY"}`})
	}
	events().Command(t, "engine.step", []string{"{}"}, []string{string(kept)})
	events().OtherCommands(t, append(types, "engine.step"))
}
