package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The commands by which nodes tell of connections whose orders are canceled at their end.
const (
	CommandOpenSession = "session.open" // *OpenSession
	CommandKeepGateway = "gateway.keep" // *KeepGateway
	CommandEndSession  = "session.end"  // *EndSession
)

// OpenSession opens a session of a user. Orders that are placed with its id (decide.Kept.Session) are canceled when it
// ends, or when nothing is heard of its gateway for 15 seconds.
//
// Event: session.opened. Refusals: Forbidden for whom is no node, Conflict SESSION_TAKEN.
type OpenSession struct {
	Session  scalar.ID
	Gateway  scalar.ID // the node's process
	Username string
	Broker   string
}

// CommandType returns the type of the command.
func (*OpenSession) CommandType() string { return CommandOpenSession }

func (p *OpenSession) decide(s *State, at decide.Stamp, c decide.Command) (decide.Decision, error) {
	return s.openSession(at, c, p)
}

// KeepGateway says that a gateway lives.
//
// Event: gateway.seen. Refusals: Forbidden, NotFound UNKNOWN_GATEWAY for one without sessions.
type KeepGateway struct{ Gateway scalar.ID }

// CommandType returns the type of the command.
func (*KeepGateway) CommandType() string { return CommandKeepGateway }

func (p *KeepGateway) decide(s *State, at decide.Stamp, c decide.Command) (decide.Decision, error) {
	return s.keepGateway(at, c, p)
}

// EndSession says that a session's connection is gone: the orders that were placed over it and are live are canceled, in
// steps if they are many.
//
// Events: session.ended, order.canceled…. Refusals: Forbidden, NotFound UNKNOWN_SESSION.
type EndSession struct{ Session scalar.ID }

// CommandType returns the type of the command.
func (*EndSession) CommandType() string { return CommandEndSession }

func (p *EndSession) decide(s *State, at decide.Stamp, c decide.Command) (decide.Decision, error) {
	return s.endSession(at, c, p)
}
