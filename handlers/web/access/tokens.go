package access

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
	"github.com/perpetua-exchange/perpetua/streams/record"
)

const (
	// maxToken is the maximum length of a token.
	maxToken = 4096
	// maxVerified limits the cache of verified tokens.
	maxVerified = 16384
	// maxSkew is how far the clock of the issuing node may be ahead. It does not extend the expiry. docker/README.md
	// names it.
	maxSkew = 10 * time.Second
)

// Tokens verifies access tokens. Verifying a signature costs more than the rest of most requests, so verified tokens
// are cached until they expire. The key and the user are looked up for each request, so retired keys, deactivated
// users and removed scopes take effect immediately.
type Tokens struct {
	identities Identities
	issuer     string
	now        func() time.Time
	used       func(APIKey)
	keyless    bool            // no API key is accepted
	audience   func() Audience // nil: any audience is accepted
	fold       record.Follower // behind identities; nil if unknown
	starting   func() bool     // users and keys may be missing; nil: never

	mu       sync.Mutex
	verified map[string]verified // by token
}

type verified struct {
	principal *Principal
	key       string // bytes of the public key
}

// NewTokens returns a verifier for tokens of the issuer.
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

// Follows names the fold that the identities are read from. It MUST be called before the first request.
func (t *Tokens) Follows(f record.Follower) { t.fold = f }

// MayLack sets a function that reports whether the node is starting, so that users and keys of the log may be missing. It MUST be
// called before the first request, and the function MUST NOT block.
func (t *Tokens) MayLack(starting func() bool) { t.starting = starting }

// sequence returns the sequence of the identity fold, or -1 if it is not known.
func (t *Tokens) sequence() int64 {
	if t.fold == nil {
		return -1
	}
	return t.fold.Position().Sequence
}

// meant returns nil if the token's audience matches this venue.
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

// Verify returns the principal of a token or API key that was sent from an address. Its errors are for the log only:
// clients learn only that the token is invalid.
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
	errStarting = errors.New("the node is starting and may lack the user or the key")
	errAudience = errors.New("the token is for another venue, or a copy of this one")
	errEarly    = errors.New("the token was issued later than this node's clock says")

	errNoAudience = errors.New("the venue does not know yet which tokens are its own")
)

// verify is Verify that also returns the account of the user. An error of a token that may be valid, because the node is starting,
// is errStarting.
func (t *Tokens) verify(token, address string) (*Principal, Account, error) {
	starting := t.starting != nil && t.starting() // before the token is looked at
	p, account, err := t.judge(token, address)
	if err != nil && starting && !errors.Is(err, errNoAudience) && !errors.Is(err, ErrKeysRefused) {
		err = fmt.Errorf("%w: %w", errStarting, err)
	}
	return p, account, err
}

func (t *Tokens) judge(token, address string) (*Principal, Account, error) {
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
	// The signature stays valid, but the key may have been retired since, or its ID may belong to another key after
	// the log was restored.
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
	if !remembered { // only valid tokens, so that others cannot evict them
		t.remember(strings.Clone(token), v) // copy the token without the header around it
	}
	return p, account, nil
}

// inForce checks a principal against the current time and user, and returns it with the current scopes.
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

// check verifies the signature and reads the claims. The algorithm is fixed; a token with another one in its header
// is rejected.
func (t *Tokens) check(token string) (verified, error) {
	if strings.Count(token, ".") != 2 {
		return verified{}, errToken
	}
	for part := range strings.SplitSeq(token, ".") { // a token must have only one valid spelling
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
	if errors.Is(err, jwt.ErrInvalidIssuedAt()) { // the signature is verified before the claims
		return verified{}, errEarly
	}
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
	default: // a token for several venues is rejected
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

// PasswordClaim is the claim with the time at which the user's password was set, in microseconds since 1970. It
// orders tokens and password changes to the microsecond without comparing clocks.
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

// remember caches a verified token. A full cache first drops expired tokens, then arbitrary ones until a quarter is
// free.
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
