package onboarding

import (
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// target is what the path of a request names: mostly an owner, and something that hangs on it.
//
// That the owner is not there is found out first. An id that is no UUID is a fault among those of the query and the body: the
// forms of a target hold it, so a handler that looks at their faults, as it has to, goes no further.
type target struct {
	owner.Ref
	owner *domain.Owner // nil where the path names none, or not by a UUID
	asOf  int64         // the sequence that this was looked up at
	path  *web.Form
	ids   map[string]scalar.ID // that the path names besides; zero where one is no UUID
	// malformed says that an id of the path is no UUID.
	malformed bool
}

// body reads the JSON body of a route without a query.
func (t *target) body(c echo.Context) *web.Form { return web.BodyOnly(c).Also(t.path) }

// query reads the query.
func (t *target) query(c echo.Context) *web.Form { return web.Query(c).Also(t.path) }

// bare is for reads without a query, and for writes without a body.
func (t *target) bare(c echo.Context) error { return t.query(c).Done() }

// written returns the owner that the path of a write names, if it is an active one of the caller's tenant. The other ids of the
// path are named.
func (h *Handler) written(c echo.Context, others ...string) (*target, error) {
	return h.target(c, writable, others)
}

// shown returns the owner that the path of a read names, if the caller may see it.
func (h *Handler) shown(c echo.Context, others ...string) (*target, error) {
	return h.target(c, visible, others)
}

func (h *Handler) target(c echo.Context, may func(*web.Principal, *domain.Owner) bool, others []string) (*target, error) {
	t := &target{path: web.Path(c), ids: make(map[string]scalar.ID)}
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
		if !known || !may(web.PrincipalOf(c), o) {
			return notFound(t.Type)
		}
		t.owner, t.asOf = o, sequence
		return nil
	})
	return t, err
}

// writable reports whether a client may change something of an owner.
func writable(p *web.Principal, o *domain.Owner) bool {
	return o.Tenant == p.Broker && o.State == owner.Active
}

// visible reports whether somebody may see an owner: its tenant and the auditors while it is active, operators until it is
// erased.
func visible(p *web.Principal, o *domain.Owner) bool {
	switch {
	case o.State == owner.Erased, o.State == owner.Restricted && !p.Has(web.ScopeOperator):
		return false
	}
	return p.SeesAll() || o.Tenant == p.Broker
}

// viewer says whose rows the caller sees.
func viewer(c echo.Context) view.Viewer {
	if p := web.PrincipalOf(c); !p.SeesAll() {
		return view.Viewer{Tenant: p.Broker}
	}
	return view.Operator
}

// view shows the state of the journal as the node's own follower has it.
func (h *Handler) view(c echo.Context, look func(*domain.State) error) error {
	return h.viewAt(c, func(s *domain.State, _ int64) error { return look(s) })
}

// viewAt is view for who needs to know how far the fold is.
func (h *Handler) viewAt(c echo.Context, look func(s *domain.State, sequence int64) error) error {
	return web.View(c, journalName, h.cfg.Onboarding, look)
}

// notFound says that there is no such owner.
func notFound(t owner.Type) error {
	return web.NotFound(strings.ToUpper(string(t))+"_NOT_FOUND", "There is no such "+string(t)+".")
}
