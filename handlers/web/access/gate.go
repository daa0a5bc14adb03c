package access

import (
	"errors"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Gate admits requests: Check verifies a token, and Take applies the rate limit of the user or key.
type Gate struct {
	tokens *Tokens
	limits *limits
}

// NewGate returns a Gate that verifies tokens with the given verifier.
func NewGate(tokens *Tokens) *Gate { return &Gate{tokens: tokens, limits: newLimits(tokens.now, 0)} }

// Admission describes the sender of an admitted request. Without a Principal, it has no more than the limit of the client's
// network.
type Admission struct {
	Principal *Principal
	Judged    int64     // sequence of the identity fold before the principal was authorized
	Limit     RateLimit // the limit that the request counts towards
}

// Check verifies a token or API key that was sent from an address. token is "" if there is none; the address matters for API keys
// only. The error is a problem.
func (g *Gate) Check(token, address string) (Admission, error) {
	if token == "" {
		return Admission{}, problem.Unauthorized("A bearer token is required.")
	}
	judged := g.tokens.sequence()
	p, account, err := g.tokens.verify(token, address)
	if err != nil {
		return Admission{}, Refused(err)
	}
	return Admission{p, judged, account.RateLimit}, nil
}

// Take applies the rate limit to a checked request and sets the RateLimit headers in h, which may be nil. The error is a problem.
func (g *Gate) Take(h http.Header, a Admission) error {
	return g.limits.take(h, nameOf(a.Principal.Username, a.Limit), a.Limit, false)
}

// TakeQuietly is Take for a response that a cache may keep. It sets the headers only if it returns an error. For other responses,
// call Charge with 0 to set them.
func (g *Gate) TakeQuietly(h http.Header, a Admission) error {
	return g.limits.take(h, nameOf(a.Principal.Username, a.Limit), a.Limit, true)
}

// Early tells a client that its token is genuine and was issued later than the node's clock says.
const Early = "The bearer token was issued later than the clock of this node says. Log in at this node, or send the token again later."

// IsEarly reports whether Tokens.Verify refused a genuine token because it was issued later than the node's clock says.
func IsEarly(err error) bool { return errors.Is(err, errEarly) }

// Refused returns the problem for an error of Tokens.Verify. The text of that error is for the log only.
func Refused(err error) *problem.Problem {
	switch {
	case errors.Is(err, errStarting):
		return problem.Unavailable("NOT_READY", "The node is starting and has not read all users and keys yet.", time.Second).Because(err)
	case errors.Is(err, errNoAudience):
		return problem.Unavailable("FENCE_UNKNOWN", "The node does not know yet which venue it is.", time.Second).Because(err)
	case errors.Is(err, ErrKeysRefused):
		return problem.Unauthorized("This node takes no API keys, because it cannot record their use. Log in at the venue and send the token.").Because(err)
	case IsEarly(err):
		return problem.Unauthorized(Early).Because(err)
	}
	return problem.Unauthorized("The bearer token is not valid.").Because(err)
}

// Charge counts an admitted request as more additional ones, or as none, and sets the RateLimit headers in h, which may be nil.
func (g *Gate) Charge(h http.Header, a Admission, more int) {
	if a.Principal != nil {
		g.limits.charge(h, nameOf(a.Principal.Username, a.Limit), a.Limit, more)
	}
}
