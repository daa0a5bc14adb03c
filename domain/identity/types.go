package identity

import (
	"slices"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The scopes of users and their tokens.
const (
	ScopeTrade      = "trade"
	ScopeRead       = "read"
	ScopeOnboarding = "onboarding"
	ScopeOperator   = "operator"
	ScopeAuditor    = "auditor"
)

// Scopes lists all scopes.
func Scopes() []string {
	return []string{ScopeTrade, ScopeRead, ScopeOnboarding, ScopeOperator, ScopeAuditor}
}

// Sealed is a ciphertext. Its JSON form is padded standard base64.
type Sealed []byte

// Broker is a tenant.
type Broker struct {
	Broker  string      `json:"broker"`
	Name    string      `json:"name"`
	Created scalar.Time `json:"created"`
}

// User is a person who can log in.
type User struct {
	Username string `json:"username"`
	Broker   string `json:"broker"`
	// CustomerCode confines the user's tokens to one account.
	CustomerCode string     `json:"customer_code,omitempty"`
	Scopes       []string   `json:"scopes"`
	IsActive     bool       `json:"is_active"`
	IsVerified   bool       `json:"is_verified"`
	RateLimit    *RateLimit `json:"rate_limit,omitempty"`
	// PasswordHash is an argon2id hash in PHC form, sealed with the username as owner.
	PasswordHash Sealed      `json:"password_hash"`
	Created      scalar.Time `json:"created"`
	Updated      scalar.Time `json:"updated"`
	// PasswordChanged is the time of the record that set PasswordHash. Older tokens are invalid.
	PasswordChanged scalar.Time `json:"-"`
}

func (u *User) clone() *User {
	c := *u
	c.Scopes, c.PasswordHash = slices.Clone(u.Scopes), slices.Clone(u.PasswordHash)
	c.RateLimit = cloneLimit(u.RateLimit)
	return &c
}

// Has reports whether the user has the scope.
func (u *User) Has(scope string) bool { return slices.Contains(u.Scopes, scope) }

// RateLimit allows PerSecond requests a second on average, and bursts of up to Burst requests.
type RateLimit struct {
	PerSecond int64 `json:"per_second"`
	Burst     int64 `json:"burst"`
}

// MaxRate is the greatest value of PerSecond and Burst.
const MaxRate = 1_000_000

// SigningKey is an Ed25519 key that signs access tokens.
type SigningKey struct {
	KID     string      `json:"kid"` // the RFC 7638 thumbprint of the key
	Public  []byte      `json:"public"`
	Private Sealed      `json:"private"` // the 32-byte seed, sealed with the kid as owner
	Created scalar.Time `json:"created"`
	Retired scalar.Time `json:"retired,omitzero"`
}

func (k *SigningKey) clone() *SigningKey {
	c := *k
	c.Public, c.Private = slices.Clone(k.Public), slices.Clone(k.Private)
	return &c
}
