package access

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

func TestSecrets(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	if !regexp.MustCompile(`^pk_[A-Za-z0-9_-]{43}$`).MatchString(a) || a == b {
		t.Errorf("%s and %s", a, b)
	}
}

// TestAPIKeys judges one key while it, its user and the day change. Nothing is remembered: what holds is what the
// identities say now.
func TestAPIKeys(t *testing.T) {
	d := newDesk()
	secret := NewSecret()
	good := APIKey{ID: scalar.ID{1}, Username: "u", Scopes: []string{"read", "onboarding"}, LastUsed: scalar.TimeOf(d.clock.at.Truncate(24 * time.Hour))}
	var used []APIKey
	d.tokens.Used(func(k APIKey) { used = append(used, k) })
	verify := func(k APIKey, u Account, secret, address string) *Principal {
		d.people.apiKeys = map[[sha256.Size]byte]APIKey{HashOf(secret): k}
		d.people.accounts["u"] = u
		p, err := d.tokens.Verify(secret, address)
		if err != nil {
			return nil
		}
		return p
	}
	for range 2 {
		p := verify(good, active(RateLimit{}), secret, "192.0.2.1")
		if p == nil || p.Username != "u" || p.Broker != "alpha" || p.Customer != "" || strings.Join(p.Scopes, " ") != "read" || p.APIKey != good.ID || p.Expired(d.clock.at.AddDate(1000, 0, 0)) {
			t.Fatalf("%+v", p)
		}
	}
	if len(used) != 0 {
		t.Errorf("the use of a key that is used today was told: %v", used)
	}
	change := func(f func(*APIKey)) APIKey {
		k := good
		f(&k)
		return k
	}
	listed := change(func(k *APIKey) { k.Networks = []string{"192.0.2.0/24", "2001:db8::7/128"} })
	confined, inactive, elsewhere := active(RateLimit{}), active(RateLimit{}), active(RateLimit{})
	confined.Customer, inactive.Active = "C1", false
	elsewhere.Customer = "C2"
	forC1 := change(func(k *APIKey) { k.Customer = "C1" })
	for name, test := range map[string]struct {
		key     APIKey
		user    Account
		address string
		want    bool
	}{
		"from a network":            {listed, active(RateLimit{}), "192.0.2.99", true},
		"from an address":           {listed, active(RateLimit{}), "2001:db8::7", true},
		"from a network, mapped":    {listed, active(RateLimit{}), "::ffff:192.0.2.99", true},
		"from elsewhere":            {listed, active(RateLimit{}), "192.0.3.1", false},
		"from nowhere":              {listed, active(RateLimit{}), "", false},
		"of an inactive user":       {good, inactive, "", false},
		"for an account":            {forC1, active(RateLimit{}), "", true},
		"for the user's account":    {forC1, confined, "", true},
		"for another than that":     {forC1, elsewhere, "", false},
		"of a user now confined":    {good, confined, "", false},
		"that has expired":          {change(func(k *APIKey) { k.Expires = scalar.TimeOf(d.clock.at) }), active(RateLimit{}), "", false},
		"that has not expired":      {change(func(k *APIKey) { k.Expires = scalar.TimeOf(d.clock.at) + 1 }), active(RateLimit{}), "", true},
		"that was used last year":   {change(func(k *APIKey) { k.LastUsed -= 365 * scalar.Day }), active(RateLimit{}), "", true},
		"expired, used last year":   {change(func(k *APIKey) { k.LastUsed, k.Expires = 0, 1 }), active(RateLimit{}), "", false},
		"listed, used from nowhere": {change(func(k *APIKey) { k.LastUsed, k.Networks = 0, []string{"10.0.0.0/8"} }), active(RateLimit{}), "11.0.0.1", false},
	} {
		if p := verify(test.key, test.user, secret, test.address); (p != nil) != test.want {
			t.Errorf("a key %s: %+v", name, p)
		}
	}
	if len(used) != 1 {
		t.Errorf("%d uses were told, want the one of a day that was not known", len(used))
	}
	for name, sent := range map[string]string{"another": NewSecret(), "a part": secret[:40], "one more byte": secret + "A", "none": APIKeyPrefix} {
		d.people.apiKeys = map[[sha256.Size]byte]APIKey{HashOf(secret): good}
		if p, err := d.tokens.Verify(sent, ""); err == nil {
			t.Errorf("%s secret is %+v", name, p)
		}
	}
}
