package identity

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// The command types.
const (
	CommandRegisterBroker   = "broker.register"
	CommandRegisterUser     = "user.register"
	CommandChangeUser       = "user.change"
	CommandAddSigningKey    = "signing_key.add"
	CommandRetireSigningKey = "signing_key.retire"
	CommandCreateAPIKey     = "api_key.create"
	CommandRevokeAPIKey     = "api_key.revoke"
	CommandUseAPIKey        = "api_key.use"
)

// RegisterBroker asks for a new tenant.
type RegisterBroker struct {
	Broker string
	Name   string
}

// RegisterUser asks for a new user of a broker.
type RegisterUser struct {
	Username     string
	Broker       string
	CustomerCode string // optional
	Scopes       []string
	IsActive     bool
	IsVerified   bool
	RateLimit    *RateLimit // nil: none
	PasswordHash Sealed
}

// ChangeUser asks for another form of a user. What is nil stays as it is.
type ChangeUser struct {
	Username       string
	CustomerCode   *string // empty: none any more
	Scopes         []string
	IsActive       *bool
	IsVerified     *bool
	RateLimit      *RateLimit
	ClearRateLimit bool
	PasswordHash   Sealed
}

// AddSigningKey asks for a further key.
type AddSigningKey struct {
	KID     string
	Public  []byte
	Private Sealed
}

// CreateAPIKey asks for a key of the user who gives the command.
type CreateAPIKey struct {
	Name         string
	Prefix       string // of the secret
	Hash         []byte // SHA-256 of the secret
	Scopes       []string
	CustomerCode string      // optional
	IPAllowList  []string    // optional
	ExpiresAt    scalar.Time // zero: never
}

// RevokeAPIKey asks that a key of the user who gives the command be refused from now on.
type RevokeAPIKey struct{ ID scalar.ID }

// UseAPIKey tells that a key was used on the day of the command's record.
type UseAPIKey struct{ ID scalar.ID }

// RetireSigningKey asks that a key, and every token signed with it, be refused.
type RetireSigningKey struct{ KID string }
