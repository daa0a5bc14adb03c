// Package identity_test holds the identity journal's schemas and golden files against the rules that write it.
package identity_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
)

// A golden file is written once, for a new type or version. An old one never changes: that would change history.
var update = flag.Bool("update", false, "write golden files that are missing")

func schema(t *testing.T, file string) *jsonschema.Schema {
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

// decided is what the rules make of one command of each type.
type decided struct {
	command string
	kept    []byte
	event   decide.Event
}

func decideAll(t *testing.T) []decided {
	t.Helper()
	yes, no, account := true, false, "C1"
	sealed := identity.Sealed("\x01\x00\x01\x02\x03 a ciphertext of a secret")
	commands := []decide.Command{
		{Type: identity.CommandRegisterBroker, Ask: &identity.RegisterBroker{Broker: "alpha", Name: "Alpha Brokers"}},
		{Type: identity.CommandRegisterUser, Ask: &identity.RegisterUser{Username: "broker-a", Broker: "alpha", Scopes: []string{"trade", "read", "onboarding"},
			IsActive: true, IsVerified: true, PasswordHash: sealed}},
		{Type: identity.CommandChangeUser, Ask: &identity.ChangeUser{Username: "broker-a", CustomerCode: &account, IsActive: &no, IsVerified: &yes,
			RateLimit: &identity.RateLimit{PerSecond: 50, Burst: 100}}},
		{Type: identity.CommandAddSigningKey, Ask: &identity.AddSigningKey{KID: "lmZg-K1_example", Public: bytes.Repeat([]byte{0x5a}, 32), Private: sealed}},
		{Type: identity.CommandAddSigningKey, Ask: &identity.AddSigningKey{KID: "second", Public: bytes.Repeat([]byte{0xa5}, 32), Private: sealed}},
		{Type: identity.CommandRetireSigningKey, Ask: &identity.RetireSigningKey{KID: "lmZg-K1_example"}},
	}
	state := identity.NewState()
	var out []decided
	for i, c := range commands {
		c.Actor = decide.Actor{System: "bootstrap"}
		c.Kept = decide.Kept{Key: "seed:" + strings.Repeat("x", i+1), Fingerprint: "00ff"}
		at := decide.Stamp{Sequence: int64(i + 1), Time: 1_767_225_600_000_000 + decide.Time(i)*decide.Second}
		d, err := state.Decide(at, c)
		if err != nil {
			t.Fatal(err)
		}
		state.Evolve(at, c.Recorded(), d.Outcome, d.Events)
		kept, err := json.Marshal(c.Kept)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, decided{c.Type, kept, d.Events[0]})
	}
	return out
}

func TestEventsMatchSchemasAndGoldenFiles(t *testing.T) {
	registry := identity.Rules().Registry()
	seen := map[string]bool{}
	for _, d := range decideAll(t) {
		name := d.event.EventType()
		if seen[name] {
			continue
		}
		seen[name] = true
		made, err := json.Marshal(d.event)
		if err != nil {
			t.Fatal(err)
		}
		file := name + ".v1.json"
		want := golden(t, file, made)
		if !bytes.Equal(made, want) {
			t.Errorf("%s: the rules now make\n%s, the golden file holds\n%s", file, made, want)
		}
		event, err := registry.Decode(name, d.event.EventVersion(), want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(event)
		if err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s: decoded and encoded again it is %s (%v)", file, again, err)
		}
		s := schema(t, name+".v1.schema.json")
		if err := validate(t, s, want); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if err := validate(t, s, append(bytes.TrimSuffix(want, []byte("}")), `,"more":1}`...)); err == nil {
			t.Errorf("%s: the schema allows an unknown member", file)
		}
		if err := validate(t, s, []byte("{}")); err == nil {
			t.Errorf("%s: the schema requires nothing", file)
		}
		commands := schema(t, d.command+".command.schema.json")
		if err := validate(t, commands, d.kept); err != nil {
			t.Errorf("%s: %v", d.command, err)
		}
		if err := validate(t, commands, []byte(`{"password":"x"}`)); err == nil {
			t.Errorf("%s: the schema allows an unknown member", d.command)
		}
	}
	for _, shape := range registry.Shapes() {
		if !seen[shape.Type] {
			t.Errorf("%s has no schema and golden file in this test", shape.Type)
		}
	}
	for _, pattern := range []string{"golden/*.json", "*.v1.schema.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".json"), ".schema")
			if !seen[strings.TrimSuffix(name, ".v1")] {
				t.Errorf("%s belongs to no event type", f)
			}
		}
	}
}

// TestScopesAgree holds the schema's list of scopes against the rules'.
func TestScopesAgree(t *testing.T) {
	raw, err := os.ReadFile("user.registered.v1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Properties struct {
			Scopes struct {
				Items struct {
					Enum []string `json:"enum"`
				} `json:"items"`
			} `json:"scopes"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if got := s.Properties.Scopes.Items.Enum; !slices.Equal(got, identity.Scopes()) {
		t.Errorf("the schema lists %v, the rules %v", got, identity.Scopes())
	}
}
