// Package operation executes requests over any transport: it builds the command of a request and submits it to a journal, and
// it makes a read wait for the positions that the client must see.
//
//	func (h *Handler) cancelOrder(a operation.Request) (status int, _ operation.Appender, _ error) {
//		code, err := orderCode(a) // from the route
//		if err != nil {
//			return 0, nil, err
//		}
//		x, err := h.trading.Execute(a, &trading.CancelOrder{OrderCode: code})
//		if err != nil { // a refusal by the rules, or an error of the journal
//			return 0, nil, err
//		}
//		…
//	}
//
// A server fills the Scope of a request and gives it a Transport (package rest does so for HTTP and for calls inside the
// process). Start with operation.go and request.go; then read execute.go for commands, and read.go, follower.go and
// readyourwrites.go for reads.
package operation

import (
	"context"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/streams/record"
	"github.com/perpetua-exchange/perpetua/streams/trace"
)

// Request is a request to an Operation over any transport. It is valid until the operation returns.
type Request struct {
	*Scope
	transport Transport
}

// NewRequest returns the request that has a scope and arrived over a transport.
func NewRequest(s *Scope, t Transport) Request { return Request{s, t} }

// Scope holds what the server and the operation know about a request besides what its transport carries.
type Scope struct {
	ID        string // request ID
	Admission access.Admission
	// Answered records the position that the request is answered with. It is zero without a valid token or key.
	Answered Answered
	Spare    scalar.ID // generated together with the request ID, for a command; zero after use
	Address  string    // the client's address, of a call inside the process; otherwise empty
	Session  scalar.ID // session at whose end the request's orders are canceled, or zero
	Traced   trace.Request
	Problems []string // problem codes of the request's parts
	Failures []error  // server errors of the request's parts
}

// Transport is the transport of a request: HTTP, or a call inside the process, for example from a WebSocket.
type Transport interface {
	Context() context.Context
	// Route returns the method, the route and the names of the route's parameters.
	Route() (method, path string, parameters []string)
	// Parameter returns the unescaped value of a route parameter.
	Parameter(name string) string
	// Target returns the escaped path of the request.
	Target() string
	// Query returns the raw query string.
	Query() string
	// Keys returns the values of the Idempotency-Key headers, valid or not.
	Keys() []string
	// Least returns the values of the X-Min-Log-Position headers.
	Least() []string
	// Content returns the body. Its error is a *problem.Problem. The bytes MUST NOT be used after the operation returns.
	Content() ([]byte, error)
	// Absent returns an error unless the body is absent, empty or {}.
	Absent() error
	// Peer returns the address of the sender.
	Peer() string
	// Header returns the response header, or nil if the transport has none.
	Header() http.Header
	// AnswerAt sets the log position of the response.
	AnswerAt(p record.LogPosition)
	// AnswerAtAll sets the positions of a response that combines several journals.
	AnswerAtAll(all []record.LogPosition)
}

// Operation executes a request that may arrive over several transports. It returns a status and a response, or an
// error.
type Operation func(a Request) (status int, answer Appender, err error)

// An Appender has a handwritten JSON encoder.
type Appender interface {
	AppendJSON(b []byte) ([]byte, error)
}

// Context returns the request's context.
func (a Request) Context() context.Context { return a.transport.Context() }

// Client returns the client's address.
func (a Request) Client() string {
	if a.Address != "" {
		return a.Address
	}
	return a.transport.Peer()
}

// Route returns the method, the route and the names of the route's parameters.
func (a Request) Route() (method, path string, parameters []string) { return a.transport.Route() }

// Target returns the escaped path of the request.
func (a Request) Target() string { return a.transport.Target() }

// Header returns the response header, or nil if the transport has none.
func (a Request) Header() http.Header { return a.transport.Header() }

// Principal returns the authenticated principal, or nil on a route that needs no token.
func (a Request) Principal() *access.Principal { return a.Admission.Principal }

// Param returns a route parameter, unescaped and sanitized. Control characters and invalid UTF-8, which no code can
// contain, are replaced, so the parameter matches nothing and is safe to log and store.
func (a Request) Param(name string) string { return sanitize(a.transport.Parameter(name)) }

// Content returns the body, which should be JSON, for operations with their own parser. Its error is a *problem.Problem.
// The bytes MUST NOT be used after the operation returns.
func (a Request) Content() ([]byte, error) { return a.transport.Content() }

// sanitize replaces control characters and invalid UTF-8.
func sanitize(v string) string {
	if plain(v) {
		return v
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(v, string(utf8.RuneError)))
}

// plain reports whether s is ASCII without control characters.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
