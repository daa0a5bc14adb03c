package web

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"
	"github.com/lestrrat-go/jwx/v2/jwt"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

const (
	// maxToken is the greatest length of a token that is looked at.
	maxToken = 4096
	// maxVerified bounds the verified tokens that are remembered.
	maxVerified = 16384
	// maxSkew is how far the clock of the node that issued a token may be ahead. A token still ends when it says.
	maxSkew = 10 * time.Second
)

// Tokens verifies access tokens. Checking a signature costs more than the rest of most requests, so what was verified
// is remembered until it expires; the key and the user are looked up each time, so that a retired key or a
// deactivated user is refused, and a scope that was taken away gone, at once.
type Tokens struct {
	identities Identities
	issuer     string
	now        func() time.Time
	used       func(APIKey)
	audience   func() Audience // nil: tokens for anybody are taken

	mu       sync.Mutex
	verified map[string]verified // by token
}

type verified struct {
	principal *Principal
	key       string // the public key's bytes
}

// NewTokens makes a verifier of tokens by the issuer.
func NewTokens(identities Identities, issuer string, now func() time.Time) *Tokens {
	return &Tokens{identities: identities, issuer: issuer, now: now, used: func(APIKey) {}, verified: make(map[string]verified)}
}

// Audience describes the tokens that a venue accepts. A copy of a venue has another audience.
type Audience struct {
	// Name is the required audience claim. It is empty until the venue has read its fence.
	Name string
	// Bare accepts tokens without an audience claim, which older builds issued.
	Bare bool
}

// For restricts the verifier to an audience. It MUST be called before the first request, and the function MUST NOT block.
func (t *Tokens) For(audience func() Audience) { t.audience = audience }

// meant returns nil if the audience of a token matches this venue.
func (t *Tokens) meant(p *Principal) error {
	if t.audience == nil {
		return nil
	}
	switch a := t.audience(); {
	case a.Name == "":
		return errNoAudience
	case p.Audience == a.Name, p.Audience == "" && a.Bare:
		return nil
	}
	return errAudience
}

// Verify returns whom a token, or an API key, is for that was sent from an address. Any fault is an error, for the log
// only: clients learn that it is not valid.
func (t *Tokens) Verify(token, address string) (*Principal, error) {
	p, _, err := t.verify(token, address)
	return p, err
}

var (
	errToken    = errors.New("not a token")
	errKey      = errors.New("signed with an unknown or retired key")
	errExpired  = errors.New("expired")
	errInactive = errors.New("the user is not active")
	errMoved    = errors.New("the user is no longer of that broker or account, or has another password")
	errClaims   = errors.New("claims are missing or of the wrong kind")
	errAudience = errors.New("the token is for another venue, or a copy of this one")

	errNoAudience = errors.New("the venue does not know yet which tokens are its own")
)

func (t *Tokens) verify(token, address string) (*Principal, Account, error) {
	if strings.HasPrefix(token, APIKeyPrefix) {
		return t.verifyKey(token, address)
	}
	if len(token) > maxToken {
		return nil, Account{}, errToken
	}
	t.mu.Lock()
	v, remembered := t.verified[token]
	t.mu.Unlock()
	if !remembered {
		var err error
		if v, err = t.check(token); err != nil {
			return nil, Account{}, err
		}
	}
	// The signature stays good. Its key may have been retired since, and after a log was put back its id may be another's.
	if key, known := t.identities.PublicKey(v.principal.KID); !known || string(key) != v.key {
		return nil, Account{}, errKey
	}
	if err := t.meant(v.principal); err != nil {
		return nil, Account{}, err
	}
	p, account, err := t.inForce(v.principal)
	if err != nil {
		return nil, Account{}, err
	}
	if !remembered { // only what is in force: tokens that are not must not push out others
		t.remember(strings.Clone(token), v) // not the header around it
	}
	return p, account, nil
}

// inForce returns what of a principal is in force now.
func (t *Tokens) inForce(p *Principal) (*Principal, Account, error) {
	if p.Expired(t.now()) {
		return nil, Account{}, errExpired
	}
	account, known := t.identities.Account(p.Username)
	if !known || !account.Active {
		return nil, Account{}, errInactive
	}
	narrowed, ok := account.Narrowed(p)
	if !ok {
		return nil, Account{}, errMoved
	}
	return narrowed, account, nil
}

// check verifies the signature and reads the claims. The algorithm is ours, never the token's: what its header says
// of it must agree.
func (t *Tokens) check(token string) (verified, error) {
	if strings.Count(token, ".") != 2 {
		return verified{}, errToken
	}
	for part := range strings.SplitSeq(token, ".") { // one token, one spelling
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil || strings.ContainsAny(part, "\r\n") {
			return verified{}, errToken
		}
	}
	message, err := jws.Parse([]byte(token), jws.WithCompact())
	if err != nil {
		return verified{}, fmt.Errorf("token: %w", err)
	}
	if len(message.Signatures()) != 1 {
		return verified{}, errToken
	}
	header := message.Signatures()[0].ProtectedHeaders()
	if header.Algorithm() != jwa.EdDSA || len(header.Critical()) > 0 {
		return verified{}, errToken
	}
	kid := header.KeyID()
	key, ok := t.identities.PublicKey(kid)
	if !ok || len(key) != ed25519.PublicKeySize {
		return verified{}, errKey
	}
	parsed, err := jwt.Parse([]byte(token), jwt.WithKey(jwa.EdDSA, key), jwt.WithIssuer(t.issuer),
		jwt.WithClock(jwt.ClockFunc(t.now)), jwt.WithAcceptableSkew(maxSkew),
		jwt.WithRequiredClaim(jwt.ExpirationKey), jwt.WithRequiredClaim(jwt.IssuedAtKey))
	if err != nil {
		return verified{}, fmt.Errorf("token: %w", err)
	}
	p := &Principal{Username: parsed.Subject(), Expires: parsed.Expiration(), KID: kid}
	for name, field := range map[string]*string{"broker": &p.Broker, "customer": &p.Customer} {
		if claim, there := parsed.Get(name); there {
			if *field, ok = claim.(string); !ok {
				return verified{}, errClaims
			}
		}
	}
	switch meant := parsed.Audience(); len(meant) {
	case 0:
	case 1:
		p.Audience = meant[0]
	default: // for several venues: none of ours
		return verified{}, errClaims
	}
	if p.PasswordChanged, ok = passwordOf(parsed); !ok {
		return verified{}, errClaims
	}
	scope, _ := parsed.Get("scope")
	text, ok := scope.(string)
	if !ok || p.Username == "" || p.Broker == "" {
		return verified{}, errClaims
	}
	p.Scopes = strings.Fields(text)
	return verified{principal: p, key: string(key)}, nil
}

// PasswordClaim is the claim with the time at which the user's password was set, in microseconds since 1970.
// It orders tokens and password changes to the microsecond without comparing clocks.
const PasswordClaim = "password_changed"

// passwordOf reads PasswordClaim. For a token without the claim it returns the time of issue.
func passwordOf(t jwt.Token) (scalar.Time, bool) {
	claim, there := t.Get(PasswordClaim)
	if !there {
		return scalar.TimeOf(t.IssuedAt()), true
	}
	at, ok := claim.(float64)
	return scalar.Time(at), ok
}

// remember keeps what was verified. A full memory first loses what has expired, then whatever comes.
func (t *Tokens) remember(token string, v verified) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.verified) >= maxVerified {
		now := t.now()
		for other, old := range t.verified {
			if !now.Before(old.principal.Expires) {
				delete(t.verified, other)
			}
		}
		spare := len(t.verified) - maxVerified*3/4
		for other := range t.verified {
			if spare <= 0 {
				break
			}
			delete(t.verified, other)
			spare--
		}
	}
	t.verified[token] = v
}
