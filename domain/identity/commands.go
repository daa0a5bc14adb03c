package identity

// The command types.
const (
	CommandRegisterBroker   = "broker.register"
	CommandRegisterUser     = "user.register"
	CommandChangeUser       = "user.change"
	CommandAddSigningKey    = "signing_key.add"
	CommandRetireSigningKey = "signing_key.retire"
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

// RetireSigningKey asks that a key, and every token signed with it, be refused.
type RetireSigningKey struct{ KID string }
