package onboarding

import (
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// target holds the objects that a request's path names, usually an owner and a dependent object.
//
// A missing owner is reported first. An ID that is not a UUID is a validation error together with those of the query
// and the body. The target's forms contain that error, so a handler stops when it checks them.
type target struct {
	owner.Ref
	owner *domain.Owner // nil if the path names none, or not by a UUID
	asOf  int64         // sequence of the fold at which the owner was found
	path  *input.Form
	ids   map[string]scalar.ID // the other IDs in the path; zero if not a UUID
	// malformed means that an ID in the path is not a UUID.
	malformed bool
}

// body reads the JSON body of a route without a query.
func (t *target) body(c echo.Context) *input.Form { return rest.BodyOnly(c).Merge(t.path) }

// query reads the query.
func (t *target) query(c echo.Context) *input.Form { return rest.Query(c).Merge(t.path) }

// bare returns the path's errors, for reads without a query and writes without a body.
func (t *target) bare(c echo.Context) error { return t.query(c).Done() }

// written returns the owner named in the path of a write, which must be an active owner of the caller's tenant.
// others names the other IDs in the path.
func (h *Handler) written(c echo.Context, others ...string) (*target, error) {
	return h.target(c, writable, others)
}

// shown returns the owner named in the path of a read, which must be visible to the caller. others names the other
// IDs in the path.
func (h *Handler) shown(c echo.Context, others ...string) (*target, error) {
	return h.target(c, visible, others)
}

// shownBare is shown for a read without a query.
func (h *Handler) shownBare(c echo.Context, others ...string) (*target, error) {
	t, err := h.shown(c, others...)
	if err == nil {
		err = t.bare(c)
	}
	return t, err
}

func (h *Handler) target(c echo.Context, may func(*access.Principal, *domain.Owner) bool, others []string) (*target, error) {
	t := &target{path: rest.Path(c), ids: make(map[string]scalar.ID)}
	for _, k := range kinds {
		if slices.Contains(c.ParamNames(), k.parameter) {
			t.Ref = owner.Ref{Type: k.Type, ID: t.path.ID(k.parameter)}
		}
	}
	unknown := t.path.Done() != nil
	for _, name := range others {
		t.ids[name] = t.path.ID(name)
	}
	t.malformed = t.path.Done() != nil
	if t.Type == "" || unknown {
		return t, nil
	}
	err := h.viewAt(c, func(s *domain.State, sequence int64) error {
		o, known := s.Owner(t.Ref)
		if !known || !may(rest.PrincipalOf(c), o) {
			return notFound(t.Type)
		}
		t.owner, t.asOf = o, sequence
		return nil
	})
	return t, err
}

// writable reports whether a principal may change an owner's data.
func writable(p *access.Principal, o *domain.Owner) bool {
	return o.Tenant == p.Broker && o.State == owner.Active
}

// visible reports whether a principal may see an owner. The tenant and auditors may while the owner is active,
// operators until it is erased.
func visible(p *access.Principal, o *domain.Owner) bool {
	switch {
	case o.State == owner.Erased, o.State == owner.Restricted && !p.Has(access.ScopeOperator):
		return false
	}
	return p.SeesAll() || o.Tenant == p.Broker
}

// viewer returns the caller's filter for rows.
func viewer(c echo.Context) view.Viewer {
	if p := rest.PrincipalOf(c); !p.SeesAll() {
		return view.Viewer{Tenant: p.Broker}
	}
	return view.Operator
}

// view calls look with the state of this node's follower of the journal.
func (h *Handler) view(c echo.Context, look func(*domain.State) error) error {
	return h.viewAt(c, func(s *domain.State, _ int64) error { return look(s) })
}

// viewAt is view with the sequence of the state.
func (h *Handler) viewAt(c echo.Context, look func(s *domain.State, sequence int64) error) error {
	return rest.View(c, journalName, h.cfg.Onboarding, look)
}

// notFound returns the error for an unknown owner.
func notFound(t owner.Type) error {
	return problem.NotFound(strings.ToUpper(string(t))+"_NOT_FOUND", "There is no such "+string(t)+".")
}
