package access

import (
	"errors"
	"net/http"
	"time"

	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// Gate admits requests: it verifies their tokens and applies the rate limits.
type Gate struct {
	tokens *Tokens
	limits *limits
}

// NewGate returns a Gate that verifies tokens with the given verifier.
func NewGate(tokens *Tokens) *Gate { return &Gate{tokens: tokens, limits: newLimits(tokens.now)} }

// Admission describes the sender of an admitted request. It is zero on a route that needs no token.
type Admission struct {
	Principal *Principal
	Judged    int64     // sequence of the identity fold before the principal was authorized
	Limit     RateLimit // the limit that the request counts towards
}

// Admit verifies a token or API key that was sent from an address and applies the rate limit. token is "" if there is
// none; the address matters for API keys only. Admit sets the RateLimit headers in h, which may be nil. With the error of
// an exhausted limit, it returns the admission too.
func (g *Gate) Admit(token, address string, h http.Header) (Admission, error) {
	if token == "" {
		return Admission{}, problem.Unauthorized("A bearer token is required.")
	}
	judged := g.tokens.sequence()
	starting := g.tokens.starting != nil && g.tokens.starting() // before the token is looked at
	p, account, err := g.tokens.verify(token, address)
	if err != nil && starting && !errors.Is(err, errNoAudience) && !errors.Is(err, ErrKeysRefused) {
		return Admission{}, problem.Unavailable("NOT_READY", "The node is starting and has not read all users and keys yet.", time.Second).Because(err)
	}
	if err != nil {
		return Admission{}, Refused(err)
	}
	return Admission{p, judged, account.RateLimit}, g.limits.take(h, p.Username, account.RateLimit)
}

// Refused returns the problem for an error of Verify.
func Refused(err error) *problem.Problem {
	switch {
	case errors.Is(err, errNoAudience):
		return problem.Unavailable("FENCE_UNKNOWN", "The node does not know yet which venue it is.", time.Second).Because(err)
	case errors.Is(err, ErrKeysRefused):
		return problem.Unauthorized("This node takes no API keys, because it cannot record their use. Log in at the venue and send the token.").Because(err)
	}
	return problem.Unauthorized("The bearer token is not valid.").Because(err)
}

// Verify returns the principal of a token or API key without applying the rate limit. Refused makes its errors problems for clients;
// their texts are for the log only.
func (g *Gate) Verify(token, address string) (*Principal, error) {
	return g.tokens.Verify(token, address)
}

// Charge counts an admitted request as more additional ones and sets the RateLimit headers in h, which may be nil.
func (g *Gate) Charge(h http.Header, a Admission, more int) {
	if more > 0 && a.Principal != nil {
		g.limits.charge(h, a.Principal.Username, a.Limit, more)
	}
}
