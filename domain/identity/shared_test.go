package identity

import (
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
)

// TestTheStateSharesNothingWithEvents changes events after they were applied, which nobody does: others read them.
func TestTheStateSharesNothingWithEvents(t *testing.T) {
	broker := &BrokerRegistered{Broker{Broker: "b", Name: "name"}}
	user := &UserRegistered{User{Username: "u", Scopes: []string{"trade"}, RateLimit: new(RateLimit), PasswordHash: Sealed("hash")}}
	key := &SigningKeyAdded{SigningKey{KID: "k", Public: []byte("public"), Private: Sealed("private")}}
	s := NewState()
	s.Evolve(decide.Stamp{}, decide.Recorded{}, decide.Accepted, []decide.Event{broker, user, key})
	broker.Name = "x"
	user.Scopes[0], user.PasswordHash[0], user.RateLimit = "x", 'x', nil
	key.Public[0], key.Private[0], key.Retired = 'x', 'x', 1
	b, _ := s.Broker("b")
	u, _ := s.User("u")
	k, _ := s.Key("k")
	if b.Name != "name" || u.Scopes[0] != "trade" || string(u.PasswordHash) != "hash" || u.RateLimit == nil ||
		string(k.Public) != "public" || string(k.Private) != "private" || k.Retired != 0 {
		t.Errorf("%+v, %+v, %+v", b, u, k)
	}
}
