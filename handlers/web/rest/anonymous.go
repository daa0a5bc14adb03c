package rest

import (
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
)

// anonymous limits the requests that no user answers for.
type anonymous struct {
	auth      *Auth
	networks  *access.Networks // nil: not limited
	unlimited []string         // routes
}

// LimitAnonymous makes the server count each request without a valid token or API key towards the limit of the client's network,
// and answer 429 if that is exhausted. Guesses of a token or key count too, and so do requests for paths that do not exist. A
// request with a valid token or key is never refused because of the network it came from. Probes, metrics, and the unlimited routes
// are not limited, and neither are the preflight requests of browsers: a refusal would cost as much as the answer. LimitAnonymous MUST
// be called before the first request. networks may be nil.
func (s *Server) LimitAnonymous(auth *Auth, networks *access.Networks, unlimited ...string) {
	s.anonymous = anonymous{auth, networks, slices.Concat(probes, unlimited)}
}

// probes lists the routes that a node's supervisors request.
var probes = []string{"/healthz", "/readyz", "/metrics"}

// guard returns a handler that counts requests.
func (a *anonymous) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := a.count(c); err != nil {
			return err
		}
		return next(c)
	}
}

// count counts a request unless it has a valid token or key.
func (a *anonymous) count(c echo.Context) error {
	if slices.Contains(a.unlimited, c.Path()) {
		return nil
	}
	r := RequestOf(c)
	if token := bearer(c); token != "" {
		if _, err := a.auth.check(c, r, token); err == nil {
			return nil
		}
	}
	var err error
	r.Admission.Limit, err = a.networks.Take(r.Header(), r.Client())
	return err
}
