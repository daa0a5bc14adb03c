package rest

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// rateLimit counts requests towards the limits of users, API keys, and networks.
type rateLimit struct {
	auth      *Auth            // nil: nothing is counted
	networks  *access.Networks // nil: not limited
	unlimited []string         // routes
}

// LimitRequests makes the server count each request without a valid token or API key towards the limit of the client's network,
// and answer 429 if that is exhausted. Guesses of a token or key count too, and so do requests for paths that do not exist. A
// request with a valid token or key is never refused because of the network it came from: it counts towards the limit of the user
// or key instead, on every route. Probes, metrics, and the unlimited routes are not limited, and neither are the preflight requests
// of browsers and the requests that a follower refuses: a 429 would cost as much as the answer. LimitRequests MUST be called before
// the first request. networks may be nil.
func (s *Server) LimitRequests(auth *Auth, networks *access.Networks, unlimited ...string) {
	s.rateLimit = rateLimit{auth, networks, slices.Concat(probes, unlimited)}
}

// probes lists the routes that a node's supervisors request.
var probes = []string{"/healthz", "/readyz", "/metrics"}

// count counts a request with a valid token or key towards the limit of the user or key, and another one towards the limit of the
// client's network. If the network's is exhausted and the node cannot verify the token yet, because it is starting, the error is the
// 503 that says so: the token may be valid.
func (l *rateLimit) count(c echo.Context) (err error) {
	if l.auth == nil || slices.Contains(l.unlimited, c.Path()) {
		return nil
	}
	r := RequestOf(c)
	headers, unverified := r.Header(), error(nil)
	if token := bearer(c); token != "" {
		verified, invalid := l.auth.check(c, r, token)
		if invalid == nil {
			return l.auth.count(c, r, verified)
		}
		if problem.Of(invalid).Status == http.StatusServiceUnavailable {
			headers, unverified = nil, invalid
		}
	}
	if l.networks == nil {
		return nil
	}
	r.Admission.Limit, err = l.networks.Take(headers, r.Client())
	if err != nil && unverified != nil {
		return unverified
	}
	return err
}
