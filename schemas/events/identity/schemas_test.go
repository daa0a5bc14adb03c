// Package identity_test holds the identity journal's schemas and golden files against the rules that write it.
package identity_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/redecide"
)

var update = flag.Bool("update", false, "write golden files that are missing")

func events() conform.Events { return conform.Events{Folder: ".", Update: *update} }

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
		{Type: identity.CommandRegisterBroker, Payload: &identity.RegisterBroker{Broker: "alpha", Name: "Alpha Brokers"}},
		{Type: identity.CommandRegisterUser, Payload: &identity.RegisterUser{Username: "broker-a", Broker: "alpha", Scopes: []string{"trade", "read", "onboarding"},
			IsActive: true, IsVerified: true, PasswordHash: sealed}},
		{Type: identity.CommandChangeUser, Payload: &identity.ChangeUser{Username: "broker-a", CustomerCode: &account, IsActive: &no, IsVerified: &yes,
			RateLimit: &identity.RateLimit{PerSecond: 50, Burst: 100}}},
		{Type: identity.CommandAddSigningKey, Payload: &identity.AddSigningKey{KID: "lmZg-K1_example", Public: bytes.Repeat([]byte{0x5a}, 32), Private: sealed}},
		{Type: identity.CommandAddSigningKey, Payload: &identity.AddSigningKey{KID: "second", Public: bytes.Repeat([]byte{0xa5}, 32), Private: sealed}},
		{Type: identity.CommandRetireSigningKey, Payload: &identity.RetireSigningKey{KID: "lmZg-K1_example"}},
		{Type: identity.CommandRegisterUser, Payload: &identity.RegisterUser{Username: "broker-b", Broker: "alpha", Scopes: []string{"trade", "read"},
			IsActive: true, IsVerified: true, PasswordHash: sealed}},
	}
	for _, secret := range []string{"pk_one", "pk_two"} {
		hash := sha256.Sum256([]byte(secret))
		commands = append(commands, decide.Command{Type: identity.CommandCreateAPIKey, Actor: decide.Actor{Sub: "broker-b", Broker: "alpha"},
			Payload: &identity.CreateAPIKey{Name: "market maker", Prefix: "pk_2hJx9a", Hash: hash[:], Scopes: []string{"trade", "read"}, CustomerCode: "C1",
				IPAllowList: []string{"192.0.2.7", "2001:db8::/32"}, ExpiresAt: 1_798_761_600_000_000}})
	}
	first, second := decide.Stamp{Sequence: int64(len(commands)) - 1}.Derive(0), decide.Stamp{Sequence: int64(len(commands))}.Derive(0)
	commands = append(commands, decide.Command{Type: identity.CommandUseAPIKey, Payload: &identity.UseAPIKey{ID: first}},
		decide.Command{Type: identity.CommandRevokeAPIKey, Actor: decide.Actor{Sub: "broker-b", Broker: "alpha"}, Payload: &identity.RevokeAPIKey{ID: first}},
		decide.Command{Type: identity.CommandLimitAPIKey, Payload: &identity.LimitAPIKey{Username: "broker-b", ID: second,
			RateLimit: &identity.RateLimit{PerSecond: 20, Burst: 40}}},
		decide.Command{Type: identity.CommandReplaceKeys, Payload: &identity.ReplaceSigningKeys{AddSigningKey: identity.AddSigningKey{KID: "own",
			Public: bytes.Repeat([]byte{0x3c}, 32), Private: sealed}}})
	state := identity.NewState()
	var out []decided
	for i, c := range commands {
		if c.Actor == (decide.Actor{}) {
			c.Actor = decide.Actor{System: "bootstrap"}
		}
		c.Metadata = decide.Metadata{Key: "seed:" + strings.Repeat("x", i+1), Fingerprint: "00ff"}
		at := decide.Stamp{Sequence: int64(i + 1), Time: 1_767_225_600_000_000 + scalar.Time(i)*scalar.Second}
		d, err := state.Decide(at, c)
		if err != nil {
			t.Fatal(err)
		}
		decideAgain(t, state, at, c.Recorded(), d)
		state.Evolve(at, c.Recorded(), d.Outcome, d.Events)
		kept, err := json.Marshal(c.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, decided{c.Type, kept, d.Events[0]})
	}
	return out
}

// decideAgain decides the record of a decision again, before the state changes. No command of this journal has an input.
func decideAgain(t *testing.T, state *identity.State, at decide.Stamp, c decide.Recorded, d decide.Decision) {
	t.Helper()
	r := &record.Record{Sequence: at.Sequence, Time: at.Time, Command: c, Input: d.Input, Outcome: d.Outcome, Events: d.Events}
	value, err := record.Encode(nil, r)
	if err == nil {
		r, err = record.Decode(identity.Rules().Registry(), value)
	}
	if err != nil {
		t.Fatal(err)
	}
	result := redecide.Redecide(state, identity.Payloads(), record.Entry{Record: r, Journal: at.Journal, Value: value})
	if result.Verdict != redecide.Same || d.Input != "" {
		t.Errorf("%s\nis decided again (%s: %s) as\n%s", value, result.Verdict, result.Reason, result.Value)
	}
}

func TestEventsMatchSchemasAndGoldenFiles(t *testing.T) {
	registry := identity.Rules().Registry()
	seen := map[string]bool{}
	for _, d := range decideAll(t) {
		if name := d.event.EventType(); !seen[name] {
			seen[name] = true
			events().Event(t, registry, d.event)
			events().Command(t, d.command, []string{string(d.kept)}, []string{`{"password":"x"}`})
		}
	}
	for _, shape := range registry.Shapes() {
		if !seen[shape.Type] && !conform.IsShared(shape.Type) {
			t.Errorf("%s has no schema and golden file in this test", shape.Type)
		}
	}
	events().OtherCommands(t, slices.DeleteFunc(identity.Payloads().Types(), conform.IsShared))
	events().NothingElse(t, "golden/*.v1.json", seen)
	events().NothingElse(t, "*.v1.schema.json", seen)
}

// TestScopesAgree holds the schema's list of scopes against the rules'.
func TestScopesAgree(t *testing.T) {
	raw, err := os.ReadFile("../common.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Defs struct {
			User struct {
				Properties struct {
					Scopes struct {
						Items struct {
							Enum []string `json:"enum"`
						} `json:"items"`
					} `json:"scopes"`
				} `json:"properties"`
			} `json:"user"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	if got := s.Defs.User.Properties.Scopes.Items.Enum; !slices.Equal(got, identity.Scopes()) {
		t.Errorf("the schema lists %v, the rules %v", got, identity.Scopes())
	}
}
