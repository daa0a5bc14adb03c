package web

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The scopes of tokens.
const (
	ScopeTrade      = "trade"
	ScopeRead       = "read"
	ScopeOnboarding = "onboarding"
	ScopeOperator   = "operator"
	ScopeAuditor    = "auditor"
)

// AnyScope are all scopes: a route that names them is for whoever has a good token.
var AnyScope = []string{ScopeTrade, ScopeRead, ScopeOnboarding, ScopeOperator, ScopeAuditor}

// Principal is on whose behalf a request is made, as its token or API key says.
type Principal struct {
	Username string
	Broker   string // the tenant
	Customer string // set if the token is for one account only
	Scopes   []string
	Expires  time.Time // zero: never
	KID      string    // of the signing key that the token is from
	APIKey   scalar.ID // zero if it came with a token
	// Audience is the venue that the token is for; "" if it names none.
	Audience string
	// PasswordChanged is the time at which the password behind the token was set. Tokens of older builds lack it; for them it
	// is the second in which the token was issued.
	PasswordChanged scalar.Time
}

// Expired reports whether the principal's token or key has ended at a time.
func (p *Principal) Expired(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }

// Has reports whether the principal has the scope.
func (p *Principal) Has(scope string) bool { return slices.Contains(p.Scopes, scope) }

// Actor is the principal as a command's actor.
func (p *Principal) Actor() decide.Actor {
	return decide.Actor{Sub: p.Username, Broker: p.Broker, Customer: p.Customer}
}

// SeesAll reports whether the principal reads every broker's records: operators and auditors do.
func (p *Principal) SeesAll() bool { return p.Has(ScopeOperator) || p.Has(ScopeAuditor) }

// Sees reports whether the principal may read the records of a broker's customer. What it may not see is 404.
func (p *Principal) Sees(broker, customer string) bool {
	if p.Customer != "" {
		return p.Broker == broker && p.Customer == customer
	}
	return p.SeesAll() || p.Broker == broker
}

// RateLimit is what an operator allows a user or an API key: so many requests a second on average, Burst at once. The zero
// RateLimit is none.
type RateLimit struct {
	PerSecond int64
	Burst     int64
	// APIKey is the key whose own limit it is; zero: it is the user's, which all of the user's tokens and other keys share.
	APIKey scalar.ID
}

func (l RateLimit) there() bool { return l.PerSecond > 0 && l.Burst > 0 }

// The names of limits, in the RateLimit headers and at /v1/limits.
const (
	ofUser   = "user"
	ofAPIKey = "api_key"
)

// Policy says whose limit it is: "user" or "api_key", and "none" where there is none.
func (l RateLimit) Policy() string {
	switch {
	case !l.there():
		return "none"
	case !l.APIKey.IsZero():
		return ofAPIKey
	}
	return ofUser
}

// Account is what a request needs to know of a user beside its token.
type Account struct {
	Active    bool
	Broker    string
	Customer  string    // the one account that the user is confined to, if any
	Scopes    []string  // what the user has now
	RateLimit RateLimit // zero: none
	// PasswordChanged is when the password was set. Older tokens are not good any more.
	PasswordChanged scalar.Time
}

// Narrowed returns the principal of a token or key with the scopes that the user still has, since an operator may have
// taken some away, and false where the user is not active, or no longer of that broker or account. A key may be for one
// account where its user is not.
func (a Account) Narrowed(p *Principal) (*Principal, bool) {
	confined := a.Customer == p.Customer || a.Customer == "" && !p.APIKey.IsZero()
	// The token may be newer than this node's fold, so only an older password is outdated.
	outdated := p.APIKey.IsZero() && p.PasswordChanged < a.PasswordChanged
	if !a.Active || a.Broker != p.Broker || !confined || outdated {
		return nil, false
	}
	lost := func(scope string) bool { return !slices.Contains(a.Scopes, scope) }
	if !slices.ContainsFunc(p.Scopes, lost) {
		return p, true
	}
	left := *p // the original is remembered for the token
	left.Scopes = slices.DeleteFunc(slices.Clone(p.Scopes), lost)
	return &left, true
}

// Change is what a record of the identity journal changes in what tokens and keys give: one of these.
type Change struct {
	Username string // a user, who is as Account says from now on
	Account  Account
	KID      string    // a signing key that is retired
	APIKey   scalar.ID // a key that is revoked
}

// Leaves returns what the change leaves a principal: the principal itself, one with fewer scopes, or nil.
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

// Identities is the state of the identity journal as far as requests need it.
type Identities interface {
	// PublicKey returns the key that verifies tokens with the given kid, unless it is retired.
	PublicKey(kid string) (ed25519.PublicKey, bool)
	// Account returns what there is about a user.
	Account(username string) (Account, bool)
	// APIKey returns the key whose secret has the SHA-256, unless it is revoked.
	APIKey(hash [sha256.Size]byte) (APIKey, bool)
}

// Auth authenticates requests.
type Auth struct {
	tokens   *Tokens
	limits   *limits
	answered *readYourWrites
}

// NewAuth makes the middleware's source. Tokens are judged by the verifier; users and their limits by its identities.
func NewAuth(tokens *Tokens) *Auth {
	return &Auth{tokens: tokens, limits: newLimits(tokens.now), answered: newReadYourWrites()}
}

// Tokens returns the verifier, for connections that authenticate by a message.
func (a *Auth) Tokens() *Tokens { return a.tokens }

// PrincipalOf returns the request's principal, nil on a route that needs none.
func PrincipalOf(c echo.Context) *Principal { return AskOf(c).Principal() }

// RateLimitOf returns the rate limit that a request counts towards; zero for none, and on a route that needs no token.
func RateLimitOf(c echo.Context) RateLimit { return notesOf(c).limit }

// Require lets a request pass whose token has at least one of the scopes: 401 without a good token, 403 without a
// scope. With no scope named any good token will do. It also applies the rate limit of the user or the key.
func (a *Auth) Require(scopes ...string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			private(c) // before anything can fail: no cache may keep a refusal either
			p, err := a.Authenticate(c)
			if err == nil {
				err = p.hasOneOf(scopes)
			}
			if err != nil {
				return err
			}
			return next(c)
		}
	}
}

// hasOneOf refuses a principal without any of the scopes, if there are some.
func (p *Principal) hasOneOf(scopes []string) error {
	if len(scopes) > 0 && !slices.ContainsFunc(scopes, p.Has) {
		return Forbidden("The token lacks the scope " + strings.Join(scopes, " or ") + ".")
	}
	return nil
}

// Authenticate reads the request's bearer token, applies the rate limit and sets the principal.
func (a *Auth) Authenticate(c echo.Context) (*Principal, error) {
	return a.admit(AskOf(c), bearer(c))
}

// bearer returns the request's bearer token, "" for none.
func bearer(c echo.Context) string {
	if headers := c.Request().Header[echo.HeaderAuthorization]; len(headers) == 1 {
		if scheme, token, _ := strings.Cut(headers[0], " "); strings.EqualFold(scheme, "Bearer") {
			return token
		}
	}
	return ""
}

// recognize has a public route wait for what the user of a good token or key was answered. It sets no principal and applies
// no rate limit, and a bad token is ignored.
func (a *Auth) recognize(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if token := bearer(c); token != "" {
			r := AskOf(c)
			if p, _, err := a.tokens.verify(token, r.client()); err == nil {
				r.answered = a.answered.of(p.Username)
			}
		}
		return next(c)
	}
}

// admit applies the rate limit of whose token or key it is, and sets the principal. Without a token it is "".
func (a *Auth) admit(r Ask, token string) (*Principal, error) {
	if token == "" {
		return nil, Unauthorized("A bearer token is required.")
	}
	address := ""
	if strings.HasPrefix(token, APIKeyPrefix) { // nothing else asks where a request comes from, and it takes time to find out
		address = r.client()
	}
	p, account, err := a.tokens.verify(token, address)
	if errors.Is(err, errNoAudience) {
		return nil, Unavailable("FENCE_UNKNOWN", "The node does not know yet which venue it is.", time.Second).Because(err)
	}
	if err != nil {
		return nil, Unauthorized("The bearer token is not valid.").Because(err)
	}
	r.principal, r.limit, r.answered = p, account.RateLimit, a.answered.of(p.Username)
	if r.counted { // by the node that passed it on
		return p, nil
	}
	return p, a.limits.take(r, p.Username, account.RateLimit)
}

// Charge counts a request that was let pass as so many more: each order of a batch is one, as if it had come alone.
func (a *Auth) Charge(r Ask, more int) {
	if more > 0 && r.principal != nil && !r.counted {
		a.limits.charge(r, r.principal.Username, r.limit, more)
	}
}
