package onboarding

import (
	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// triggerRoutes are those of what an owner asks for.
func (h *Handler) triggerRoutes(k kind) []web.Route {
	return []web.Route{
		post(k.one()+"/entitlement_triggers", h.createTrigger),
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
			body.Flaw(web.ValueError, "the entitlement is for another type of owner", "entitlement_id")
		}
		return nil
	})
	if err != nil {
		return err
	}
	e, err := web.Execute[*domain.TriggerCreated](c, h.journal, payload, body)
	if err != nil {
		return err
	}
	return created(c, wire.EntitlementTrigger{ID: e.ID, EntitlementID: e.EntitlementID, Status: e.Status, Ref: e.Ref, Created: e.Created})
}
