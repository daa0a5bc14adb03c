package trading

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// SessionOpened says that a connection was opened at whose end its orders are canceled.
type SessionOpened struct {
	Session scalar.ID `json:"session"`
	// Gateway is the process that holds the connection.
	Gateway  scalar.ID `json:"gateway"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"`
	// ExpiresAt is when all sessions of the gateway end unless it is heard of before.
	ExpiresAt scalar.Time `json:"expires_at"`
}

// EventType returns "session.opened".
func (*SessionOpened) EventType() string { return "session.opened" }

// EventVersion returns 1.
func (*SessionOpened) EventVersion() int { return 1 }

// GatewaySeen says that a process which holds sessions lives.
type GatewaySeen struct {
	Gateway   scalar.ID   `json:"gateway"`
	ExpiresAt scalar.Time `json:"expires_at"`
}

// EventType returns "gateway.seen".
func (*GatewaySeen) EventType() string { return "gateway.seen" }

// EventVersion returns 1.
func (*GatewaySeen) EventVersion() int { return 1 }

// GatewayLost says that nothing was heard of a process for too long, and all its sessions have ended.
type GatewayLost struct {
	Gateway scalar.ID `json:"gateway"`
}

// EventType returns "gateway.lost".
func (*GatewayLost) EventType() string { return "gateway.lost" }

// EventVersion returns 1.
func (*GatewayLost) EventVersion() int { return 1 }

// SessionEnded says that a connection has ended. Its orders end with it, those of the record first.
type SessionEnded struct {
	Session  scalar.ID `json:"session"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"`
	// Left counts the live orders of the session that the following steps cancel.
	Left int `json:"left"`
}

// EventType returns "session.ended".
func (*SessionEnded) EventType() string { return "session.ended" }

// EventVersion returns 1.
func (*SessionEnded) EventVersion() int { return 1 }

// SessionSwept says that orders of a session which has ended were canceled.
type SessionSwept struct {
	Session  scalar.ID `json:"session"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"`
	Left     int       `json:"left"`
}

// EventType returns "session.swept".
func (*SessionSwept) EventType() string { return "session.swept" }

// EventVersion returns 1.
func (*SessionSwept) EventVersion() int { return 1 }
