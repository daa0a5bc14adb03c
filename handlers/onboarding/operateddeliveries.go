package onboarding

import (
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// operatedDeliveries returns the routes of the deliveries of all tenants.
func (h *Handler) operatedDeliveries(at string, readers []string) []rest.Route {
	return []rest.Route{
		rest.Get(at+"/webhook_deliveries", h.listAllDeliveries, readers...),
		rest.Get(at+"/webhook_deliveries/:id", h.getAnyDelivery, readers...),
		rest.Post(at+"/webhook_deliveries/:id/replay", h.replayAnyDelivery, access.ScopeOperator),
	}
}

// listAllDeliveries lists the deliveries to all webhooks, newest first.
func (h *Handler) listAllDeliveries(c echo.Context) error {
	query := rest.Query(c)
	n := rest.ReadNumbered(query)
	f := view.DeliveryFilter{WebhookID: query.OptionalID("webhook_id").Value, OwnerID: query.OptionalID("owner_id").Value,
		Statuses: input.Several(query, "status", webhook.Pending, webhook.Retrying, webhook.Delivered, webhook.Dead, webhook.Canceled)}
	if err := query.Done(); err != nil {
		return err
	}
	return h.pageOfDeliveries(c, f, n)
}

// anyDelivery reads the delivery's ID from the route.
func anyDelivery(c echo.Context) (scalar.ID, error) {
	id, err := scalar.ParseID(rest.Param(c, "id"))
	if err != nil {
		return id, deliveryNotFound()
	}
	return id, nil
}

func (h *Handler) getAnyDelivery(c echo.Context) error {
	if err := rest.NoQuery(c); err != nil {
		return err
	}
	id, err := anyDelivery(c)
	if err != nil {
		return err
	}
	return h.showDelivery(c, h.rows.Find, id, func(*view.Delivery) {})
}
