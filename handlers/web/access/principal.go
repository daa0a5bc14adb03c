// Package access decides who may send a request: it verifies bearer tokens and API keys, narrows their scopes to those of
// the user, and counts requests against rate limits: those of users and keys, or without them those of networks. It knows no
// transport: a Gate admits a token that was sent from an address.
package access

import (
	"crypto/ed25519"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// These are the scopes of tokens.
const (
	ScopeTrade      = "trade"
	ScopeRead       = "read"
	ScopeOnboarding = "onboarding"
	ScopeOperator   = "operator"
	ScopeAuditor    = "auditor"
)

// AnyScope contains all scopes. A route with AnyScope accepts every valid token.
var AnyScope = []string{ScopeTrade, ScopeRead, ScopeOnboarding, ScopeOperator, ScopeAuditor}

// Principal is the authenticated sender of a request, as described by the token or API key.
type Principal struct {
	Username string
	Broker   string // the tenant
	Customer string // set if the token is limited to one account
	Scopes   []string
	Expires  time.Time // zero: never
	KID      string    // ID of the key that signed the token
	APIKey   scalar.ID // zero for a token
	// Audience is the venue for which the token was issued, or "".
	Audience string
	// PasswordChanged is the time at which the password behind the token was set. Tokens of older builds lack it; for
	// them it is the second in which the token was issued.
	PasswordChanged scalar.Time

	keyHash [sha256.Size]byte // of the API key
}

// Expired reports whether the principal's token or key has expired at the given time.
func (p *Principal) Expired(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }

// Has reports whether the principal has the scope.
func (p *Principal) Has(scope string) bool { return slices.Contains(p.Scopes, scope) }

// Require returns an error if scopes is not empty and the principal has none of them.
func (p *Principal) Require(scopes []string) error {
	if len(scopes) > 0 && !slices.ContainsFunc(scopes, p.Has) {
		return problem.Forbidden("The token lacks the scope " + strings.Join(scopes, " or ") + ".")
	}
	return nil
}

// Actor returns the principal as the actor of a command.
func (p *Principal) Actor() decide.Actor {
	return decide.Actor{Sub: p.Username, Broker: p.Broker, Customer: p.Customer}
}

// SeesAll reports whether the principal may read the records of all brokers. Operators and auditors may.
func (p *Principal) SeesAll() bool { return p.Has(ScopeOperator) || p.Has(ScopeAuditor) }

// Sees reports whether the principal may read the records of a broker's customer. Handlers answer 404 for records
// that the principal may not read.
func (p *Principal) Sees(broker, customer string) bool {
	if p.Customer != "" {
		return p.Broker == broker && p.Customer == customer
	}
	return p.SeesAll() || p.Broker == broker
}

// RateLimit is the rate limit that an operator set for a user, an API key, or the networks of clients: PerSecond requests on
// average and Burst in one instant. The zero RateLimit means that requests are not limited.
type RateLimit struct {
	PerSecond int64
	Burst     int64
	// APIKey is the key that the limit belongs to. If it is zero, the limit belongs to the user and is shared by all
	// tokens of the user and by all API keys without their own limit.
	APIKey scalar.ID
	// Network says that the limit belongs to the client's network (see Networks).
	Network bool
}

func (l RateLimit) enabled() bool { return l.PerSecond > 0 && l.Burst > 0 }

// These are the names of limits in the RateLimit headers and at /v1/limits.
const (
	ofUser    = "user"
	ofAPIKey  = "api_key"
	ofNetwork = "network"
)

// Policies returns the policies of requests that are limited.
func Policies() []string { return []string{ofUser, ofAPIKey, ofNetwork} }

// Policy returns "user", "api_key" or "network", or "none" without a limit.
func (l RateLimit) Policy() string {
	switch {
	case !l.enabled():
		return "none"
	case l.Network:
		return ofNetwork
	case !l.APIKey.IsZero():
		return ofAPIKey
	}
	return ofUser
}

// Account is a user as authorization needs it.
type Account struct {
	Active    bool
	Broker    string
	Customer  string    // the only account that the user may use, or ""
	Scopes    []string  // current scopes
	RateLimit RateLimit // zero: none
	// PasswordChanged is the time at which the password was set. Tokens for an older password are invalid.
	PasswordChanged scalar.Time
}

// Narrowed returns the principal without the scopes that the user has lost since the token or key was issued. It
// returns false if the user is inactive, or if the token's broker or account is not the user's any more. A key may be
// limited to one account even if its user is not.
func (a Account) Narrowed(p *Principal) (*Principal, bool) {
	confined := a.Customer == p.Customer || a.Customer == "" && !p.APIKey.IsZero()
	// The token may be newer than this node's fold, so a token is outdated only if its password is older.
	outdated := p.APIKey.IsZero() && p.PasswordChanged < a.PasswordChanged
	if !a.Active || a.Broker != p.Broker || !confined || outdated {
		return nil, false
	}
	lost := func(scope string) bool { return !slices.Contains(a.Scopes, scope) }
	if !slices.ContainsFunc(p.Scopes, lost) {
		return p, true
	}
	left := *p // the original stays in the token cache
	left.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), lost)
	return &left, true
}

// Change describes how a record of the identity journal changes the rights of tokens and keys. One member is set.
type Change struct {
	Username string // a user, with the new Account
	Account  Account
	KID      string    // a retired signing key
	APIKey   scalar.ID // a revoked API key
}

// Leaves returns the principal after the change: the same, a copy with fewer scopes, or nil.
func (c *Change) Leaves(p *Principal) *Principal {
	switch {
	case c.KID != "" && c.KID == p.KID, !c.APIKey.IsZero() && c.APIKey == p.APIKey:
		return nil
	case c.Username == "" || c.Username != p.Username:
		return p
	}
	left, _ := c.Account.Narrowed(p)
	return left
}

// MayReturn reports whether the change may give a principal back scopes that an earlier change took.
func (c *Change) MayReturn(p *Principal) bool {
	return c.Username == p.Username && c.Account.Active && slices.ContainsFunc(c.Account.Scopes, func(scope string) bool { return !p.Has(scope) })
}

// Identities is the part of the identity journal's state that authentication needs.
type Identities interface {
	// PublicKey returns the key that verifies tokens with the kid. It returns false for unknown and retired keys.
	PublicKey(kid string) (ed25519.PublicKey, bool)
	// Account returns a user.
	Account(username string) (Account, bool)
	// APIKey returns the key for the SHA-256 hash of the secret. It returns false for unknown and revoked keys.
	APIKey(hash [sha256.Size]byte) (APIKey, bool)
}
