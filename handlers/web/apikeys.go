package web

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

const (
	// APIKeyPrefix is how the secret of an API key begins. No JWT does: those begin with the base64 of an object.
	APIKeyPrefix = "pk_"
	// secretBytes is how many random bytes follow it, in base64url.
	secretBytes = 32
)

// APIKey is what a request needs to know of a key.
type APIKey struct {
	ID       scalar.ID
	Username string
	Customer string // the one account that it is for, if any
	Scopes   []string
	Networks []string    // that it may be used from; none for all
	Expires  scalar.Time // zero: never
	LastUsed scalar.Time // the start of the last day on which it was, as far as the log tells
	Limit    RateLimit   // the key's own, in place of its user's; zero for none
}

// NewSecret makes the secret of an API key.
func NewSecret() string {
	var random [secretBytes]byte
	rand.Read(random[:]) // never fails
	return APIKeyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

// HashOf is what is kept of a secret.
func HashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// Used registers a function that is called with a key of which the log does not yet tell that it is used today. It is
// called before requests come, and must not wait.
func (t *Tokens) Used(call func(APIKey)) { t.used = call }

var (
	errNoAPIKey = errors.New("no such API key, or revoked")
	errAddress  = errors.New("the API key is not for that address")
)

// verifyKey is verify for API keys. They are looked up by their hash, which costs less than a signature, so nothing is
// remembered that could outlive a revocation; and what is compared is a hash, so the time it takes tells nothing of the
// secret.
func (t *Tokens) verifyKey(secret, address string) (*Principal, Account, error) {
	if len(secret) != len(APIKeyPrefix)+base64.RawURLEncoding.EncodedLen(secretBytes) {
		return nil, Account{}, errToken
	}
	k, known := t.identities.APIKey(HashOf(secret))
	if !known {
		return nil, Account{}, errNoAPIKey
	}
	if !k.allows(address) {
		return nil, Account{}, errAddress
	}
	account, known := t.identities.Account(k.Username)
	if !known {
		return nil, Account{}, errInactive
	}
	p := &Principal{Username: k.Username, Broker: account.Broker, Customer: k.Customer, Scopes: k.Scopes, APIKey: k.ID}
	if !k.Expires.IsZero() {
		p.Expires = k.Expires.Std()
	}
	p, account, err := t.inForce(p)
	if err != nil {
		return nil, Account{}, err
	}
	if k.Limit.there() {
		account.RateLimit = k.Limit
		account.RateLimit.APIKey = k.ID
	}
	// Only now: who tries a key in vain has not used it.
	if now := scalar.TimeOf(t.now()); k.LastUsed < now-now%scalar.Day {
		t.used(k)
	}
	return p, account, nil
}

// allows reports whether the key may be used from an address.
func (k *APIKey) allows(address string) bool {
	if len(k.Networks) == 0 {
		return true
	}
	from, err := netip.ParseAddr(address)
	return err == nil && slices.ContainsFunc(k.Networks, func(text string) bool {
		n, err := netip.ParsePrefix(text)
		return err == nil && n.Contains(from.Unmap().WithZone(""))
	})
}
