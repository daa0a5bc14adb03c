package login

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/lestrrat-go/jwx/v2/jwt"

	"github.com/perpetua-exchange/perpetua/domain/identity"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
	"github.com/perpetua-exchange/perpetua/streams/logclock"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/seal"
)

// Lifetime is the validity of a token.
const Lifetime = 3600 * time.Second

var errNoKey = errors.New("the identity journal holds no signing key of this venue")

// NewSigningKey generates a key pair and returns it as the command signing_key.add, with the private part encrypted.
// The key's ID is its RFC 7638 thumbprint.
func NewSigningKey(box *seal.Box) (*identity.AddSigningKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	return sealKey(box, private)
}

// DerivedSigningKey returns the key pair for a purpose, derived from the master key. Every node derives the same
// pair.
func DerivedSigningKey(box *seal.Box, purpose string) (*identity.AddSigningKey, error) {
	return sealKey(box, ed25519.NewKeyFromSeed(box.Derive("signing key "+purpose)))
}

func sealKey(box *seal.Box, private ed25519.PrivateKey) (*identity.AddSigningKey, error) {
	public := private.Public().(ed25519.PublicKey)
	key, err := jwk.FromRaw(public)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	thumbprint, err := key.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	kid := base64.RawURLEncoding.EncodeToString(thumbprint)
	sealed, err := box.Seal(private.Seed(), privateKeyData(kid))
	if err != nil {
		return nil, fmt.Errorf("make a signing key: %w", err)
	}
	return &identity.AddSigningKey{KID: kid, Public: public, Private: sealed}, nil
}

// signer issues tokens with the newest key. It caches decrypted keys.
type signer struct {
	identity record.Follower
	box      *seal.Box
	issuer   string
	audience func() access.Audience // nil: tokens have no audience
	now      func() time.Time
	clock    *logclock.Clock // of the identity journal, which has the times of the keys

	mu       sync.Mutex
	unsealed map[string]ed25519.PrivateKey
}

func (s *signer) issue(u *identity.User) (string, error) {
	now := s.now()
	audience := ""
	if s.audience != nil {
		// Check the audience before the key: a copy has no audience while its only keys are the copied ones.
		if audience = s.audience().Name; audience == "" {
			return "", errNoKey
		}
	}
	var key *identity.SigningKey
	View(s.identity, func(state *identity.State) { key, _ = state.SigningKey(s.clock.Now()) })
	if key == nil {
		return "", errNoKey
	}
	// The key may be used after the view: objects of a state are replaced, never modified.
	private, err := s.private(key)
	if err != nil {
		return "", err
	}
	b := jwt.NewBuilder().Subject(u.Username).Issuer(s.issuer).IssuedAt(now).Expiration(now.Add(Lifetime)).
		JwtID(operation.NewID().String()).Claim("broker", u.Broker).Claim("scope", strings.Join(u.Scopes, " ")).
		Claim(access.PasswordClaim, int64(u.PasswordChanged))
	if audience != "" {
		b = b.Audience([]string{audience})
	}
	if u.CustomerCode != "" {
		b = b.Claim("customer", u.CustomerCode)
	}
	token, err := b.Build()
	if err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	header := jws.NewHeaders()
	if err := header.Set(jws.KeyIDKey, key.KID); err != nil {
		return "", fmt.Errorf("make a token: %w", err)
	}
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.EdDSA, private, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", fmt.Errorf("sign a token: %w", err)
	}
	return string(signed), nil
}

func (s *signer) private(k *identity.SigningKey) (ed25519.PrivateKey, error) {
	// Hold the lock while decrypting, so that concurrent logins decrypt the key once.
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.unsealed[k.KID]; ok {
		return key, nil
	}
	seed, err := s.box.Open(k.Private, privateKeyData(k.KID))
	if err != nil {
		return nil, fmt.Errorf("signing key %s: %w", k.KID, err)
	}
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("signing key %s: the private part has %d bytes", k.KID, len(seed))
	}
	key := ed25519.NewKeyFromSeed(seed)
	s.unsealed[k.KID] = key
	return key, nil
}

// publicKey is a JWK as defined in RFC 8037.
type publicKey struct {
	Type      string `json:"kty"`
	Curve     string `json:"crv"`
	X         string `json:"x"`
	KID       string `json:"kid"`
	Algorithm string `json:"alg"`
	Use       string `json:"use"`
}

// keySet is a JWK set.
type keySet struct {
	Keys []publicKey `json:"keys"`
}

func (s *signer) keySet() keySet {
	set := keySet{Keys: []publicKey{}}
	View(s.identity, func(state *identity.State) {
		for _, k := range state.Keys() {
			set.Keys = append(set.Keys, publicKey{Type: "OKP", Curve: "Ed25519", X: base64.RawURLEncoding.EncodeToString(k.Public),
				KID: k.KID, Algorithm: "EdDSA", Use: "sig"})
		}
	})
	return set
}
