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

// payload is the content of a command of this journal. It names its command type, checks the actor and decides the
// command.
type payload interface {
	decide.Payload
	// permit returns a refusal if the actor may not give the command.
	permit(s *State, a decide.Actor) error
	decide(s *State, at decide.Stamp, a decide.Actor) ([]decide.Event, error)
}

// one wraps the only event of a decision in a slice, or passes the refusal on.
func one(e decide.Event, err error) ([]decide.Event, error) {
	if err != nil {
		return nil, err
	}
	return []decide.Event{e}, nil
}

// Payloads returns the payloads of all commands of the journal.
func Payloads() *decide.Payloads {
	return decide.NewPayloads(
		decide.NewPayload[RegisterBroker],
		decide.NewPayload[RegisterUser],
		decide.NewPayload[ChangeUser],
		decide.NewPayload[AddSigningKey],
		decide.NewPayload[RetireSigningKey],
		decide.NewPayload[ReplaceSigningKeys],
		decide.NewPayload[CreateAPIKey],
		decide.NewPayload[RevokeAPIKey],
		decide.NewPayload[UseAPIKey],
		decide.NewPayload[LimitAPIKey],
	)
}

// RegisterBroker asks to register a tenant.
type RegisterBroker struct {
	Broker string
	Name   string
}

// CommandType returns the type of the command.
func (*RegisterBroker) CommandType() string { return CommandRegisterBroker }

func (*RegisterBroker) permit(s *State, a decide.Actor) error { return s.onlyOperators(a) }

func (p *RegisterBroker) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.registerBroker(at, p))
}

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

func (*RegisterUser) permit(s *State, a decide.Actor) error { return s.onlyOperators(a) }

func (p *RegisterUser) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.registerUser(at, p))
}

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

func (*ChangeUser) permit(s *State, a decide.Actor) error { return s.onlyOperators(a) }

func (p *ChangeUser) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.changeUser(at, p))
}

// AddSigningKey asks to add a signing key.
type AddSigningKey struct {
	KID     string
	Public  []byte
	Private Sealed
}

// CommandType returns the type of the command.
func (*AddSigningKey) CommandType() string { return CommandAddSigningKey }

func (*AddSigningKey) permit(s *State, a decide.Actor) error { return s.onlyOperators(a) }

func (p *AddSigningKey) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.addSigningKey(at, p))
}

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

func (*CreateAPIKey) permit(s *State, a decide.Actor) error { return s.onlyUsers(a) }

func (p *CreateAPIKey) decide(s *State, at decide.Stamp, a decide.Actor) ([]decide.Event, error) {
	return one(s.createAPIKey(at, a, p))
}

// RevokeAPIKey asks to revoke a key of the user who gives the command.
type RevokeAPIKey struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*RevokeAPIKey) CommandType() string { return CommandRevokeAPIKey }

func (*RevokeAPIKey) permit(s *State, a decide.Actor) error { return s.onlyUsers(a) }

func (p *RevokeAPIKey) decide(s *State, at decide.Stamp, a decide.Actor) ([]decide.Event, error) {
	return one(s.revokeAPIKey(at, a, p))
}

// UseAPIKey reports that a key was used on the day of the command's record.
type UseAPIKey struct{ ID scalar.ID }

// CommandType returns the type of the command.
func (*UseAPIKey) CommandType() string { return CommandUseAPIKey }

func (*UseAPIKey) permit(s *State, a decide.Actor) error { return s.onlySystem(a) }

func (p *UseAPIKey) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.useAPIKey(at, p))
}

// LimitAPIKey asks for a rate limit of a user's key, in place of the user's limit.
type LimitAPIKey struct {
	Username  string
	ID        scalar.ID
	RateLimit *RateLimit // nil: the user's limit applies
}

// CommandType returns the type of the command.
func (*LimitAPIKey) CommandType() string { return CommandLimitAPIKey }

func (*LimitAPIKey) permit(s *State, a decide.Actor) error { return s.onlyOperators(a) }

func (p *LimitAPIKey) decide(s *State, _ decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.limitAPIKey(p))
}

// RetireSigningKey asks to retire a signing key. All tokens that it signed become invalid.
type RetireSigningKey struct{ KID string }

// CommandType returns the type of the command.
func (*RetireSigningKey) CommandType() string { return CommandRetireSigningKey }

func (*RetireSigningKey) permit(s *State, a decide.Actor) error { return s.onlyOperators(a) }

func (p *RetireSigningKey) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	return one(s.retireSigningKey(at, p))
}

// ReplaceSigningKeys adds a signing key and retires every other one in the same record. A copy of a venue replaces the
// keys that it shares with the original.
//
// Events: signing_key.added, then signing_key.retired for each key that was in use. Refusals: Invalid; Conflict
// SIGNING_KEY_TAKEN.
type ReplaceSigningKeys struct{ AddSigningKey }

// CommandType returns the type of the command.
func (*ReplaceSigningKeys) CommandType() string { return CommandReplaceKeys }

func (*ReplaceSigningKeys) permit(s *State, a decide.Actor) error { return s.onlySystem(a) }

func (p *ReplaceSigningKeys) decide(s *State, at decide.Stamp, _ decide.Actor) ([]decide.Event, error) {
	events, err := one(s.addSigningKey(at, &p.AddSigningKey))
	if err != nil {
		return nil, err
	}
	for _, k := range s.Keys() {
		events = append(events, &SigningKeyRetired{KID: k.KID, Retired: at.Time})
	}
	return events, nil
}
