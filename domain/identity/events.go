package identity

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// The event types.
const (
	TypeBrokerRegistered  = "broker.registered"
	TypeUserRegistered    = "user.registered"
	TypeUserChanged       = "user.changed"
	TypeSigningKeyAdded   = "signing_key.added"
	TypeSigningKeyRetired = "signing_key.retired"
	TypeAPIKeyCreated     = "api_key.created"
	TypeAPIKeyRevoked     = "api_key.revoked"
	TypeAPIKeyUsed        = "api_key.used"
	TypeAPIKeyLimited     = "api_key.limited"
)

// BrokerRegistered says that a tenant was registered.
type BrokerRegistered struct{ Broker }

// EventType returns broker.registered.
func (*BrokerRegistered) EventType() string { return TypeBrokerRegistered }

// UserRegistered contains the complete new user.
type UserRegistered struct{ User }

// EventType returns user.registered.
func (*UserRegistered) EventType() string { return TypeUserRegistered }

// UserChanged contains the complete user after the change.
type UserChanged struct{ User }

// EventType returns user.changed.
func (*UserChanged) EventType() string { return TypeUserChanged }

// SigningKeyAdded contains a new signing key. Its public part is published immediately.
type SigningKeyAdded struct{ SigningKey }

// EventType returns signing_key.added.
func (*SigningKeyAdded) EventType() string { return TypeSigningKeyAdded }

// SigningKeyRetired says that tokens signed with the key are no longer accepted.
type SigningKeyRetired struct {
	KID     string      `json:"kid"`
	Retired scalar.Time `json:"retired"`
}

// EventType returns signing_key.retired.
func (*SigningKeyRetired) EventType() string { return TypeSigningKeyRetired }

// APIKeyCreated contains a new key. It has the hash of the secret, never the secret.
type APIKeyCreated struct{ APIKey }

// EventType returns api_key.created.
func (*APIKeyCreated) EventType() string { return TypeAPIKeyCreated }

// APIKeyRevoked says that the key is no longer accepted. Its open sockets are closed.
type APIKeyRevoked struct {
	ID       scalar.ID   `json:"id"`
	Username string      `json:"username"`
	Revoked  scalar.Time `json:"revoked"`
}

// EventType returns api_key.revoked.
func (*APIKeyRevoked) EventType() string { return TypeAPIKeyRevoked }

// APIKeyUsed says that a key was used on a day. There is one event for each key and day, for the first reported use.
type APIKeyUsed struct {
	ID  scalar.ID   `json:"id"`
	Day scalar.Time `json:"day"` // the start of the day, in UTC
}

// EventType returns api_key.used.
func (*APIKeyUsed) EventType() string { return TypeAPIKeyUsed }

// APIKeyLimited sets the rate limit of a key. Without a limit, the key counts toward the user's limit again.
type APIKeyLimited struct {
	ID        scalar.ID  `json:"id"`
	Username  string     `json:"username"`
	RateLimit *RateLimit `json:"rate_limit,omitempty"`
}

// EventType returns api_key.limited.
func (*APIKeyLimited) EventType() string { return TypeAPIKeyLimited }
