package rest

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
)

// anonymous limits the requests that no user answers for, and counts the others towards their users' limits.
type anonymous struct {
	auth      *Auth            // nil: nothing is counted
	networks  *access.Networks // nil: not limited
	unlimited []string         // routes
}

// LimitAnonymous makes the server count each request without a valid token or API key towards the limit of the client's network,
// and answer 429 if that is exhausted. Guesses of a token or key count too, and so do requests for paths that do not exist. A
// request with a valid token or key is never refused because of the network it came from: it counts towards the limit of the user
// or key instead, on every route. Probes, metrics, and the unlimited routes are not limited, and neither are the preflight requests
// of browsers and the requests that a follower refuses: a 429 would cost as much as the answer. LimitAnonymous MUST be called before
// the first request. networks may be nil.
func (s *Server) LimitAnonymous(auth *Auth, networks *access.Networks, unlimited ...string) {
	s.anonymous = anonymous{auth, networks, slices.Concat(probes, unlimited)}
}

// probes lists the routes that a node's supervisors request.
var probes = []string{"/healthz", "/readyz", "/metrics"}

// count counts a request with a valid token or key towards the limit of the user or key, and another one towards the limit of the
// client's network. If the network's is exhausted and the node cannot verify the token yet, because it is starting, the error is the
// 503 that says so: the token may be valid.
func (a *anonymous) count(c echo.Context) (err error) {
	if a.auth == nil || slices.Contains(a.unlimited, c.Path()) {
		return nil
	}
	r := RequestOf(c)
	headers, unverified := r.Header(), error(nil)
	if token := bearer(c); token != "" {
		verified, invalid := a.auth.check(c, r, token)
		if invalid == nil {
			return a.auth.count(c, r, verified)
		}
		if problem.Of(invalid).Status == http.StatusServiceUnavailable {
			headers, unverified = nil, invalid
		}
	}
	if a.networks == nil {
		return nil
	}
	r.Admission.Limit, err = a.networks.Take(headers, r.Client())
	if err != nil && unverified != nil {
		return unverified
	}
	return err
}
