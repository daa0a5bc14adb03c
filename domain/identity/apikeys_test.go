package identity_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

func hash(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

func apiKey(secret string, scopes ...string) *identity.CreateAPIKey {
	return &identity.CreateAPIKey{Name: "a program", Prefix: "pk_abcdef", Hash: hash(secret), Scopes: scopes}
}

func (l *log) keys(username string) []*identity.APIKey { return l.state.APIKeys(username) }

// TestAPIKeys makes keys, uses and revokes them, and has a replay see the same.
func TestAPIKeys(t *testing.T) {
	l := seeded(t)
	full := apiKey("one", identity.ScopeTrade)
	full.CustomerCode, full.IPAllowList, full.ExpiresAt = "C1", []string{"192.0.2.7", "10.1.2.3/8", "192.0.2.7/32", "2001:db8::1"}, l.now+scalar.Hour
	want := func(got, want string) {
		t.Helper()
		if got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	want(l.do(broker, identity.CommandCreateAPIKey, "k", full), "api_key.created")
	want(l.do(broker, identity.CommandCreateAPIKey, "k", full), "repeat 6")
	want(l.do(broker, identity.CommandCreateAPIKey, "", full), "API_KEY_TAKEN")
	want(l.do(operator, identity.CommandCreateAPIKey, "", apiKey("two", identity.ScopeRead)), "api_key.created")
	k, known := l.state.APIKey([sha256.Size]byte(hash("one")))
	if !known || k.Username != "broker-a" || k.Broker != "alpha" || k.CustomerCode != "C1" || k.LastUsed != 0 ||
		!slices.Equal(k.IPAllowList, []string{"192.0.2.7/32", "10.0.0.0/8", "2001:db8::1/128"}) {
		t.Fatalf("%+v %v", k, known)
	}
	use := &identity.UseAPIKey{ID: k.ID}
	want(l.do(system, identity.CommandUseAPIKey, "", use), "api_key.used")
	want(l.do(system, identity.CommandUseAPIKey, "", use), "API_KEY_USE_KNOWN")
	l.now = identity.Day(l.now) + scalar.Day - 1
	want(l.do(system, identity.CommandUseAPIKey, "", use), "API_KEY_USE_KNOWN")
	l.now++
	want(l.do(system, identity.CommandUseAPIKey, "", use), "api_key.used")
	if k.LastUsed != 0 || l.keys("broker-a")[0].LastUsed != l.now {
		t.Errorf("last used %v, and by what was read before %v", l.keys("broker-a")[0].LastUsed, k.LastUsed)
	}
	if replayed := l.replay(); !reflect.DeepEqual(replayed.APIKeys("broker-a"), l.keys("broker-a")) {
		t.Errorf("a replay has %+v", replayed.APIKeys("broker-a"))
	}
	want(l.do(operator, identity.CommandRevokeAPIKey, "", &identity.RevokeAPIKey{ID: k.ID}), "API_KEY_NOT_FOUND")
	want(l.do(broker, identity.CommandRevokeAPIKey, "", &identity.RevokeAPIKey{ID: k.ID}), "api_key.revoked")
	want(l.do(broker, identity.CommandRevokeAPIKey, "", &identity.RevokeAPIKey{ID: k.ID}), "API_KEY_NOT_FOUND")
	want(l.do(system, identity.CommandUseAPIKey, "", use), "API_KEY_NOT_FOUND")
	if _, known := l.state.APIKey([sha256.Size]byte(hash("one"))); known || len(l.keys("broker-a")) != 0 || len(l.keys("operator")) != 1 {
		t.Error("a revoked key is still there, or another is gone")
	}
	if !reflect.DeepEqual(reread(t, l.state).APIKeys("operator"), l.keys("operator")) {
		t.Error("the saved state has other keys")
	}
}

// TestAPIKeysWithARateLimitOfTheirOwn limits one of two keys, which neither its user's limit nor the other key sees, and
// takes the limit away again.
func TestAPIKeysWithARateLimitOfTheirOwn(t *testing.T) {
	l := seeded(t)
	for _, secret := range []string{"one", "two"} {
		l.do(broker, identity.CommandCreateAPIKey, "", apiKey(secret, identity.ScopeTrade))
	}
	one, two := l.keys("broker-a")[0], l.keys("broker-a")[1]
	limit := func(actor decide.Actor, username string, id scalar.ID, to *identity.RateLimit) string {
		return l.do(actor, identity.CommandLimitAPIKey, "", &identity.LimitAPIKey{Username: username, ID: id, RateLimit: to})
	}
	five := &identity.RateLimit{PerSecond: 5, Burst: 9}
	for _, test := range []struct {
		actor    decide.Actor
		username string
		id       scalar.ID
		limit    *identity.RateLimit
		want     string
	}{
		{broker, "broker-a", one.ID, five, "FORBIDDEN"},
		{operator, "operator", one.ID, five, "API_KEY_NOT_FOUND"},
		{operator, "nobody", one.ID, five, "API_KEY_NOT_FOUND"},
		{operator, "broker-a", scalar.ID{1}, five, "API_KEY_NOT_FOUND"},
		{operator, "broker-a", one.ID, &identity.RateLimit{PerSecond: 0, Burst: 9}, "INVALID_RATE_LIMIT"},
		{operator, "broker-a", one.ID, &identity.RateLimit{PerSecond: 1, Burst: identity.MaxRate + 1}, "INVALID_RATE_LIMIT"},
		{operator, "broker-a", one.ID, five, "api_key.limited"},
	} {
		if got := limit(test.actor, test.username, test.id, test.limit); got != test.want {
			t.Errorf("%s, want %s of %+v", got, test.want, test)
		}
	}
	five.Burst = 1 // the state shares nothing with a command
	now := l.keys("broker-a")
	if now[0].RateLimit == nil || *now[0].RateLimit != (identity.RateLimit{PerSecond: 5, Burst: 9}) || now[1].RateLimit != nil || one.RateLimit != nil {
		t.Errorf("%v and %v, and what was read before is %v", now[0].RateLimit, now[1].RateLimit, one.RateLimit)
	}
	if u, _ := l.state.User("broker-a"); u.RateLimit != nil {
		t.Errorf("the user has %v", u.RateLimit)
	}
	for name, other := range map[string]*identity.State{"a replay": l.replay(), "the saved state": reread(t, l.state)} {
		if !reflect.DeepEqual(other.APIKeys("broker-a"), now) {
			t.Errorf("%s has other keys", name)
		}
	}
	if got := limit(operator, "broker-a", one.ID, nil); got != "api_key.limited" || l.keys("broker-a")[0].RateLimit != nil {
		t.Errorf("%s: the limit that was taken away is %v", got, l.keys("broker-a")[0].RateLimit)
	}
	l.do(broker, identity.CommandRevokeAPIKey, "", &identity.RevokeAPIKey{ID: two.ID})
	if got := limit(operator, "broker-a", two.ID, five); got != "API_KEY_NOT_FOUND" {
		t.Errorf("a revoked key: %s", got)
	}
}

// TestWhoMayHaveAPIKeys asks for what is not given.
func TestWhoMayHaveAPIKeys(t *testing.T) {
	l := seeded(t)
	confined := user("confined", "alpha", identity.ScopeRead)
	confined.CustomerCode = "C1"
	l.do(system, identity.CommandRegisterUser, "", confined)
	self := decide.Actor{Sub: "confined", Broker: "alpha", Customer: "C1"}
	elsewhere := apiKey("x", identity.ScopeRead)
	elsewhere.CustomerCode = "C2"
	late, early := apiKey("x", identity.ScopeTrade), apiKey("x", identity.ScopeTrade)
	late.ExpiresAt, early.IPAllowList = l.now, []string{"192.0.2.300"}
	short := apiKey("x", identity.ScopeTrade)
	short.Hash = short.Hash[:31]
	for name, test := range map[string]struct {
		actor   decide.Actor
		payload any
		want    string
	}{
		"the system":           {system, apiKey("x", identity.ScopeRead), "FORBIDDEN"},
		"a user of no broker":  {decide.Actor{Sub: "broker-a"}, apiKey("x", identity.ScopeTrade), "FORBIDDEN"},
		"a token that is wide": {decide.Actor{Sub: "confined", Broker: "alpha"}, apiKey("x", identity.ScopeRead), "FORBIDDEN"},
		"a scope not held":     {broker, apiKey("x", identity.ScopeTrade, identity.ScopeOperator), "SCOPE_NOT_HELD"},
		"no scope":             {broker, apiKey("x"), "INVALID_SCOPES"},
		"another account":      {self, elsewhere, "UNKNOWN_CUSTOMER"},
		"expired":              {broker, late, "INVALID_EXPIRES_AT"},
		"a bad address":        {broker, early, "INVALID_IP_ALLOW_LIST"},
		"a bad hash":           {broker, short, "INVALID_HASH"},
		"a use, by a user":     {broker, &identity.UseAPIKey{}, "FORBIDDEN"},
	} {
		t.Run(name, func(t *testing.T) {
			l.t = t
			kind := identity.CommandCreateAPIKey
			if _, use := test.payload.(*identity.UseAPIKey); use {
				kind = identity.CommandUseAPIKey
			}
			if got := l.do(test.actor, kind, "", test.payload); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
	l.t = t
	if got := l.do(self, identity.CommandCreateAPIKey, "", apiKey("x", identity.ScopeRead)); got != "api_key.created" || l.keys("confined")[0].CustomerCode != "C1" {
		t.Errorf("%s: a key of a confined user is for %v", got, l.keys("confined"))
	}
	for n := range identity.MaxAPIKeys {
		l.do(broker, identity.CommandCreateAPIKey, "", apiKey(fmt.Sprint(n), identity.ScopeTrade))
	}
	if got := l.do(broker, identity.CommandCreateAPIKey, "", apiKey("one more", identity.ScopeTrade)); got != "TOO_MANY_API_KEYS" {
		t.Errorf("one more: %s", got)
	}
	no := false
	l.do(operator, identity.CommandChangeUser, "", &identity.ChangeUser{Username: "broker-a", IsActive: &no})
	if got := l.do(broker, identity.CommandRevokeAPIKey, "", &identity.RevokeAPIKey{ID: l.keys("broker-a")[0].ID}); got != "FORBIDDEN" {
		t.Errorf("an inactive user: %s", got)
	}
	if bytes.Contains(identity.Codec().Append(nil, l.state), []byte("one more")) {
		t.Error("a secret is saved")
	}
}
