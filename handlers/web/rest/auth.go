package rest

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/operation"
)

// Auth admits the requests of routes (see access.Gate) and records the positions that they are answered with.
type Auth struct {
	gate     *access.Gate
	answered *operation.ReadYourWrites
}

// NewAuth returns an Auth that verifies tokens with the given verifier.
func NewAuth(tokens *access.Tokens) *Auth {
	return &Auth{gate: access.NewGate(tokens), answered: operation.NewReadYourWrites()}
}

// ReadsFrom sets the sources of reads for each journal (see operation.ReadYourWrites.ReadsFrom).
func (a *Auth) ReadsFrom(sources map[string][]operation.Positioned) { a.answered.ReadsFrom(sources) }

// AwaitAnswered is operation.ReadYourWrites.AwaitAnswered.
func (a *Auth) AwaitAnswered(ctx context.Context, username, journal string, source operation.Waiter) {
	a.answered.AwaitAnswered(ctx, username, journal, source)
}

// Require returns middleware that accepts requests if the token has at least one of the scopes. Without scopes, every
// valid token is accepted. An invalid token is answered with 401 and a missing scope with 403. The middleware also
// applies the rate limit.
func (a *Auth) Require(scopes ...string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			private(c) // before anything can fail, so that errors are not cached either
			p, err := a.Authenticate(c)
			if err == nil {
				err = p.Require(scopes)
			}
			if err != nil {
				return err
			}
			return next(c)
		}
	}
}

// Authenticate verifies the bearer token, applies the rate limit unless the server has done so, and sets the request's principal.
func (a *Auth) Authenticate(c echo.Context) (*access.Principal, error) {
	r := RequestOf(c)
	admitted, err := a.check(c, r, bearer(c))
	if err != nil {
		return nil, err
	}
	if in, ok := c.(*request); ok && in.checked.counted {
		a.setPrincipal(r, admitted)
		a.gate.Charge(r.Header(), admitted, 0)
		return admitted.Principal, nil
	}
	return a.admit(r, admitted)
}

// count applies the rate limit to a verified request of any route. It sets the principal of a refused request, for the log.
func (a *Auth) count(c echo.Context, r operation.Request, verified access.Admission) error {
	if in, ok := c.(*request); ok {
		in.checked.counted = true
	}
	r.Admission.Limit = verified.Limit
	err := a.gate.TakeQuietly(r.Header(), verified)
	if err != nil {
		r.Admission = verified
	}
	return err
}

// bearer returns the request's bearer token, or "".
func bearer(c echo.Context) string {
	if headers := c.Request().Header[echo.HeaderAuthorization]; len(headers) == 1 {
		if scheme, token, _ := strings.Cut(headers[0], " "); strings.EqualFold(scheme, "Bearer") {
			return token
		}
	}
	return ""
}

// recognize makes reads on a public route wait for the positions that the token's user has seen (see operation.ReadYourWrites).
// It sets no principal, and it ignores an invalid token.
func (a *Auth) recognize(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if token := bearer(c); token != "" {
			r := RequestOf(c)
			if admitted, err := a.check(c, r, token); err == nil {
				r.Answered = a.answered.Of(admitted.Principal.Username)
			}
		}
		return next(c)
	}
}

// checked is the result of verifying a request's token or API key, so that a request is verified only once.
type checked struct {
	by        *Auth // nil: not verified yet
	admission access.Admission
	err       error
	counted   bool // towards the limit of the user or key
}

// check verifies a request's token or API key. token is "" if there is none.
func (a *Auth) check(c echo.Context, r operation.Request, token string) (access.Admission, error) {
	in, ok := c.(*request)
	if !ok {
		return a.verify(r, token)
	}
	if in.checked.by != a {
		admission, err := a.verify(r, token)
		in.checked = checked{by: a, admission: admission, err: err}
	}
	return in.checked.admission, in.checked.err
}

func (a *Auth) verify(r operation.Request, token string) (access.Admission, error) {
	address := ""
	if strings.HasPrefix(token, access.APIKeyPrefix) { // only API keys need the address, which is expensive to determine
		address = r.Client()
	}
	return a.gate.Check(token, address)
}

// admit sets the principal of a verified request and applies the rate limit.
func (a *Auth) admit(r operation.Request, verified access.Admission) (*access.Principal, error) {
	a.setPrincipal(r, verified)
	return verified.Principal, a.gate.Take(r.Header(), verified)
}

// setPrincipal sets the principal of a verified request.
func (a *Auth) setPrincipal(r operation.Request, verified access.Admission) {
	r.Admission, r.Answered = verified, a.answered.Of(verified.Principal.Username)
}

// Charge counts an admitted request as more additional ones. Each order of a batch counts as one request.
func (a *Auth) Charge(r operation.Request, more int) { a.gate.Charge(r.Header(), r.Admission, more) }
