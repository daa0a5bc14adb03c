package onboarding

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// allTriggers is the maximum number of triggers in a list if the request has neither page nor size.
const allTriggers = 1000

// triggerRoutes returns the routes of an owner's triggers and open requirements.
func (h *Handler) triggerRoutes(k kind) []rest.Route {
	triggers := k.one() + "/entitlement_triggers"
	return []rest.Route{
		post(triggers, h.createTrigger),
		get(triggers, h.listTriggers),
		get(triggers+"/:trigger_id", h.getTrigger),
		get(triggers+"/:trigger_id/timeline", h.getTimeline),
		get(triggers+"/:trigger_id/explain", h.explainTrigger),
		get(k.one()+"/pending_requirements", h.listPending),
		get(k.one()+"/pending_requirements/explain", h.explainPending),
	}
}

func (h *Handler) createTrigger(c echo.Context) error {
	t, err := h.written(c)
	if err != nil {
		return err
	}
	body := t.body(c)
	payload := &domain.CreateTrigger{Ref: t.Ref, EntitlementID: body.ID("entitlement_id")}
	if err := body.Done(); err != nil {
		return err
	}
	err = h.view(c, func(s *domain.State) error {
		if d, known := s.Entitlement(payload.EntitlementID); known && d.OwnerType != t.Type {
			body.Fault("entitlement_id", validation.InvalidValue, "the entitlement is for another type of owner")
		}
		return nil
	})
	if err != nil {
		return err
	}
	e, err := rest.Execute[*domain.TriggerCreated](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	return created(c, wire.EntitlementTrigger{ID: e.ID, EntitlementID: e.EntitlementID, Status: e.Status, Ref: e.Ref, Created: e.Created})
}

func showTrigger(row *view.Trigger) wire.EntitlementTrigger {
	return wire.EntitlementTrigger{ID: row.ID, EntitlementID: row.EntitlementID, Status: row.Status, Result: row.Result, Ref: row.Ref, Created: row.Created}
}

// triggerList is a list of triggers. It has only these two members, even for a page.
type triggerList struct {
	Items []any `json:"items"`
	Total int   `json:"total"` // number of all triggers of the owner
}

// listTriggers lists an owner's triggers, newest first. It returns the complete list unless the request asks for a page.
func (h *Handler) listTriggers(c echo.Context) error {
	t, query, q, err := h.readTarget(c)
	if err != nil {
		return err
	}
	p := rest.ReadNumbered(query)
	if err := query.Done(); err != nil {
		return err
	}
	size, offset := p.Size, p.Offset()
	if !query.Has("page") && !query.Has("size") {
		size = allTriggers
	}
	items, total, err := pageThen(c, h, q, t, size, offset, func(ctx context.Context, db projections.DB, size, offset int) ([]view.Trigger, int, int64, error) {
		return view.TriggersOf(ctx, db, viewer(c), t.Ref, size, offset)
	}, view.TriggersAsOf, itself(showTrigger))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, triggerList{items, total})
}

func (h *Handler) getTrigger(c echo.Context) error {
	t, q, err := h.readBareTarget(c, "trigger_id")
	if err != nil {
		return err
	}
	var row view.Trigger
	if q != nil {
		row, err = pastOne(c, h, q, t, t.ids["trigger_id"], view.TriggerAsOf, triggerNotFound)
	} else {
		row, err = h.trigger(c, t)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, showTrigger(&row))
}

// trigger returns the trigger named in the route.
func (h *Handler) trigger(c echo.Context, t *target) (view.Trigger, error) {
	return one(c, h, func(ctx context.Context, db projections.DB) (view.Trigger, bool, int64, error) {
		return view.OneTrigger(ctx, db, viewer(c), t.Ref, t.ids["trigger_id"])
	}, triggerNotFound)
}

func triggerNotFound() error {
	return problem.NotFound("ENTITLEMENT_TRIGGER_NOT_FOUND", "There is no such entitlement trigger.")
}
