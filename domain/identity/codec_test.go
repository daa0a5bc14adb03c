package identity_test

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/decide/decidetest"
	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/pack/packtest"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// reread saves a state and reads it back.
func reread(t interface{ Fatalf(string, ...any) }, s *identity.State) *identity.State {
	saved := identity.Codec().Append(nil, s)
	read, err := identity.Codec().Read(saved)
	if err != nil {
		t.Fatalf("reading what was saved: %v", err)
	}
	if again := identity.Codec().Append(nil, read); !bytes.Equal(again, saved) {
		t.Fatalf("what was read back is saved as other bytes:\n%x\n%x", saved, again)
	}
	return read.(*identity.State)
}

// TestSavedStatesGoOn saves states amid random commands, and has what was read back decide the same commands.
func TestSavedStatesGoOn(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l, twin := seeded(t), seeded(t)
		for range rapid.IntRange(1, 40).Draw(r, "commands") {
			if rapid.IntRange(0, 3).Draw(r, "save") == 0 {
				twin.state = reread(r, l.state)
			}
			l.now += scalar.Time(rapid.Int64Range(0, int64(10*scalar.Hour)).Draw(r, "passes"))
			twin.now = l.now
			actor, kind, key, payload := l.draw(r)
			if a, b := l.do(actor, kind, key, payload), twin.do(actor, kind, key, payload); a != b {
				r.Fatalf("%s: %s, and by the state that was saved %s", kind, a, b)
			}
			if !reflect.DeepEqual(l.records, twin.records) {
				r.Fatalf("the records differ after %s", kind)
			}
		}
		if a, b := identity.Codec().Append(nil, l.state), identity.Codec().Append(nil, twin.state); !bytes.Equal(a, b) {
			r.Fatalf("the states differ:\n%x\n%x", a, b)
		}
	})
}

// draw draws a command, some of them about what there is.
func (l *log) draw(r *rapid.T) (actor decide.Actor, kind, key string, payload any) {
	names := rapid.SampledFrom([]string{"operator", "broker-a", "u1", "u2"})
	codes := rapid.SampledFrom([]string{"venue", "alpha", "b1"})
	kids := rapid.SampledFrom([]string{"k1", "k2", "k3"})
	key = rapid.SampledFrom([]string{"", "x", "y"}).Draw(r, "key")
	actor = system
	kind, payload = randomPayload(r, names.Draw(r, "user"), codes.Draw(r, "broker"), kids.Draw(r, "kid"))
	if kind == identity.CommandCreateAPIKey {
		actor = rapid.SampledFrom([]decide.Actor{operator, broker}).Draw(r, "actor")
	} else if all := slices.Concat(l.keys("operator"), l.keys("broker-a")); len(all) > 0 && rapid.IntRange(0, 4).Draw(r, "a key's use") == 0 {
		id := rapid.SampledFrom(all).Draw(r, "API key").ID
		switch rapid.IntRange(0, 2).Draw(r, "of a key") {
		case 0:
			kind, payload = identity.CommandUseAPIKey, &identity.UseAPIKey{ID: id}
		case 1:
			kind, payload, actor = identity.CommandRevokeAPIKey, &identity.RevokeAPIKey{ID: id}, broker
		default:
			limits := rapid.SampledFrom([]*identity.RateLimit{nil, {PerSecond: 3, Burst: 4}})
			kind, payload = identity.CommandLimitAPIKey, &identity.LimitAPIKey{Username: "broker-a", ID: id, RateLimit: limits.Draw(r, "limit")}
		}
	}
	return actor, kind, key, payload
}

func randomPayload(r *rapid.T, name, code, kid string) (kind string, payload any) {
	switch rapid.IntRange(0, 5).Draw(r, "command") {
	case 0:
		return identity.CommandRegisterBroker, &identity.RegisterBroker{Broker: code, Name: "n"}
	case 1:
		u := user(name, code, "read", "trade")
		if rapid.Bool().Draw(r, "limited") {
			u.RateLimit, u.CustomerCode = &identity.RateLimit{PerSecond: 5, Burst: 6}, "c1"
		}
		return identity.CommandRegisterUser, u
	case 2:
		active := rapid.Bool().Draw(r, "active")
		return identity.CommandChangeUser, &identity.ChangeUser{Username: name, IsActive: &active, Scopes: []string{"read"}}
	case 3:
		return identity.CommandAddSigningKey, &identity.AddSigningKey{KID: kid, Public: bytes.Repeat([]byte{7}, 32), Private: identity.Sealed("ciphertext")}
	case 4:
		k := apiKey(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "secret"), rapid.SampledFrom(identity.Scopes()).Draw(r, "scope"))
		k.CustomerCode = rapid.SampledFrom([]string{"", "c1"}).Draw(r, "customer")
		k.IPAllowList = rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.0/8", "::1"}), 0, 2).Draw(r, "networks")
		return identity.CommandCreateAPIKey, k
	}
	return identity.CommandRetireSigningKey, &identity.RetireSigningKey{KID: kid}
}

// golden is a state with something of everything in it.
func golden(t testing.TB) *identity.State {
	l := seeded(t)
	u := user("limited", "alpha", identity.ScopeRead)
	u.RateLimit, u.CustomerCode = &identity.RateLimit{PerSecond: 5, Burst: 10}, "c1"
	l.now += scalar.Hour
	no := false
	l.do(operator, identity.CommandRegisterUser, "a", u)
	l.do(operator, identity.CommandChangeUser, "b", &identity.ChangeUser{Username: "limited", IsActive: &no})
	l.do(operator, identity.CommandAddSigningKey, "", key("k2"))
	l.do(operator, identity.CommandRetireSigningKey, "", &identity.RetireSigningKey{KID: "k1"})
	k := apiKey("golden", identity.ScopeTrade)
	k.CustomerCode, k.IPAllowList, k.ExpiresAt = "c1", []string{"10.0.0.0/8", "192.0.2.7"}, l.now+scalar.Day
	l.do(broker, identity.CommandCreateAPIKey, "c", k)
	l.do(operator, identity.CommandCreateAPIKey, "", apiKey("plain", identity.ScopeRead))
	l.do(system, identity.CommandUseAPIKey, "", &identity.UseAPIKey{ID: l.keys("broker-a")[0].ID})
	l.do(operator, identity.CommandLimitAPIKey, "", &identity.LimitAPIKey{Username: "broker-a", ID: l.keys("broker-a")[0].ID,
		RateLimit: &identity.RateLimit{PerSecond: 7, Burst: 8}})
	taken := decide.Recorded{Metadata: decide.Metadata{Source: &decide.Source{Journal: "onboarding", Sequence: 7}}}
	l.state.Evolve(decide.Stamp{Sequence: 99, Time: l.now}, taken, decide.Accepted, append(decidetest.FourEyes(), &decide.CommitmentRotated{Generation: 1, Secret: "an id"},
		&decide.CheckpointKeyRotated{Generation: 2, Previous: "log+1+a", Key: "log+2+b", Until: l.now}))
	l.state.Evolve(decide.Stamp{Sequence: 100, Time: l.now}, decide.Recorded{}, decide.Accepted, nil)
	return l.state
}

// TestTheFormIsThatOfItsVersion fails when what is saved, or what there is to be saved, is no longer what the codec's
// version stands for.
func TestTheFormIsThatOfItsVersion(t *testing.T) {
	version := identity.Codec().Version()
	packtest.Held(t, version, "state", identity.Codec().Append(nil, golden(t)))
	packtest.Held(t, version, "shape", packtest.Shape(reflect.TypeFor[identity.State]()))
}

// TestEveryFieldIsSaved fails for a field of the state that the codec forgets.
func TestEveryFieldIsSaved(t *testing.T) {
	f := packtest.NewFields(func(s *identity.State) []byte { return identity.Codec().Append(nil, s) }, packtest.Derived{
		"decide.Core.numbers":     "the build's",
		"decide.fourEyes.open":    "counts the open proposals",
		"identity.apiKeys.byHash": "follows from the keys",
	})
	f.Try(golden(t))
	f.Report(t)
}

func TestNothingSealedIsOpened(t *testing.T) {
	saved := identity.Codec().Append(nil, golden(t))
	if n := bytes.Count(saved, []byte("ciphertext")); n != 5 {
		t.Errorf("%d ciphertexts of three users and two keys", n)
	}
}

func TestDamagedStates(t *testing.T) {
	saved := identity.Codec().Append(nil, golden(t))
	for n := range saved {
		if _, err := identity.Codec().Read(saved[:n]); err == nil {
			t.Fatalf("cut off after %d of %d bytes it is read", n, len(saved))
		}
		for _, bit := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(saved)
			damaged[n] ^= bit
			if s, err := identity.Codec().Read(damaged); err == nil {
				reread(t, s.(*identity.State))
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(identity.Codec().Append(nil, identity.NewState()))
	f.Add(identity.Codec().Append(nil, golden(f)))
	f.Fuzz(func(t *testing.T, saved []byte) {
		if s, err := identity.Codec().Read(saved); err == nil {
			if again, err := identity.Codec().Read(identity.Codec().Append(nil, s)); err != nil || again == nil {
				t.Fatal(err)
			}
		}
	})
}
