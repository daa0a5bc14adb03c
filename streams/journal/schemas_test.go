package journal

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// A golden file is written once, for a new type or version. An old one never changes: that would change history.
var update = flag.Bool("update", false, "write golden files that are missing")

const schemasFolder = "../../schemas/events/journal"

func schema(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	s, err := c.Compile(filepath.Join(schemasFolder, file))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func conforms(t *testing.T, s *jsonschema.Schema, value []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func golden(t *testing.T, name string, made []byte) []byte {
	t.Helper()
	path := filepath.Join(schemasFolder, "golden", name)
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

func TestTheJournalsOwnRecordsMatchSchemasAndGoldenFiles(t *testing.T) {
	id, err := decide.ParseID("6f9619ff-8b86-4d01-b42d-00cf4fc964ff")
	if err != nil {
		t.Fatal(err)
	}
	command, err := decide.ParseID("019b3c1e-8d6a-7b7e-8c5e-2f4a1b9d0c3e")
	if err != nil {
		t.Fatal(err)
	}
	at := decide.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	chain := newChain(noteRules{}, 0, Before)
	seen := make(map[string]bool)
	for i, e := range []decide.Event{
		&Genesis{Journal: "trading", JournalID: id, Partition: 0, Partitions: 1},
		&Taken{Term: 1, Node: "node-1", URL: "http://127.0.0.1:8080", Build: "v0.1.0"},
	} {
		name := e.EventType()
		seen[name] = true
		made, err := AppendRecord(nil, &Record{Sequence: int64(i), Prev: chain.at.Hash, Time: at, Outcome: decide.Accepted,
			Command: decide.Recorded{ID: command, Type: name, Actor: decide.Engine}, Events: []decide.Event{e}})
		if err != nil {
			t.Fatal(err)
		}
		want := golden(t, name+".v1.record.json", made)
		if !bytes.Equal(made, want) {
			t.Errorf("%s is now\n%s, the golden file holds\n%s", name, made, want)
		}
		if _, ok, err := chain.admit(int64(i), want); !ok || err != nil {
			t.Errorf("the golden %s is not valid: %v", name, err)
		}
		if err := conforms(t, schema(t, "record.schema.json"), want); err != nil {
			t.Error(err)
		}
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		s := schema(t, name+".v1.schema.json")
		if err := conforms(t, s, data); err != nil {
			t.Error(err)
		}
		if conforms(t, s, []byte("{}")) == nil {
			t.Errorf("the schema of %s requires nothing", name)
		}
		if conforms(t, s, append(bytes.TrimSuffix(data, []byte("}")), `,"more":1}`...)) == nil {
			t.Errorf("the schema of %s allows an unknown member", name)
		}
		kept := schema(t, name+".command.schema.json")
		if err := conforms(t, kept, []byte("{}")); err != nil {
			t.Error(err)
		}
		if conforms(t, kept, []byte(`{"key":"x"}`)) == nil {
			t.Errorf("the schema of the command %s allows a key", name)
		}
	}
	for _, shape := range Shapes().Shapes() {
		if !seen[shape.Type] {
			t.Errorf("%s has no golden file", shape.Type)
		}
	}
	files, err := filepath.Glob(filepath.Join(schemasFolder, "golden", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name, _, ok := strings.Cut(filepath.Base(f), ".v1.record.json"); !ok || !seen[name] {
			t.Errorf("%s belongs to nothing", f)
		}
	}
}

func TestARecordMatchesItsSchema(t *testing.T) {
	s := schema(t, "record.schema.json")
	if err := conforms(t, s, []byte(sampleValue)); err != nil {
		t.Error(err)
	}
	for what, change := range map[string][2]string{
		"an unknown member":  {`{"sequence"`, `{"more":1,"sequence"`},
		"another outcome":    {`"rejected"`, `"refused"`},
		"no events":          {`"events":[`, `"events":[],"x":[`},
		"a short hash":       {`"prev":"ab`, `"prev":"`},
		"an unknown actor":   {`"customer"`, `"account"`},
		"a negative version": {`"version":2`, `"version":-2`},
	} {
		if conforms(t, s, []byte(strings.Replace(sampleValue, change[0], change[1], 1))) == nil {
			t.Errorf("the schema allows %s", what)
		}
	}
}
