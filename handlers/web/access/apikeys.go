package access

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
	// APIKeyPrefix is the prefix of every API key secret. It distinguishes secrets from JWTs, which begin with base64
	// of "{".
	APIKeyPrefix = "pk_"
	// secretBytes is the number of random bytes after the prefix. They are encoded in base64url.
	secretBytes = 32
)

// APIKey is an API key as authentication needs it.
type APIKey struct {
	ID       scalar.ID
	Username string
	Customer string // the only account that the key may use, or ""
	Scopes   []string
	Networks []string    // networks from which the key may be used; empty: all
	Expires  scalar.Time // zero: never
	LastUsed scalar.Time // start of the last day of use that the log records
	Limit    RateLimit   // replaces the user's limit; zero: no limit of the key
}

// NewSecret generates the secret of an API key.
func NewSecret() string {
	var random [secretBytes]byte
	rand.Read(random[:]) // never returns an error
	return APIKeyPrefix + base64.RawURLEncoding.EncodeToString(random[:])
}

// HashOf returns the hash that identifies a secret. The log stores only the hash.
func HashOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// Used registers a function that is called for each use of a key if the log has no use of that key today. Used MUST
// be called before the first request, and the function MUST NOT block.
func (t *Tokens) Used(call func(APIKey)) { t.used = call }

// RefuseKeys makes the verifier refuse all API keys. It MUST be called before the first request.
func (t *Tokens) RefuseKeys() { t.keyless = true }

// ErrKeysRefused is the error of an API key at a node that takes none.
var ErrKeysRefused = errors.New("API keys are not accepted here")

var (
	errNoAPIKey = errors.New("no such API key, or revoked")
	errAddress  = errors.New("the API key is not for that address")
)

// verifyKey is verify for API keys. It looks a key up by hash, which is cheaper than verifying a signature, so it
// needs no cache that could outlive a revocation. Because the lookup compares hashes, its timing reveals nothing
// about the secret.
func (t *Tokens) verifyKey(secret, address string) (*Principal, Account, error) {
	if t.keyless {
		return nil, Account{}, ErrKeysRefused
	}
	if len(secret) != len(APIKeyPrefix)+base64.RawURLEncoding.EncodedLen(secretBytes) {
		return nil, Account{}, errToken
	}
	hash := HashOf(secret)
	k, known := t.identities.APIKey(hash)
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
	p := &Principal{Username: k.Username, Broker: account.Broker, Customer: k.Customer, Scopes: k.Scopes, APIKey: k.ID, keyHash: hash}
	if !k.Expires.IsZero() {
		p.Expires = k.Expires.Std()
	}
	p, account, err := t.inForce(p)
	if err != nil {
		return nil, Account{}, err
	}
	if k.Limit.enabled() {
		account.RateLimit = k.Limit
		account.RateLimit.APIKey = k.ID
	}
	// Record the use only after all checks: a refused attempt is not a use.
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
