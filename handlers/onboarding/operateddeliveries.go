package onboarding

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
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
	var out web.Items[wire.Delivery]
	err := h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, total, asOf, err := view.Deliveries(ctx, db, f, n.Size, n.Offset())
		if err != nil {
			return asOf, err
		}
		shown, err := h.receipts().Show(ctx, db, found, h.hidden(c))
		out = web.NewItems(n, shown, total)
		return asOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
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
