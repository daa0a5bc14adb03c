package identity_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

const start = scalar.Time(1_700_000_000_000_000)

var (
	system   = decide.Actor{System: "bootstrap"}
	operator = decide.Actor{Sub: "operator", Broker: "venue"}
	broker   = decide.Actor{Sub: "broker-a", Broker: "alpha"}
)

// log is a journal in memory: what was decided, as the bytes that the journal would keep of it.
type log struct {
	t       testing.TB
	state   *identity.State
	now     scalar.Time
	records []record
}

type record struct {
	at      decide.Stamp
	command decide.Recorded
	outcome decide.Outcome
	events  []encoded
}

type encoded struct {
	kind    string
	version int
	data    jsontext.Value
}

func newLog(t testing.TB) *log { return &log{t: t, state: identity.NewState(), now: start} }

// do decides a command and folds its record. It returns the refusal's code, or "repeat N", or the event's type.
func (l *log) do(actor decide.Actor, kind, key string, payload any) string {
	l.t.Helper()
	at := decide.Stamp{Sequence: int64(len(l.records)) + 1, Time: l.now}
	fingerprint, _ := json.Marshal(payload, json.Deterministic(true))
	c := decide.Command{Type: kind, Actor: actor, Payload: payload, Metadata: decide.Metadata{Key: key}}
	if key != "" {
		c.Metadata.Fingerprint = fmt.Sprintf("%x", fingerprint)
	}
	d, err := l.state.Decide(at, c)
	if err != nil {
		var refusal *decide.Refusal
		if !errors.As(err, &refusal) {
			l.t.Fatalf("Decide failed with %v, which is no refusal", err)
		}
		return refusal.Code
	}
	if d.Repeated {
		return fmt.Sprintf("repeat %d", d.Repeat)
	}
	if len(d.Events) != 1 && kind != identity.CommandReplaceKeys && kind != decide.CommandConfirmProposal {
		l.t.Fatalf("%d events, want 1", len(d.Events))
	}
	r := record{at: at, command: c.Recorded(), outcome: d.Outcome}
	for _, e := range d.Events {
		data, err := json.Marshal(e)
		if err != nil {
			l.t.Fatal(err)
		}
		r.events = append(r.events, encoded{e.EventType(), decide.VersionOf(e), data})
	}
	l.records = append(l.records, r)
	l.state.Evolve(at, r.command, r.outcome, d.Events)
	return d.Events[0].EventType()
}

// replay folds the kept bytes into a new state.
func (l *log) replay() *identity.State {
	s := identity.NewState()
	registry := identity.Rules().Registry()
	for _, r := range l.records {
		var events []decide.Event
		for _, e := range r.events {
			event, err := registry.Decode(e.kind, e.version, e.data)
			if err != nil {
				l.t.Fatal(err)
			}
			again, err := json.Marshal(event)
			if err != nil || string(again) != string(e.data) {
				l.t.Fatalf("%s is encoded as %s and then as %s (%v)", e.kind, e.data, again, err)
			}
			events = append(events, event)
		}
		s.Evolve(r.at, r.command, r.outcome, events)
	}
	return s
}

// seeded returns a log with two brokers, an operator and one key.
func seeded(t testing.TB) *log {
	l := newLog(t)
	for _, b := range []string{"venue", "alpha"} {
		l.do(system, identity.CommandRegisterBroker, "", &identity.RegisterBroker{Broker: b, Name: b})
	}
	l.do(system, identity.CommandRegisterUser, "", user("operator", "venue", identity.ScopeOperator, identity.ScopeRead))
	l.do(system, identity.CommandRegisterUser, "", user("broker-a", "alpha", identity.ScopeTrade))
	l.do(system, identity.CommandAddSigningKey, "", key("k1"))
	if len(l.records) != 5 {
		t.Fatalf("the seed made %d records, want 5", len(l.records))
	}
	return l
}

func user(name, broker string, scopes ...string) *identity.RegisterUser {
	return &identity.RegisterUser{Username: name, Broker: broker, Scopes: scopes, IsActive: true, IsVerified: true,
		PasswordHash: identity.Sealed("ciphertext")}
}

func key(kid string) *identity.AddSigningKey {
	return &identity.AddSigningKey{KID: kid, Public: make([]byte, 32), Private: identity.Sealed("ciphertext")}
}

func TestDecide(t *testing.T) {
	with := func(change func(*identity.RegisterUser)) *identity.RegisterUser {
		u := user("new", "alpha", identity.ScopeRead)
		change(u)
		return u
	}
	no, empty := false, ""
	tests := []struct {
		name    string
		actor   decide.Actor
		kind    string
		payload any
		want    string
	}{
		{"a broker", operator, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "beta", Name: "Beta"}, "broker.registered"},
		{"a broker twice", operator, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "alpha", Name: "Alpha"}, "BROKER_TAKEN"},
		{"a broker with a space", operator, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "al pha", Name: "A"}, "INVALID_BROKER"},
		{"a broker's name with a control character", operator, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "beta", Name: "a\x00"}, "INVALID_NAME"},
		{"a broker by a broker", broker, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "beta", Name: "Beta"}, "FORBIDDEN"},
		{"a broker by nobody", decide.Actor{}, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "beta", Name: "Beta"}, "FORBIDDEN"},
		{"an operator of another broker's name", decide.Actor{Sub: "operator", Broker: "alpha"}, identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: "beta", Name: "Beta"}, "FORBIDDEN"},

		{"a user", operator, identity.CommandRegisterUser, user("new", "alpha", identity.ScopeRead), "user.registered"},
		{"a user twice", operator, identity.CommandRegisterUser, user("broker-a", "alpha", identity.ScopeRead), "USERNAME_TAKEN"},
		{"a user of no broker", operator, identity.CommandRegisterUser, user("new", "gamma", identity.ScopeRead), "BROKER_UNKNOWN"},
		{"a user without a password", operator, identity.CommandRegisterUser, with(func(u *identity.RegisterUser) { u.PasswordHash = nil }), "INVALID_PASSWORD"},
		{"a user without scopes", operator, identity.CommandRegisterUser, with(func(u *identity.RegisterUser) { u.Scopes = nil }), "INVALID_SCOPES"},
		{"a user with an unknown scope", operator, identity.CommandRegisterUser, user("new", "alpha", "root"), "INVALID_SCOPES"},
		{"a user with a scope twice", operator, identity.CommandRegisterUser, user("new", "alpha", "read", "read"), "INVALID_SCOPES"},
		{"a user with a bad account", operator, identity.CommandRegisterUser, with(func(u *identity.RegisterUser) { u.CustomerCode = "C 1" }), "INVALID_CUSTOMER_CODE"},
		{"a user with a limit of zero", operator, identity.CommandRegisterUser, with(func(u *identity.RegisterUser) { u.RateLimit = &identity.RateLimit{Burst: 1} }), "INVALID_RATE_LIMIT"},
		{"a user with a limit", operator, identity.CommandRegisterUser, with(func(u *identity.RegisterUser) { u.RateLimit = &identity.RateLimit{PerSecond: 5, Burst: 10} }), "user.registered"},

		{"a change", operator, identity.CommandChangeUser, &identity.ChangeUser{Username: "broker-a", IsActive: &no}, "user.changed"},
		{"a change that clears", operator, identity.CommandChangeUser, &identity.ChangeUser{Username: "broker-a", CustomerCode: &empty, ClearRateLimit: true}, "user.changed"},
		{"a change of nobody", operator, identity.CommandChangeUser, &identity.ChangeUser{Username: "nobody"}, "USER_NOT_FOUND"},
		{"a change to no scopes", operator, identity.CommandChangeUser, &identity.ChangeUser{Username: "broker-a", Scopes: []string{}}, "INVALID_SCOPES"},
		{"a change by a broker", broker, identity.CommandChangeUser, &identity.ChangeUser{Username: "broker-a", Scopes: []string{"operator"}}, "FORBIDDEN"},

		{"a key", operator, identity.CommandAddSigningKey, key("k2"), "signing_key.added"},
		{"a key twice", operator, identity.CommandAddSigningKey, key("k1"), "SIGNING_KEY_TAKEN"},
		{"a short key", operator, identity.CommandAddSigningKey, &identity.AddSigningKey{KID: "k2", Public: []byte{1}, Private: []byte{1}}, "INVALID_PUBLIC"},
		{"a key without its private part", operator, identity.CommandAddSigningKey, &identity.AddSigningKey{KID: "k2", Public: make([]byte, 32)}, "INVALID_PRIVATE"},
		{"retiring the last key", operator, identity.CommandRetireSigningKey, &identity.RetireSigningKey{KID: "k1"}, "LAST_SIGNING_KEY"},
		{"retiring an unknown key", operator, identity.CommandRetireSigningKey, &identity.RetireSigningKey{KID: "k9"}, "SIGNING_KEY_NOT_FOUND"},
		{"the rules in force", operator, decide.CommandActivateRules, &decide.ActivateRules{Rules: 1}, "RULES_NOT_NEXT"},
		{"rules that nobody knows", operator, decide.CommandActivateRules, &decide.ActivateRules{Rules: identity.Rules().Newest() + 1}, "RULES_NOT_SUPPORTED"},
		{"rules by a broker", broker, decide.CommandActivateRules, &decide.ActivateRules{Rules: 1}, "FORBIDDEN"},
		{"due work, of which there is none", operator, decide.CommandPutBackDue, &decide.PutBackDue{Entry: "expiry/1"}, "UNKNOWN_DUE_ENTRY"},

		{"an unknown command", operator, "user.delete", &struct{}{}, "UNKNOWN_COMMAND"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := seeded(t)
			if got := l.do(test.actor, test.kind, "", test.payload); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// TestNewerRulesStopThisBuild: nobody folds on by rules that the build does not know.
func TestNewerRulesStopThisBuild(t *testing.T) {
	defer func() {
		if p := recover(); p == nil {
			t.Error("it went on")
		}
	}()
	identity.NewState().Evolve(decide.Stamp{Sequence: 3, Time: 3}, decide.Recorded{Type: decide.CommandActivateRules}, decide.Accepted,
		[]decide.Event{&decide.RulesActivated{Rules: identity.Rules().Newest() + 1}})
}

func TestDeactivatedOperatorChangesNothing(t *testing.T) {
	l := seeded(t)
	no := false
	l.do(operator, identity.CommandChangeUser, "", &identity.ChangeUser{Username: "operator", IsActive: &no})
	if got := l.do(operator, identity.CommandRegisterBroker, "", &identity.RegisterBroker{Broker: "beta", Name: "b"}); got != "FORBIDDEN" {
		t.Errorf("got %s, want FORBIDDEN", got)
	}
}

func TestChangeKeepsTheRest(t *testing.T) {
	l := seeded(t)
	before, _ := l.state.User("broker-a")
	l.now += scalar.Hour
	no := false
	l.do(operator, identity.CommandChangeUser, "", &identity.ChangeUser{Username: "broker-a", IsVerified: &no})
	after, _ := l.state.User("broker-a")
	want := *before
	want.IsVerified, want.Updated = false, l.now
	if !reflect.DeepEqual(*after, want) {
		t.Errorf("after the change the user is\n%+v, want\n%+v", *after, want)
	}
	if before.IsVerified == after.IsVerified {
		t.Error("the change reached the event of the registration")
	}
}

func TestIdempotencyKey(t *testing.T) {
	l := seeded(t)
	payload := &identity.RegisterBroker{Broker: "beta", Name: "Beta"}
	for _, want := range []string{"broker.registered", "repeat 6"} {
		if got := l.do(operator, identity.CommandRegisterBroker, "k", payload); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	other := &identity.RegisterBroker{Broker: "gamma", Name: "Gamma"}
	if got := l.do(operator, identity.CommandRegisterBroker, "k", other); got != "IDEMPOTENCY_KEY_REUSED" {
		t.Errorf("another request with the key: %s", got)
	}
	l.now += decide.Remember
	if got := l.do(operator, identity.CommandRegisterBroker, "k", other); got != "broker.registered" {
		t.Errorf("after a day: %s", got)
	}
}

func TestKeyRotation(t *testing.T) {
	l := seeded(t)
	signs := func(want string) {
		t.Helper()
		k, ok := l.state.SigningKey(l.now)
		if !ok || k.KID != want {
			t.Errorf("the signing key is %v, want %s", k, want)
		}
	}
	if _, ok := identity.NewState().SigningKey(start); ok {
		t.Error("an empty state has a signing key")
	}
	signs("k1")
	l.now += scalar.Minute
	l.do(operator, identity.CommandAddSigningKey, "", key("k2"))
	signs("k1")
	l.now += identity.KeyDelay
	signs("k2")
	if n := len(l.state.Keys()); n != 2 {
		t.Errorf("%d keys are published, want 2", n)
	}
	if got := l.do(operator, identity.CommandRetireSigningKey, "", &identity.RetireSigningKey{KID: "k1"}); got != "signing_key.retired" {
		t.Fatal(got)
	}
	signs("k2")
	if n := len(l.state.Keys()); n != 1 {
		t.Errorf("%d keys are published after one was retired, want 1", n)
	}
	if got := l.do(operator, identity.CommandRetireSigningKey, "", &identity.RetireSigningKey{KID: "k1"}); got != "SIGNING_KEY_RETIRED" {
		t.Error(got)
	}
}

// TestReplay runs random commands and holds the fold of the kept bytes against the state that decided them.
func TestReplay(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := seeded(t)
		names := rapid.SampledFrom([]string{"operator", "broker-a", "u1", "u2", ""})
		codes := rapid.SampledFrom([]string{"venue", "alpha", "b1", "b2"})
		kids := rapid.SampledFrom([]string{"k1", "k2", "k3"})
		for range rapid.IntRange(1, 40).Draw(r, "commands") {
			l.now += scalar.Time(rapid.Int64Range(0, int64(10*scalar.Hour)).Draw(r, "passes"))
			k := rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "key")
			switch rapid.IntRange(0, 4).Draw(r, "command") {
			case 0:
				l.do(system, identity.CommandRegisterBroker, k, &identity.RegisterBroker{Broker: codes.Draw(r, "broker"), Name: "n"})
			case 1:
				l.do(operator, identity.CommandRegisterUser, k, user(names.Draw(r, "user"), codes.Draw(r, "broker"), "read"))
			case 2:
				active := rapid.Bool().Draw(r, "active")
				l.do(system, identity.CommandChangeUser, k, &identity.ChangeUser{Username: names.Draw(r, "user"), IsActive: &active})
			case 3:
				l.do(system, identity.CommandAddSigningKey, k, key(kids.Draw(r, "kid")))
			case 4:
				l.do(system, identity.CommandRetireSigningKey, k, &identity.RetireSigningKey{KID: kids.Draw(r, "kid")})
			}
		}
		again := l.replay()
		if !reflect.DeepEqual(again, l.state) {
			r.Fatalf("the replayed state differs:\n%+v\n%+v", again, l.state)
		}
		if len(again.Keys()) == 0 {
			r.Fatal("no key is left")
		}
	})
}

func TestEvolveIgnoresOtherEvents(t *testing.T) {
	l := seeded(t)
	before := l.replay()
	l.state.Evolve(decide.Stamp{Sequence: 9, Time: start}, decide.Recorded{}, decide.Accepted, []decide.Event{foreign{}})
	l.state.Evolve(decide.Stamp{Sequence: 10, Time: start}, decide.Recorded{}, decide.Accepted,
		[]decide.Event{&identity.SigningKeyRetired{KID: "unknown"}})
	if !reflect.DeepEqual(before, l.state) {
		t.Error("an event of another kind changed the state")
	}
	if l.state.Due(start) != decide.Nothing {
		t.Error("something is due")
	}
}

type foreign struct{}

func (foreign) EventType() string { return "journal.taken" }

// TestSigningKeysAreReplaced: a further key, and the end of all others, in one record.
func TestSigningKeysAreReplaced(t *testing.T) {
	l := seeded(t)
	l.do(operator, identity.CommandAddSigningKey, "", key("k2"))
	replace := &identity.ReplaceSigningKeys{AddSigningKey: *key("own")}
	if got := l.do(operator, identity.CommandReplaceKeys, "", replace); got != "FORBIDDEN" {
		t.Errorf("an operator replaces the keys: %s", got)
	}
	if got := l.do(system, identity.CommandReplaceKeys, "", replace); got != "signing_key.added" {
		t.Fatalf("replacing the keys: %s", got)
	}
	if keys := l.state.Keys(); len(keys) != 1 || keys[0].KID != "own" {
		t.Errorf("the keys are %+v", keys)
	}
	if got := l.do(system, identity.CommandReplaceKeys, "", replace); got != "SIGNING_KEY_TAKEN" {
		t.Errorf("replacing them by the same: %s", got)
	}
}

// TestAUserKnowsWhenItsPasswordChanged, which no event tells.
func TestAUserKnowsWhenItsPasswordChanged(t *testing.T) {
	l := seeded(t)
	u, _ := l.state.User("broker-a")
	if u.PasswordChanged != u.Created {
		t.Errorf("registered at %v with a password of %v", u.Created, u.PasswordChanged)
	}
	l.now += scalar.Hour
	yes := true
	l.do(operator, identity.CommandChangeUser, "", &identity.ChangeUser{Username: "broker-a", IsVerified: &yes})
	if same, _ := l.state.User("broker-a"); same.PasswordChanged != u.Created || same.Updated == u.Created {
		t.Errorf("changed at %v, its password is of %v", same.Updated, same.PasswordChanged)
	}
	l.now += scalar.Hour
	l.do(operator, identity.CommandChangeUser, "", &identity.ChangeUser{Username: "broker-a", PasswordHash: identity.Sealed("another ciphertext")})
	if changed, _ := l.state.User("broker-a"); changed.PasswordChanged != changed.Updated {
		t.Errorf("changed at %v, its password is of %v", changed.Updated, changed.PasswordChanged)
	}
}
