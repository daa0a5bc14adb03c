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
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// Operated returns the routes of the operator's interface under another base: the cases of all tenants, deliveries of
// webhooks, changes of documents, and all reads of persons and corporates and their dependent objects. Errors have
// the form of the base's interface, which must refuse tokens limited to one trading account.
func (h *Handler) Operated(at string) []rest.Route {
	operators := []string{access.ScopeOperator, access.ScopeAuditor}
	routes := []rest.Route{
		rest.Get(at+"/entitlement_triggers", h.listCases, operators...),
		rest.Get(at+"/entitlement_triggers/:id", h.getCase, operators...),
	}
	routes = append(routes, h.operatedDeliveries(at, operators)...)
	for _, k := range kinds {
		routes = append(routes, rest.Get(at+strings.TrimPrefix(k.list, base), h.listOperatedOwners(k.Type), operators...),
			rest.Get(at+strings.TrimPrefix(k.one(), base), h.getOwner(fields.operated), operators...))
		routes = append(routes, rest.Patch(at+strings.TrimPrefix(k.one(), base)+"/documents/:document_id", h.changeDocument, access.ScopeOperator))
	}
	for _, r := range h.Routes() {
		onOwners := slices.ContainsFunc(kinds[:], func(k kind) bool { return strings.HasPrefix(r.Path, k.one()+"/") })
		if r.Method == http.MethodGet && onOwners {
			routes = append(routes, rest.Get(at+strings.TrimPrefix(r.Path, base), r.Handler, operators...))
		}
	}
	return routes
}

// listOperatedOwners lists the owners of a type, of all tenants or of one.
func (h *Handler) listOperatedOwners(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		query := rest.Query(c)
		f := view.OwnerFilter{Type: t, States: seenStates(c), Of: query.OptionalString("tenant", input.BrokerCode).Value}
		if f.Then = input.Several(query, "state", owner.Active, owner.Restricted); len(f.Then) > 0 {
			f.States = slices.DeleteFunc(f.States, func(s owner.State) bool { return !slices.Contains(f.Then, s) })
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
	query := rest.Query(c)
	var f view.CaseFilter
	f.Tenant = query.OptionalString("tenant", input.BrokerCode).Value
	f.Statuses = input.Several(query, "status", caseStatuses()...)
	f.OwnerID, f.EntitlementID = query.OptionalID("owner_id").Value, query.OptionalID("entitlement_id").Value
	f.OldestFirst = query.OptionalEnum("sort", "asc", "desc").Value == "asc"
	p, q := rest.ReadNumbered(query), asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	show := seen(h.restricted(c), showCase)
	if q != nil {
		return h.casesAsOf(c, q, p, f, show)
	}
	items, total, err := page(c, h, p.Size, p.Offset(), func(ctx context.Context, db projections.DB, size, offset int) ([]view.Trigger, int, int64, error) {
		return view.Cases(ctx, db, f, size, offset)
	}, show)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.NewItems(p, items, total))
}

// casesAsOf responds with a page of the triggers of a filter as of a past record.
func (h *Handler) casesAsOf(c echo.Context, q *asof.Question, p rest.Numbered, f view.CaseFilter, show shower[view.Trigger]) error {
	var rows []view.Trigger
	var total int
	err := q.AnswerList(c, h.AsOf(), func(ctx context.Context, db projections.DB, sequence int64) (err error) {
		rows, total, err = view.CasesAsOf(ctx, db, f, p.Size, p.Offset(), sequence)
		return err
	})
	if err != nil {
		return err
	}
	items, err := showAll(c.Request().Context(), rows, show)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.NewItems(p, items, total))
}

// restricted returns a function that reports whether an owner is restricted and therefore hidden from the caller.
func (h *Handler) restricted(c echo.Context) func(owner.Ref) bool {
	if rest.PrincipalOf(c).Has(access.ScopeOperator) {
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
	query := rest.Query(c)
	q := asof.Read(query)
	if err := query.Done(); err != nil {
		return err
	}
	id, err := scalar.ParseID(rest.Param(c, "id"))
	if err != nil {
		return triggerNotFound()
	}
	var found pastCase
	if q != nil {
		found, err = h.caseAsOf(c, q, &target{}, id)
	} else {
		found, err = h.caseNow(c, id)
	}
	if err != nil {
		return err
	}
	sees, err := h.seesCase(c, &found.trigger)
	switch {
	case err != nil:
		return err
	case !sees:
		return triggerNotFound()
	}
	out := wholeCase{operatedCase: showCase(&found.trigger)}
	open := view.PendingOf(found.trigger, found.events)
	if out.Requirements, err = h.showPending(c.Request().Context(), found.trigger.Ref, open); err != nil {
		return err
	}
	if out.Timeline, err = h.showCaseEvents(c, found.events); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// seesCase reports whether the caller may see the owner of a trigger.
func (h *Handler) seesCase(c echo.Context, t *view.Trigger) (sees bool, err error) {
	waited := h.awaitFold(c, t.Sequence) // the rows may be ahead of the fold
	known := false
	h.cfg.Onboarding.View(func(s decide.State, _ record.Position) {
		var o *domain.Owner
		o, known = s.(*domain.State).Owner(t.Ref)
		sees = known && visibleThen(rest.PrincipalOf(c), o)
	})
	if !known {
		return false, waited
	}
	return sees, nil
}

// caseNow reads a trigger of any tenant.
func (h *Handler) caseNow(c echo.Context, id scalar.ID) (out pastCase, err error) {
	found := false
	err = h.rows.Find(c, h.cfg.Onboarding, func(ctx context.Context, db projections.DB) (_ bool, asOf int64, err error) {
		if out.trigger, found, asOf, err = view.OneTrigger(ctx, db, viewer(c), owner.Ref{}, id); err != nil || !found {
			return false, asOf, err
		}
		out.events, err = timelineUntil(ctx, db, id, asOf)
		return true, asOf, err
	})
	if err == nil && !found {
		err = triggerNotFound()
	}
	return out, err
}
