// Package onboarding_test holds the onboarding journal's schemas and golden files against the rules that write it.
package onboarding_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/document"
	"github.com/perpetua-exchange/perpetua/domain/document/format"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	"github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/questionnaire"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

var update = flag.Bool("update", false, "write golden files that are missing")

func events() conform.Events { return conform.Events{Folder: ".", Update: *update} }

// TestEventsMatchSchemasAndGoldenFiles holds every event that the rules make in a story (see story_test.go) against its
// schema, and one of each type against its golden file, byte for byte in both directions: that which the file was made
// of, or the longest. So a story that goes on changes no file.
func TestEventsMatchSchemasAndGoldenFiles(t *testing.T) {
	registry := onboarding.Rules().Registry()
	schemas, chosen, size := map[string]*jsonschema.Schema{}, map[string]decide.Event{}, map[string]int{}
	for _, e := range tell(t).events {
		if conform.IsShared(e.EventType()) {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		name := version(e.EventType(), decide.VersionOf(e))
		if schemas[name] == nil {
			schemas[name] = events().Schema(t, name+".schema.json")
		}
		if err := conform.Validate(t, schemas[name], text); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		if bytes.Equal(text, events().Written(t, e)) {
			size[name], chosen[name] = onboarding.RecordLimit, e
		} else if len(text) > size[name] {
			size[name], chosen[name] = len(text), e
		}
	}
	types := [3]map[string]bool{1: {}, 2: {}} // by version
	for _, shape := range registry.Shapes() {
		if conform.IsShared(shape.Type) {
			continue
		}
		types[shape.Version][shape.Type] = true
		made := chosen[version(shape.Type, shape.Version)]
		if made == nil {
			t.Errorf("the story has no %s of version %d", shape.Type, shape.Version)
			continue
		}
		events().Event(t, registry, made)
	}
	for n := 1; n < len(types); n++ {
		events().NothingElse(t, fmt.Sprintf("golden/*.v%d.json", n), types[n])
		events().NothingElse(t, fmt.Sprintf("*.v%d.schema.json", n), types[n])
	}
}

// version names a version of a type of events.
func version(eventType string, n int) string { return fmt.Sprintf("%s.v%d", eventType, n) }

// TestReplaysOfVersion1 are read as replays of deliveries that the state knows, and what only version 2 has is refused.
func TestReplaysOfVersion1(t *testing.T) {
	registry := onboarding.Rules().Registry()
	e, ok := events().Retired(t, registry, onboarding.TypeDeliveryReplayed, 1).(*onboarding.DeliveryReplayed)
	if !ok || decide.VersionOf(e) != 1 || e.Reopened != nil || e.ID.IsZero() || e.WebhookID.IsZero() || e.Tenant == "" || e.Attempts == 0 || e.By == "" || e.Time == 0 {
		t.Errorf("%+v", e)
	}
	for _, text := range []string{`{"event_id":"00000000-0000-8000-8000-000000000001"}`, `{"made":{"sequence":1,"ordinal":0}}`, `{"unknown":1}`} {
		if e, err := registry.Decode(onboarding.TypeDeliveryReplayed, 1, []byte(text)); err == nil {
			t.Errorf("%s is read as %+v", text, e)
		}
	}
}

// TestCommandSchemas holds what records keep of commands against the schema and the list of types. The story has every
// type.
func TestCommandSchemas(t *testing.T) {
	types := slices.DeleteFunc(onboarding.Payloads().Types(), conform.IsShared)
	kept, err := json.Marshal(decide.Metadata{Key: "k:1", Fingerprint: "00ff", Source: &decide.Source{Journal: "trading", Sequence: 7}})
	if err != nil {
		t.Fatal(err)
	}
	told := tell(t).commands
	for _, name := range types {
		if !told[name] {
			t.Errorf("the story has no %s", name)
		}
		events().Command(t, name, []string{string(kept), "{}"}, []string{`{"reason":"in clear"}`, `{"key":""}`, `{"key":"a/b"}`, `{"fingerprint":"XY"}`})
	}
	events().Command(t, "engine.step", []string{"{}"}, []string{string(kept)})
	events().OtherCommands(t, append(types, "engine.step"))
}

// TestEveryMemberIsTold: each member that may be absent from an event occurs in the story, so that a schema without it
// fails.
func TestEveryMemberIsTold(t *testing.T) {
	met := make(map[string]bool)
	for _, e := range tell(t).events {
		note(e.EventType(), reflect.ValueOf(e).Elem(), met)
	}
	never := []string{"webhook.created.Next", "webhook.created.NextFrom", "webhook.created.Disabled", "webhook.created.Failing",
		"webhook.enabled.Disabled", "webhook.enabled.Failing"} // whose schemas forbid them
	for member, told := range met {
		if told == slices.Contains(never, member) {
			t.Errorf("that an event of the story has %s is %t", member, told)
		}
	}
}

// note notes of each field of an event that may be absent whether it was ever there.
func note(path string, v reflect.Value, met map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(path, v.Elem(), met)
		}
	case reflect.Slice:
		for i := range v.Len() {
			note(path, v.Index(i), met)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f, at := v.Type().Field(i), path
			if !f.Anonymous {
				at += "." + f.Name
			}
			if strings.Contains(f.Tag.Get("json"), ",omit") {
				met[at] = met[at] || !v.Field(i).IsZero()
			}
			note(at, v.Field(i), met)
		}
	}
}

// TestListsAgree holds the schemas' lists of words against the rules'.
func TestListsAgree(t *testing.T) {
	for _, c := range []struct {
		def  string
		want []string
	}{
		{"document_category", texts(document.Categories())}, {"orientation", texts(document.Orientations())},
		{"question_type", texts(questionnaire.QuestionTypes())}, {"event_type", texts(webhook.EventTypes())}, {"trigger_action", texts(entitlement.Actions())},
	} {
		if got := words(t, c.def); !slices.Equal(got, c.want) {
			t.Errorf("%s: the schema lists %v, the rules %v", c.def, got, c.want)
		}
	}
	for _, f := range words(t, "file_format") {
		if format.Format(f).MediaType() == "" {
			t.Errorf("the rules know no files of the format %s", f)
		}
	}
}

// words returns the words that a definition of common.schema.json lists.
func words(t *testing.T, def string) []string {
	t.Helper()
	text, err := os.ReadFile("../common.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var common struct {
		Defs map[string]struct {
			Enum []string `json:"enum"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &common); err != nil {
		t.Fatal(err)
	}
	return common.Defs[def].Enum
}

func texts[T ~string](words []T) []string {
	var out []string
	for _, w := range words {
		out = append(out, string(w))
	}
	return out
}
