package access

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// people is an identity state for tests.
type people struct {
	keys     map[string]ed25519.PublicKey
	accounts map[string]Account
	apiKeys  map[[sha256.Size]byte]APIKey
}

func (p *people) APIKey(hash [sha256.Size]byte) (APIKey, bool) {
	k, ok := p.apiKeys[hash]
	return k, ok
}

func (p *people) PublicKey(kid string) (ed25519.PublicKey, bool) {
	k, ok := p.keys[kid]
	return k, ok
}

func (p *people) Account(username string) (Account, bool) {
	a, ok := p.accounts[username]
	return a, ok
}

// clock is a time that only a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

const issuer = "perpetua"

// desk issues tokens of all kinds.
type desk struct {
	clock  *clock
	people *people
	key    ed25519.PrivateKey
	tokens *Tokens
}

// active is the account of the user u.
func active(limit RateLimit) Account {
	return Account{Active: true, Broker: "alpha", Scopes: []string{"read", "trade"}, RateLimit: limit}
}

func newDesk() *desk {
	d := &desk{
		clock: &clock{time.Unix(1_800_000_000, 0)},
		key:   ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32))),
	}
	d.people = &people{
		keys:     map[string]ed25519.PublicKey{"k1": d.key.Public().(ed25519.PublicKey)},
		accounts: map[string]Account{"u": active(RateLimit{}), "c": {Active: true, Broker: "alpha", Customer: "C1", Scopes: []string{"read"}}},
	}
	d.tokens = NewTokens(d.people, issuer, d.clock.now)
	return d
}

func encode(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// sign makes a token of any header and claims, as JSON text.
func (d *desk) sign(header, claims string) string {
	head := encode(header) + "." + encode(claims)
	return head + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(d.key, []byte(head)))
}

const goodHeader = `{"alg":"EdDSA","kid":"k1","typ":"JWT"}`

func (d *desk) claims(change string) string {
	all := map[string]string{
		"sub": `"u"`, "broker": `"alpha"`, "scope": `"trade read"`, "iss": `"perpetua"`, "jti": `"1"`,
		"iat": fmt.Sprint(d.clock.at.Unix()), "exp": fmt.Sprint(d.clock.at.Unix() + 3600),
	}
	if change != "" {
		name, value, _ := strings.Cut(change, "=")
		all[name] = value
	}
	var parts []string
	for name, value := range all {
		if value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", name, value))
		}
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func (d *desk) good() string { return d.sign(goodHeader, d.claims("")) }

func TestVerifyGoodTokens(t *testing.T) {
	d := newDesk()
	for range 2 { // the second time from the memory
		p, err := d.tokens.Verify(d.good(), "")
		if err != nil || p.Username != "u" || p.Broker != "alpha" || p.Customer != "" || strings.Join(p.Scopes, " ") != "trade read" ||
			!p.Expires.Equal(d.clock.at.Add(time.Hour)) {
			t.Fatalf("got %+v, %v", p, err)
		}
	}
	claims := `{"sub":"c","customer":"C1","scope":"read",` + strings.TrimPrefix(d.claims("sub="), "{")
	claims = strings.Replace(claims, `,"scope":"trade read"`, "", 1)
	p, err := d.tokens.Verify(d.sign(goodHeader, claims), "")
	if err != nil || p.Customer != "C1" {
		t.Errorf("got %+v, %v", p, err)
	}
}

func TestVerifyRefusesForgedTokens(t *testing.T) {
	d := newDesk()
	good := d.good()
	parts := strings.Split(good, ".")
	public := d.people.keys["k1"]
	hmacToken := func(secret []byte, alg string) string {
		head := encode(`{"alg":"`+alg+`","kid":"k1","typ":"JWT"}`) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(head))
		return head + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}
	stranger := newDesk()
	stranger.key = ed25519.NewKeyFromSeed([]byte(strings.Repeat("x", 32)))
	strangerJWK := `{"kty":"OKP","crv":"Ed25519","x":"` + base64.RawURLEncoding.EncodeToString(stranger.key.Public().(ed25519.PublicKey)) + `"}`
	last := parts[2][:len(parts[2])-2]

	tests := map[string]string{
		"empty":                       "",
		"a word":                      "token",
		"two dots":                    "..",
		"no signature":                parts[0] + "." + parts[1] + ".",
		"no dot":                      parts[0] + "." + parts[1],
		"cut signature":               parts[0] + "." + parts[1] + "." + last,
		"another spelling":            parts[0] + "." + parts[1] + "." + parts[2][:85] + string(parts[2][85]+1),
		"padding":                     good + "==",
		"a line break":                good + "\n",
		"a blank":                     " " + good,
		"four parts":                  good + ".x",
		"other claims":                parts[0] + "." + encode(d.claims(`broker="beta"`)) + "." + parts[2],
		"alg none":                    encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg None":                    encode(`{"alg":"None","kid":"k1"}`) + "." + parts[1] + ".",
		"alg none with the signature": encode(`{"alg":"none","kid":"k1"}`) + "." + parts[1] + "." + parts[2],
		"alg none, signed":            d.sign(`{"alg":"none","kid":"k1"}`, d.claims("")),
		"alg HS256, signed":           d.sign(`{"alg":"HS256","kid":"k1"}`, d.claims("")),
		"HMAC with the public key":    hmacToken(public, "HS256"),
		"HMAC called EdDSA":           hmacToken(public, "EdDSA"),
		"no alg":                      d.sign(`{"kid":"k1"}`, d.claims("")),
		"no kid":                      d.sign(`{"alg":"EdDSA"}`, d.claims("")),
		"unknown kid":                 d.sign(`{"alg":"EdDSA","kid":"k2"}`, d.claims("")),
		"another key":                 stranger.sign(goodHeader, d.claims("")),
		"a key brought along":         stranger.sign(`{"alg":"EdDSA","kid":"k1","jwk":`+strangerJWK+`}`, d.claims("")),
		"a critical header":           d.sign(`{"alg":"EdDSA","kid":"k1","crit":["x"],"x":1}`, d.claims("")),
		"expired":                     d.sign(goodHeader, d.claims(fmt.Sprintf("exp=%d", d.clock.at.Unix()))),
		"expired long ago":            d.sign(goodHeader, d.claims("exp=1")),
		"no expiry":                   d.sign(goodHeader, d.claims("exp=")),
		"expiry as text":              d.sign(goodHeader, d.claims(`exp="soon"`)),
		"issued in the future":        d.sign(goodHeader, d.claims(fmt.Sprintf("iat=%d", d.clock.at.Unix()+60))),
		"no time of issue":            d.sign(goodHeader, d.claims("iat=")),
		"not yet valid":               d.sign(goodHeader, d.claims(fmt.Sprintf("nbf=%d", d.clock.at.Unix()+60))),
		"another issuer":              d.sign(goodHeader, d.claims(`iss="perpetual"`)),
		"no issuer":                   d.sign(goodHeader, d.claims("iss=")),
		"no subject":                  d.sign(goodHeader, d.claims("sub=")),
		"an unknown user":             d.sign(goodHeader, d.claims(`sub="v"`)),
		"no broker":                   d.sign(goodHeader, d.claims("broker=")),
		"a broker that is a number":   d.sign(goodHeader, d.claims("broker=7")),
		"a customer that is a list":   d.sign(goodHeader, d.claims("customer=[]")),
		"no scope":                    d.sign(goodHeader, d.claims("scope=")),
		"a scope that is a list":      d.sign(goodHeader, d.claims(`scope=["trade"]`)),
		"claims that are no object":   d.sign(goodHeader, `[]`),
		"claims that are no JSON":     d.sign(goodHeader, `{`),
		"JSON serialisation":          `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"very long":                   good + strings.Repeat("A", maxToken),
	}
	for name, token := range tests {
		if p, err := d.tokens.Verify(token, ""); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
	}
	if n := len(d.tokens.verified); n != 0 {
		t.Errorf("%d tokens that are not good are remembered", n)
	}
}

// TestTokensOfANodeThatIsAhead verifies tokens that were issued later than this node's clock says: good ones up to ten seconds, and
// later ones are refused with the reason. A token that is forged gets no reason.
func TestTokensOfANodeThatIsAhead(t *testing.T) {
	d := newDesk()
	issued := func(by *desk, ahead int64) error {
		_, err := NewGate(d.tokens).Check(by.sign(goodHeader, by.claims(fmt.Sprintf("iat=%d", d.clock.at.Unix()+ahead))), "")
		return err
	}
	stranger := newDesk()
	stranger.key = ed25519.NewKeyFromSeed([]byte(strings.Repeat("s", 32)))
	if err := issued(d, 10); err != nil {
		t.Errorf("ten seconds ahead: %v", err)
	}
	for name, c := range map[string]struct {
		by   *desk
		want string
	}{"genuine": {d, Early}, "forged": {stranger, "The bearer token is not valid."}} {
		var p *problem.Problem
		if err := issued(c.by, 60); !errors.As(err, &p) || p.Status != 401 || p.Detail != c.want {
			t.Errorf("%s, a minute ahead: %v, want %q", name, err, c.want)
		}
	}
}

func TestVerifiedTokensStopBeingGood(t *testing.T) {
	for name, change := range map[string]func(*desk){
		"expired":          func(d *desk) { d.clock.at = d.clock.at.Add(time.Hour) },
		"key retired":      func(d *desk) { delete(d.people.keys, "k1") },
		"key replaced":     func(d *desk) { d.people.keys["k1"] = make(ed25519.PublicKey, 32) },
		"user deactivated": func(d *desk) { d.people.accounts["u"] = Account{} },
		"user gone":        func(d *desk) { delete(d.people.accounts, "u") },
		"another broker's user": func(d *desk) {
			a := active(RateLimit{})
			a.Broker = "beta"
			d.people.accounts["u"] = a
		},
		"user confined to an account": func(d *desk) {
			a := active(RateLimit{})
			a.Customer = "C1"
			d.people.accounts["u"] = a
		},
	} {
		d := newDesk()
		token := d.good()
		if _, err := d.tokens.Verify(token, ""); err != nil {
			t.Fatal(err)
		}
		change(d)
		if _, err := d.tokens.Verify(token, ""); err == nil {
			t.Errorf("%s: still accepted", name)
		}
	}
	d := newDesk()
	token := d.good()
	d.clock.at = d.clock.at.Add(time.Hour - time.Second)
	if _, err := d.tokens.Verify(token, ""); err != nil {
		t.Errorf("a second before the end: %v", err)
	}
}

// A token says what its user could do when it was issued. What was taken away since is gone; what was added needs a new
// token.
func TestScopesTakenAway(t *testing.T) {
	d := newDesk()
	token := d.good()
	scopes := func() string {
		p, err := d.tokens.Verify(token, "")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(p.Scopes, " ")
	}
	for _, test := range []struct{ has, want string }{
		{"read trade", "trade read"}, {"read", "read"}, {"operator", ""}, {"operator read trade", "trade read"},
	} {
		d.people.accounts["u"] = Account{Active: true, Broker: "alpha", Scopes: strings.Fields(test.has)}
		if got := scopes(); got != test.want {
			t.Errorf("a user with %q: the token is good for %q, want %q", test.has, got, test.want)
		}
	}
	if n := len(d.tokens.verified); n != 1 {
		t.Errorf("%d tokens are remembered, want the one", n)
	}
}

func TestVerifiedTokensAreBounded(t *testing.T) {
	d := newDesk()
	token := d.good()
	for i := range maxVerified + 10 {
		d.tokens.remember(fmt.Sprint(i), verified{principal: &Principal{Expires: d.clock.at}})
	}
	if n := len(d.tokens.verified); n > maxVerified {
		t.Errorf("%d tokens are remembered, want at most %d", n, maxVerified)
	}
	if _, err := d.tokens.Verify(token, ""); err != nil {
		t.Error(err)
	}
}

// FuzzVerify starts from a good token: nothing else but it is good.
func FuzzVerify(f *testing.F) {
	d := newDesk()
	good := d.good()
	f.Add(good)
	f.Add(d.sign(`{"alg":"none"}`, d.claims("")))
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, token string) {
		if _, err := d.tokens.Verify(token, ""); err == nil && token != good {
			t.Fatalf("accepted %q", token)
		}
	})
}
