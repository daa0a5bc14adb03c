package onboarding

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/entitlement"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Operated returns the routes of the operator's interface under another base: the cases of all tenants, deliveries of
// webhooks, changes of documents, and all reads of persons and corporates and their dependent objects. Errors have
// the form of the base's interface.
func (h *Handler) Operated(at string) []web.Route {
	operators := []string{web.ScopeOperator, web.ScopeAuditor}
	routes := []web.Route{
		web.Get(at+"/entitlement_triggers", h.listCases, operators...),
		web.Get(at+"/entitlement_triggers/:id", h.getCase, operators...),
	}
	routes = append(routes, h.operatedDeliveries(at, operators)...)
	for _, k := range kinds {
		routes = append(routes, web.Get(at+strings.TrimPrefix(k.list, base), unconfined(h.listOperatedOwners(k.Type)), operators...),
			web.Get(at+strings.TrimPrefix(k.one(), base), unconfined(h.getOwner(fields.operated)), operators...))
		routes = append(routes, web.Patch(at+strings.TrimPrefix(k.one(), base)+"/documents/:document_id", h.changeDocument, web.ScopeOperator))
	}
	for _, r := range h.Routes() {
		onOwners := slices.ContainsFunc(kinds[:], func(k kind) bool { return strings.HasPrefix(r.Path, k.one()+"/") })
		if r.Method == http.MethodGet && onOwners {
			routes = append(routes, web.Get(at+strings.TrimPrefix(r.Path, base), r.Handler, operators...))
		}
	}
	return routes
}

// listOperatedOwners lists the owners of a type, of all tenants or of one.
func (h *Handler) listOperatedOwners(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		query := web.Query(c)
		f := view.OwnerFilter{Type: t, States: seenStates(c), Of: query.OptionalString("tenant").Value}
		if wanted := web.Several(query, "state", owner.Active, owner.Restricted); len(wanted) > 0 {
			f.States = slices.DeleteFunc(f.States, func(s owner.State) bool { return !slices.Contains(wanted, s) })
		}
		return h.ownerList(c, f, query, fields.operated)
	}
}

// operatedCase is a trigger as operators see it in lists.
type operatedCase struct {
	wire.EntitlementTrigger
	Tenant   string       `json:"tenant"`
	Updated  scalar.Time  `json:"updated_at"`
	Deadline *scalar.Time `json:"deadline"`
}

func showCase(row *view.Trigger) operatedCase {
	return operatedCase{EntitlementTrigger: showTrigger(row), Tenant: row.Tenant, Updated: row.Updated, Deadline: orNull(row.Deadline)}
}

// wholeCase is a trigger with everything that an operator needs for a decision.
type wholeCase struct {
	operatedCase
	// Requirements are the open requirements, oldest first.
	Requirements []pending        `json:"pending_requirements"`
	Timeline     []wire.CaseEvent `json:"timeline"`
}

// listCases lists the triggers of all tenants.
func (h *Handler) listCases(c echo.Context) error {
	query := web.Query(c)
	var f view.CaseFilter
	f.Tenant = query.OptionalString("tenant").Value
	f.Statuses = web.Several(query, "status", caseStatuses()...)
	f.OwnerID, f.EntitlementID = query.OptionalID("owner_id").Value, query.OptionalID("entitlement_id").Value
	f.OldestFirst = query.OptionalEnum("sort", "asc", "desc").Value == "asc"
	p := query.Numbered()
	if err := query.Done(); err != nil {
		return err
	}
	items, total, err := page(c, h, p.Size, p.Offset(), func(ctx context.Context, db projections.DB, size, offset int) ([]view.Trigger, int, int64, error) {
		return view.Cases(ctx, db, f, size, offset)
	}, seen(h.restricted(c), showCase))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, web.NewItems(p, items, total))
}

// restricted returns a function that reports whether an owner is restricted and therefore hidden from the caller.
func (h *Handler) restricted(c echo.Context) func(owner.Ref) bool {
	if web.PrincipalOf(c).Has(web.ScopeOperator) {
		return func(owner.Ref) bool { return false }
	}
	return func(ref owner.Ref) (hidden bool) {
		h.cfg.Onboarding.View(func(s decide.State, _ record.Position) {
			o, known := s.(*domain.State).Owner(ref)
			hidden = known && o.State == owner.Restricted
		})
		return hidden
	}
}

// seen converts triggers and skips those of hidden owners.
func seen[Shown any](hidden func(owner.Ref) bool, show func(*view.Trigger) Shown) shower[view.Trigger] {
	return func(_ context.Context, row *view.Trigger) (any, error) {
		if hidden(row.Ref) {
			return nil, notFound(row.Type)
		}
		return show(row), nil
	}
}

// caseStatuses returns all statuses of a case.
func caseStatuses() []entitlement.Status {
	return append(view.OpenCases(), entitlement.Finished, entitlement.Failed, entitlement.Canceled, entitlement.Terminated)
}

// getCase returns a trigger of any tenant with its open requirements and its timeline, if the caller may see the
// owner. The case of an erased owner stays readable without the reasons, because supervisors may ask who decided what
// and when.
func (h *Handler) getCase(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	unknown := web.NotFound("ENTITLEMENT_TRIGGER_NOT_FOUND", "There is no such entitlement trigger.")
	id, err := scalar.ParseID(web.Param(c, "id"))
	if err != nil {
		return unknown
	}
	row, err := h.trigger(c, &target{ids: map[string]scalar.ID{"trigger_id": id}})
	if err != nil {
		return err
	}
	err = h.view(c, func(s *domain.State) error {
		if o, known := s.Owner(row.Ref); !known || o.State != owner.Erased && !visible(web.PrincipalOf(c), o) {
			return unknown
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := wholeCase{operatedCase: showCase(&row)}
	if out.Requirements, err = h.pendingOf(c, row.Ref, id); err != nil {
		return err
	}
	if out.Timeline, err = h.timeline(c, id); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}
