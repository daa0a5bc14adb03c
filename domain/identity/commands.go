package identity

import "github.com/perpetua-exchange/perpetua/domain/decide"

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// The command types.
const (
	CommandRegisterBroker   = "broker.register"
	CommandRegisterUser     = "user.register"
	CommandChangeUser       = "user.change"
	CommandAddSigningKey    = "signing_key.add"
	CommandRetireSigningKey = "signing_key.retire"
	CommandReplaceKeys      = "signing_key.replace"
	CommandCreateAPIKey     = "api_key.create"
	CommandRevokeAPIKey     = "api_key.revoke"
	CommandUseAPIKey        = "api_key.use"
	CommandLimitAPIKey      = "api_key.limit"
)

// Payloads returns the payloads of all commands of the journal.
func Payloads() *decide.Payloads { return commandTable.Payloads() }

// commandTable is the table of the journal's commands.
var commandTable = decide.NewCommands(
	decide.Handle(request.registerBroker),
	decide.Handle(request.registerUser),
	decide.Handle(request.changeUser),
	decide.Handle(request.addSigningKey),
	decide.Handle(request.retireSigningKey),
	decide.Handle(request.replaceSigningKeys),
	decide.Handle(request.createAPIKey),
	decide.Handle(request.revokeAPIKey),
	decide.Handle(request.useAPIKey),
	decide.Handle(request.limitAPIKey),
)

// RegisterBroker asks to register a tenant.
type RegisterBroker struct {
	Broker string
	Name   string
}

// CommandType returns the type of the command.
func (*RegisterBroker) CommandType() string { return CommandRegisterBroker }

// RegisterUser asks to register a user of a broker.
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

// CommandType returns the type of the command.
func (*RegisterUser) CommandType() string { return CommandRegisterUser }

// ChangeUser asks to change a user. Members that are nil stay unchanged.
type ChangeUser struct {
	Username       string
	CustomerCode   *string // empty: remove it
	Scopes         []string
	IsActive       *bool
	IsVerified     *bool
	RateLimit      *RateLimit
	ClearRateLimit bool
	PasswordHash   Sealed
}

// CommandType returns the type of the command.
func (*ChangeUser) CommandType() string { return CommandChangeUser }

// AddSigningKey asks to add a signing key.
type AddSigningKey struct {
	KID     string
	Public  []byte
	Private Sealed
}

// CommandType returns the type of the command.
func (*AddSigningKey) CommandType() string { return CommandAddSigningKey }

// CreateAPIKey asks for an API key for the user who gives the command.
type CreateAPIKey struct {
	Name         string
	Prefix       string // of the secret
	Hash         []byte // SHA-256 of the secret
	Scopes       []string
	CustomerCode string      // optional
	IPAllowList  []string    // optional
	ExpiresAt    scalar.Time // zero: never
}

// CommandType returns the type of the command.
func (*CreateAPIKey) CommandType() string { return CommandCreateAPIKey }

// RevokeAPIKey asks to revoke a key of the user who gives the command.
type RevokeAPIKey struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*RevokeAPIKey) CommandType() string { return CommandRevokeAPIKey }

// UseAPIKey reports that a key was used on the day of the command's record.
type UseAPIKey struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*UseAPIKey) CommandType() string { return CommandUseAPIKey }

// LimitAPIKey asks for a rate limit of a user's key, in place of the user's limit.
type LimitAPIKey struct {
	Username  string
	ID        scalar.ID
	RateLimit *RateLimit // nil: the user's limit applies
}

// CommandType returns the type of the command.
func (*LimitAPIKey) CommandType() string { return CommandLimitAPIKey }

// RetireSigningKey asks to retire a signing key. All tokens that it signed become invalid.
type RetireSigningKey struct{ KID string }

// CommandType returns the type of the command.
func (*RetireSigningKey) CommandType() string { return CommandRetireSigningKey }

// ReplaceSigningKeys adds a signing key and retires every other one in the same record. A copy of a venue replaces the
// keys that it shares with the original.
//
// Events: signing_key.added, then signing_key.retired for each key that was in use. Refusals: Invalid; Conflict
// SIGNING_KEY_TAKEN.
type ReplaceSigningKeys struct{ AddSigningKey }

// CommandType returns the type of the command.
func (*ReplaceSigningKeys) CommandType() string { return CommandReplaceKeys }
