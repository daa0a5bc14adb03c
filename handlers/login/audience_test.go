package login

import (
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/lestrrat-go/jwx/v2/jwt"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
)

// change gives a user another password.
func (d *desk) change(username, password string) {
	d.t.Helper()
	sealed, err := sealHash(d.box, username, hashPassword(password, cheap))
	if err != nil {
		d.t.Fatal(err)
	}
	d.do(identity.CommandChangeUser, &identity.ChangeUser{Username: username, PasswordHash: sealed})
}

// sign signs a token with the key in use.
func (d *desk) sign(token jwt.Token) string {
	d.t.Helper()
	var key *identity.SigningKey
	View(d.memory, func(s *identity.State) { key, _ = s.SigningKey(scalar.TimeOf(d.now())) })
	private, err := d.login.signer.private(key)
	if err != nil {
		d.t.Fatal(err)
	}
	header := jws.NewHeaders()
	if err := header.Set(jws.KeyIDKey, key.KID); err != nil {
		d.t.Fatal(err)
	}
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.EdDSA, private, jws.WithProtectedHeaders(header)))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(signed)
}

// good reports whether a token is taken.
func (d *desk) good(token string) bool {
	_, err := d.tokens.Verify(token, "")
	return err == nil
}

// TestATokenEndsWithItsPassword: at once, and none that is issued after the change, in the same second or not.
func TestATokenEndsWithItsPassword(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	d.pass(300 * time.Millisecond)
	before, others := d.token("user"), d.token("account")
	yes := true
	d.do(identity.CommandChangeUser, &identity.ChangeUser{Username: "user", IsActive: &yes})
	if !d.good(before) {
		t.Error("a change that leaves the password ends a token")
	}
	d.pass(time.Millisecond)
	d.change("user", "right")
	if d.good(before) || !d.good(others) {
		t.Errorf("after a change of the password the user's token is good: %v, another's: %v", d.good(before), d.good(others))
	}
	after := d.token("user")
	if !d.good(after) {
		t.Error("a token for the new password is refused")
	}
	behind := *newDesk(t).memory.state // a node that has not folded the change yet
	d.memory.mu.Lock()
	now := d.memory.state
	keys := now.Keys()
	d.memory.mu.Unlock()
	d.memory.state = &behind
	d.do(identity.CommandAddSigningKey, &identity.AddSigningKey{KID: keys[0].KID, Public: keys[0].Public, Private: keys[0].Private})
	if !d.good(after) {
		t.Error("a token for a password that this node does not know yet is refused")
	}
}

// TestATokenOfAnOlderBuildEndsWithItsPassword: it does not tell the password's time, but when it was issued.
func TestATokenOfAnOlderBuildEndsWithItsPassword(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	d.pass(2 * time.Second)
	older := func() string {
		token := d.token("user")
		parsed, err := jwt.ParseInsecure([]byte(token))
		if err != nil {
			t.Fatal(err)
		}
		if err := parsed.Remove(access.PasswordClaim); err != nil {
			t.Fatal(err)
		}
		return d.sign(parsed)
	}
	before := older()
	if !d.good(before) {
		t.Error("a token of an older build is refused")
	}
	d.pass(2 * time.Second)
	d.change("user", "right")
	if d.good(before) {
		t.Error("a token of an older build outlives its password")
	}
	d.pass(2 * time.Second)
	if !d.good(older()) {
		t.Error("a token of an older build for the new password is refused")
	}
}

// TestTokensAreOfOneVenue: a copy has another audience. For a while tokens without one are taken.
func TestTokensAreOfOneVenue(t *testing.T) {
	d := newDesk(t)
	d.addKey()
	var a access.Audience
	d.login.signer.audience = func() access.Audience { return a }
	bare := func() string {
		d.login.signer.audience = nil
		defer func() { d.login.signer.audience = func() access.Audience { return a } }()
		return d.token("user")
	}()
	d.tokens.For(func() access.Audience { return a })
	if w := d.try("user", "right", ""); w.Code != 503 || d.good(bare) {
		t.Errorf("before it knows its audience: login %d, a token is good: %v", w.Code, d.good(bare))
	}
	a.Name = "venue/1"
	one := d.token("user")
	for _, c := range []struct {
		audience  access.Audience
		one, bare bool
	}{
		{access.Audience{Name: "venue/1"}, true, false},
		{access.Audience{Name: "venue/1", Bare: true}, true, true},
		{access.Audience{Name: "venue/2", Bare: true}, false, true},
		{access.Audience{Name: "copy/0"}, false, false},
		{access.Audience{}, false, false},
		{access.Audience{Name: "venue/1"}, true, false}, // whatever was remembered of them
	} {
		a = c.audience
		if d.good(one) != c.one || d.good(bare) != c.bare {
			t.Errorf("%+v: a token for venue/1 is good: %v, one for none: %v", c.audience, d.good(one), d.good(bare))
		}
	}
}

// TestADerivedKeyIsTheSameOnEveryNode, and another one for another purpose.
func TestADerivedKeyIsTheSameOnEveryNode(t *testing.T) {
	d := newDesk(t)
	kid := func(purpose string) string {
		k, err := DerivedSigningKey(d.box, purpose)
		if err != nil {
			t.Fatal(err)
		}
		return k.KID
	}
	if one, again := kid("a"), kid("a"); one != again || one == kid("b") {
		t.Errorf("the keys are %s, %s and %s", kid("a"), kid("a"), kid("b"))
	}
	old := d.addKey()
	k, err := DerivedSigningKey(d.box, "a")
	if err != nil {
		t.Fatal(err)
	}
	token := d.token("user")
	d.do(identity.CommandReplaceKeys, &identity.ReplaceSigningKeys{AddSigningKey: *k})
	if d.good(token) || !d.good(d.token("user")) || old == k.KID {
		t.Error("the key that was copied is not replaced")
	}
}

// TestANewKeyOfALogAhead: a key that was recorded when the log was ahead of the node's clock signs as soon as it is old enough for
// the owner of the journal.
func TestANewKeyOfALogAhead(t *testing.T) {
	d := newDesk(t)
	node := func() time.Time { return d.now().Add(-time.Hour) }
	d.login.signer.now, d.login.signer.clock = node, logclock.Of(d.memory, node)
	first := d.addKey()
	d.pass(time.Minute)
	second := d.addKey()
	kid := func() string {
		t.Helper()
		message, err := jws.ParseString(d.token("user"))
		if err != nil {
			t.Fatal(err)
		}
		return message.Signatures()[0].ProtectedHeaders().KeyID()
	}
	if got := kid(); got != first {
		t.Errorf("at once, %s signs, want %s", got, first)
	}
	d.pass(6 * time.Second) // the owner's time passes one percent slower
	if got := kid(); got != second {
		t.Errorf("later, %s signs, want %s", got, second)
	}
}
