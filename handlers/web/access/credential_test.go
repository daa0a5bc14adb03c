package access

import (
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/submit"
)

// foldAt is a fold of the identity journal as of a sequence.
func foldAt(sequence int64) record.Follower { return positioned{sequence: sequence} }

type positioned struct {
	record.Follower
	sequence int64
}

func (p positioned) Position() record.Position { return record.Position{Sequence: p.sequence} }

// TestJudge: the owner refuses a command whose token or key it knows to be revoked, unless the node that authorized it
// has read at least as much of the identity journal. Nothing is refused for what the owner has not read yet.
func TestJudge(t *testing.T) {
	d := newDesk()
	secret := NewSecret()
	owner := NewTokens(d.people, issuer, d.clock.now)
	owner.Follows(foldAt(10))
	d.people.apiKeys = map[[32]byte]APIKey{HashOf(secret): {ID: scalar.ID{1}, Username: "u", Scopes: []string{"trade"}, Expires: scalar.TimeOf(d.clock.at.Add(time.Hour))}}
	sentWith := func(token string) Principal {
		t.Helper()
		p, err := d.tokens.Verify(token, "")
		if err != nil {
			t.Fatal(err)
		}
		return *p
	}
	tokens := map[string]Principal{"a token": sentWith(d.good()), "a key": sentWith(secret)}
	judge := func(p Principal, sequence int64) error {
		return owner.Judge(p.Credential(sequence))
	}
	for name, p := range tokens {
		if err := judge(p, 5); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := owner.Judge(submit.Credential{}); err != nil {
		t.Errorf("a command of a node itself: %v", err)
	}
	account := d.people.accounts["u"]
	revoked := func(how string, name string) {
		t.Helper()
		if err := judge(tokens[name], 9); err == nil {
			t.Errorf("%s counts although %s", name, how)
		}
		if err := judge(tokens[name], 10); err != nil {
			t.Errorf("%s: the other node knew that %s, and %v", name, how, err)
		}
	}
	changed := account
	changed.Active = false
	d.people.accounts["u"] = changed
	revoked("the user is inactive", "a token")
	revoked("the user is inactive", "a key")
	changed = account
	changed.Scopes = []string{"onboarding"}
	d.people.accounts["u"] = changed
	revoked("the user has lost a scope", "a token")
	revoked("the user has lost a scope", "a key")
	changed = account
	changed.PasswordChanged = scalar.TimeOf(d.clock.at.Add(time.Hour))
	d.people.accounts["u"] = changed
	revoked("the password was changed", "a token")
	d.people.accounts["u"] = account
	d.clock.at = d.clock.at.Add(2 * time.Hour)
	revoked("it has expired", "a key")
	d.clock.at = d.clock.at.Add(-2 * time.Hour)
	d.people.apiKeys = nil
	revoked("it was revoked", "a key")
	d.people.keys = nil
	revoked("the signing key was retired", "a token")
}
