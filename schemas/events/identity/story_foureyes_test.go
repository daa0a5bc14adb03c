package identity_test

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/schemas/conform"
)

// matches holds an event against its schema.
func matches(t *testing.T, e decide.Event) {
	t.Helper()
	folder := events()
	if conform.IsShared(e.EventType()) {
		folder.Folder = "../journal"
	}
	text, err := json.Marshal(e)
	if err == nil {
		err = conform.Validate(t, folder.Schema(t, e.EventType()+".v1.schema.json"), text)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", e.EventType(), err, text)
	}
}

// TestProposalsAreDecidedAgain proposes each kind of action that a policy may name, and confirms it. Each record is decided again
// as the same bytes, and its events match their schemas.
func TestProposalsAreDecidedAgain(t *testing.T) {
	state, sequence := identity.NewState(), int64(0)
	var last []decide.Event
	do := func(by decide.Actor, p decide.Payload) {
		t.Helper()
		sequence++
		c := decide.Command{Type: p.CommandType(), Actor: by, Payload: p}
		at := decide.Stamp{Sequence: sequence, Time: 1_767_225_600_000_000 + scalar.Time(sequence)*scalar.Second}
		d, err := state.Decide(at, c)
		if err != nil {
			t.Fatalf("%s: %v", c.Type, err)
		}
		decideAgain(t, state, at, c.Recorded(), d)
		state.Evolve(at, c.Recorded(), d.Outcome, d.Events)
		last = d.Events
		for _, e := range d.Events {
			matches(t, e)
		}
	}
	system, ann, olga := decide.Actor{System: "bootstrap"}, decide.Actor{Sub: "ann", Broker: "venue"}, decide.Actor{Sub: "olga", Broker: "venue"}
	sealed := identity.Sealed("a ciphertext of a secret")
	user := func(name string) *identity.RegisterUser {
		return &identity.RegisterUser{Username: name, Broker: "venue", CustomerCode: "", Scopes: []string{"operator"}, IsActive: true, IsVerified: true, PasswordHash: sealed}
	}
	key := func(kid string) *identity.AddSigningKey {
		return &identity.AddSigningKey{KID: kid, Public: bytes.Repeat([]byte{0x5a}, 32), Private: sealed}
	}
	do(system, &identity.RegisterBroker{Broker: "venue", Name: "Venue"})
	do(system, user("ann"))
	do(system, user("olga"))
	do(system, key("first"))
	for rules := 2; rules <= identity.Rules().Newest(); rules++ {
		do(ann, &decide.ActivateRules{Rules: rules})
	}
	policy := decide.Policy{ProposalSeconds: 3600}
	for _, a := range state.Governed().Actions() {
		policy.Rules = append(policy.Rules, decide.PolicyRule{Action: a.Name})
	}
	do(ann, &decide.SetPolicy{Policy: policy})

	propose := func(p decide.Payload) scalar.ID {
		t.Helper()
		do(ann, p)
		made, ok := last[0].(*decide.ProposalMade)
		if !ok {
			t.Fatalf("%s is not proposed", p.CommandType())
		}
		return made.ID
	}
	confirm := func(p decide.Payload) { t.Helper(); do(olga, &decide.ConfirmProposal{ID: propose(p)}) }
	limited := user("limited")
	limited.CustomerCode, limited.RateLimit = "C1", &identity.RateLimit{PerSecond: 5, Burst: 10}
	confirm(limited)
	none, yes := "", true
	confirm(&identity.ChangeUser{Username: "limited", CustomerCode: &none, Scopes: []string{"trade", "read"}, IsActive: &yes, IsVerified: &yes, ClearRateLimit: true,
		PasswordHash: identity.Sealed("another ciphertext")})
	if u, _ := state.User("limited"); u.CustomerCode != "" || u.RateLimit != nil || len(u.Scopes) != 2 || string(u.PasswordHash) != "another ciphertext" {
		t.Errorf("after its change the user is %+v", u)
	}
	confirm(&identity.ChangeUser{Username: "olga", RateLimit: &identity.RateLimit{PerSecond: 6, Burst: 7}})
	do(olga, &identity.CreateAPIKey{Name: "a robot", Prefix: "pk_x", Hash: bytes.Repeat([]byte{7}, 32), Scopes: []string{"operator"}})
	confirm(&identity.LimitAPIKey{Username: "olga", ID: state.APIKeys("olga")[0].ID, RateLimit: &identity.RateLimit{PerSecond: 1, Burst: 2}})
	confirm(key("second"))
	confirm(&identity.RetireSigningKey{KID: "first"})
	late := propose(&identity.ChangeUser{Username: "olga", PasswordHash: sealed})
	do(olga, &identity.ChangeUser{Username: "olga", PasswordHash: identity.Sealed("of its own")})
	do(olga, &decide.ConfirmProposal{ID: late}) // voided
	do(olga, &decide.RejectProposal{ID: propose(user("new")), Reason: "Nobody knows them."})
	do(ann, &decide.WithdrawProposal{ID: propose(user("new"))})
	confirm(&decide.SetPolicy{Policy: decide.Policy{ProposalSeconds: 3600}})
	do(ann, user("new"))
}
