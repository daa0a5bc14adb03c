package trading

import "github.com/perpetua-exchange/perpetua/domain/scalar"

// SessionOpened says that a session was opened. Its orders are canceled when its connection closes.
type SessionOpened struct {
	Session scalar.ID `json:"session"`
	// Gateway is the process that has the connection.
	Gateway  scalar.ID `json:"gateway"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"`
	// ExpiresAt is when all sessions of the gateway end, unless the gateway reports before that.
	ExpiresAt scalar.Time `json:"expires_at"`
}

// EventType returns "session.opened".
func (*SessionOpened) EventType() string { return "session.opened" }

// GatewaySeen says that a process with sessions is alive.
type GatewaySeen struct {
	Gateway   scalar.ID   `json:"gateway"`
	ExpiresAt scalar.Time `json:"expires_at"`
}

// EventType returns "gateway.seen".
func (*GatewaySeen) EventType() string { return "gateway.seen" }

// GatewayLost says that a process did not report in time, and that all its sessions have ended.
type GatewayLost struct {
	Gateway scalar.ID `json:"gateway"`
}

// EventType returns "gateway.lost".
func (*GatewayLost) EventType() string { return "gateway.lost" }

// SessionEnded says that a session has ended. Its orders are canceled: the first ones in this record.
type SessionEnded struct {
	Session  scalar.ID `json:"session"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"`
	// Left is the number of the session's live orders that later steps cancel.
	Left int `json:"left"`
}

// EventType returns "session.ended".
func (*SessionEnded) EventType() string { return "session.ended" }

// SessionSwept says that a step canceled orders of a session that has ended.
type SessionSwept struct {
	Session  scalar.ID `json:"session"`
	Username string    `json:"username"`
	Broker   string    `json:"broker"`
	Left     int       `json:"left"`
}

// EventType returns "session.swept".
func (*SessionSwept) EventType() string { return "session.swept" }
