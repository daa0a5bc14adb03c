package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands with which nodes report the sessions of their connections. The orders of a session are canceled when it
// ends.
const (
	CommandOpenSession = "session.open" // *OpenSession
	CommandKeepGateway = "gateway.keep" // *KeepGateway
	CommandEndSession  = "session.end"  // *EndSession
)

// OpenSession opens a session of a user. Orders that are placed with its id (decide.Metadata.Session) are canceled when the
// session ends, which it also does when its gateway sends no KeepGateway for 15 seconds.
//
// Event: session.opened. Refusals: Forbidden unless the actor is a node; Conflict SESSION_TAKEN.
type OpenSession struct {
	Session  scalar.ID
	Gateway  scalar.ID // the node's process
	Username string
	Broker   string
}

// CommandType returns the type of the command.
func (*OpenSession) CommandType() string { return CommandOpenSession }

// KeepGateway reports that a gateway is alive.
//
// Event: gateway.seen. Refusals: Forbidden; NotFound UNKNOWN_GATEWAY if the gateway has no sessions.
type KeepGateway struct{ Gateway scalar.ID }

// CommandType returns the type of the command.
func (*KeepGateway) CommandType() string { return CommandKeepGateway }

// EndSession reports that a session's connection has closed. The session's live orders are canceled, in steps if they
// are too many for one record.
//
// Events: session.ended, order.canceled…. Refusals: Forbidden, NotFound UNKNOWN_SESSION.
type EndSession struct{ Session scalar.ID }

// CommandType returns the type of the command.
func (*EndSession) CommandType() string { return CommandEndSession }
