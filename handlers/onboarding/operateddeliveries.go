package onboarding

import (
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// operatedDeliveries returns the routes of the deliveries of all tenants.
func (h *Handler) operatedDeliveries(at string, readers []string) []web.Route {
	return []web.Route{
		web.Get(at+"/webhook_deliveries", h.listAllDeliveries, readers...),
		web.Get(at+"/webhook_deliveries/:id", h.getAnyDelivery, readers...),
		web.Post(at+"/webhook_deliveries/:id/replay", h.replayAnyDelivery, web.ScopeOperator),
	}
}

// listAllDeliveries lists the deliveries to all webhooks, newest first.
func (h *Handler) listAllDeliveries(c echo.Context) error {
	query := web.Query(c)
	n := query.Numbered()
	f := view.DeliveryFilter{WebhookID: query.OptionalID("webhook_id").Value, OwnerID: query.OptionalID("owner_id").Value,
		Statuses: web.Several(query, "status", webhook.Pending, webhook.Retrying, webhook.Delivered, webhook.Dead, webhook.Canceled)}
	if err := query.Done(); err != nil {
		return err
	}
	return h.pageOfDeliveries(c, f, n)
}

// anyDelivery reads the delivery's ID from the route.
func anyDelivery(c echo.Context) (scalar.ID, error) {
	id, err := scalar.ParseID(web.Param(c, "id"))
	if err != nil {
		return id, deliveryNotFound()
	}
	return id, nil
}

func (h *Handler) getAnyDelivery(c echo.Context) error {
	if err := web.NoQuery(c); err != nil {
		return err
	}
	id, err := anyDelivery(c)
	if err != nil {
		return err
	}
	return h.showDelivery(c, id, func(*view.Delivery) {})
}
