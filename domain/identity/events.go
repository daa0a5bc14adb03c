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

// BrokerRegistered says that a tenant exists from now on.
type BrokerRegistered struct{ Broker }

// EventType returns broker.registered.
func (*BrokerRegistered) EventType() string { return TypeBrokerRegistered }

// UserRegistered holds the whole new user.
type UserRegistered struct{ User }

// EventType returns user.registered.
func (*UserRegistered) EventType() string { return TypeUserRegistered }

// UserChanged holds the whole user as it is after the change.
type UserChanged struct{ User }

// EventType returns user.changed.
func (*UserChanged) EventType() string { return TypeUserChanged }

// SigningKeyAdded holds a new key. It is published at once.
type SigningKeyAdded struct{ SigningKey }

// EventType returns signing_key.added.
func (*SigningKeyAdded) EventType() string { return TypeSigningKeyAdded }

// SigningKeyRetired says that tokens signed with the key are refused from now on.
type SigningKeyRetired struct {
	KID     string      `json:"kid"`
	Retired scalar.Time `json:"retired"`
}

// EventType returns signing_key.retired.
func (*SigningKeyRetired) EventType() string { return TypeSigningKeyRetired }

// APIKeyCreated holds a new key: never its secret, only the hash.
type APIKeyCreated struct{ APIKey }

// EventType returns api_key.created.
func (*APIKeyCreated) EventType() string { return TypeAPIKeyCreated }

// APIKeyRevoked says that a key is refused from now on, and its sockets end.
type APIKeyRevoked struct {
	ID       scalar.ID   `json:"id"`
	Username string      `json:"username"`
	Revoked  scalar.Time `json:"revoked"`
}

// EventType returns api_key.revoked.
func (*APIKeyRevoked) EventType() string { return TypeAPIKeyRevoked }

// APIKeyUsed says that a key was used on a day. There is one for each key and day, at the first use that is known.
type APIKeyUsed struct {
	ID  scalar.ID   `json:"id"`
	Day scalar.Time `json:"day"` // its start, in UTC
}

// EventType returns api_key.used.
func (*APIKeyUsed) EventType() string { return TypeAPIKeyUsed }

// APIKeyLimited says that a key has a rate limit of its own from now on or, without one, counts towards its user's again.
type APIKeyLimited struct {
	ID        scalar.ID  `json:"id"`
	Username  string     `json:"username"`
	RateLimit *RateLimit `json:"rate_limit,omitempty"`
}

// EventType returns api_key.limited.
func (*APIKeyLimited) EventType() string { return TypeAPIKeyLimited }
