package identity

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// The event types.
const (
	TypeBrokerRegistered  = "broker.registered"
	TypeUserRegistered    = "user.registered"
	TypeUserChanged       = "user.changed"
	TypeSigningKeyAdded   = "signing_key.added"
	TypeSigningKeyRetired = "signing_key.retired"
)

// BrokerRegistered says that a tenant exists from now on.
type BrokerRegistered struct{ Broker }

// EventType returns broker.registered.
func (*BrokerRegistered) EventType() string { return TypeBrokerRegistered }

// EventVersion returns 1.
func (*BrokerRegistered) EventVersion() int { return 1 }

// UserRegistered holds the whole new user.
type UserRegistered struct{ User }

// EventType returns user.registered.
func (*UserRegistered) EventType() string { return TypeUserRegistered }

// EventVersion returns 1.
func (*UserRegistered) EventVersion() int { return 1 }

// UserChanged holds the whole user as it is after the change.
type UserChanged struct{ User }

// EventType returns user.changed.
func (*UserChanged) EventType() string { return TypeUserChanged }

// EventVersion returns 1.
func (*UserChanged) EventVersion() int { return 1 }

// SigningKeyAdded holds a new key. It is published at once.
type SigningKeyAdded struct{ SigningKey }

// EventType returns signing_key.added.
func (*SigningKeyAdded) EventType() string { return TypeSigningKeyAdded }

// EventVersion returns 1.
func (*SigningKeyAdded) EventVersion() int { return 1 }

// SigningKeyRetired says that tokens signed with the key are refused from now on.
type SigningKeyRetired struct {
	KID     string      `json:"kid"`
	Retired scalar.Time `json:"retired"`
}

// EventType returns signing_key.retired.
func (*SigningKeyRetired) EventType() string { return TypeSigningKeyRetired }

// EventVersion returns 1.
func (*SigningKeyRetired) EventVersion() int { return 1 }
