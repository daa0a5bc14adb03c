package onboarding

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/decide"
	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/webhook"
	"github.com/perpetua-exchange/perpetua/handlers/web/access"
	"github.com/perpetua-exchange/perpetua/handlers/web/input"
	"github.com/perpetua-exchange/perpetua/handlers/web/problem"
	"github.com/perpetua-exchange/perpetua/handlers/web/receipts"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	list "github.com/perpetua-exchange/perpetua/handlers/web/rows"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	rows "github.com/perpetua-exchange/perpetua/projections/onboarding"
	"github.com/perpetua-exchange/perpetua/streams/record"
)

// hidden returns a function that reports whether an owner's data is hidden from the caller. Restricted owners are
// hidden from everyone except operators, and erased owners from everyone. The zero Ref is not hidden.
func (h *Handler) hidden(c echo.Context) func(owner.Ref) bool {
	operator := rest.PrincipalOf(c).Has(access.ScopeOperator)
	return func(ref owner.Ref) (hidden bool) {
		h.cfg.Onboarding.View(func(s decide.State, _ record.Position) {
			if o, known := s.(*domain.State).Owner(ref); known {
				hidden = o.State == owner.Erased || o.State == owner.Restricted && !operator
			}
		})
		return hidden
	}
}

func (h *Handler) receipts() receipts.Receipts {
	return receipts.Receipts{Owners: h.cfg.Owners, Box: h.cfg.Box}
}

// listDeliveries lists the deliveries to a webhook, newest first.
func (h *Handler) listDeliveries(c echo.Context) error {
	path := rest.Path(c)
	id := path.ID("webhook_id")
	if path.Done() == nil {
		if _, err := h.registration(c, id); err != nil {
			return err
		}
	}
	query := rest.Query(c).Merge(path)
	n := rest.ReadNumbered(query)
	f := rows.DeliveryFilter{WebhookID: id, Statuses: input.Several(query, "status", webhook.Pending, webhook.Retrying, webhook.Delivered, webhook.Dead, webhook.Canceled)}
	if err := query.Done(); err != nil {
		return err
	}
	return h.pageOfDeliveries(c, f, n)
}

// pageOfDeliveries answers with a page of deliveries, newest first.
func (h *Handler) pageOfDeliveries(c echo.Context, f rows.DeliveryFilter, n rest.Numbered) error {
	var out rest.Items[wire.Delivery]
	err := h.rows.Read(c, func(ctx context.Context, db projections.DB) (int64, error) {
		found, total, asOf, err := rows.Deliveries(ctx, db, f, n.Size, n.Offset())
		if err != nil {
			return asOf, err
		}
		shown, err := h.receipts().Show(ctx, db, found, h.hidden(c))
		out = rest.NewItems(n, shown, total)
		return asOf, err
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, out)
}

// named returns the delivery that the path names. A delivery to a deleted webhook is not found.
func (h *Handler) named(c echo.Context) (*domain.Delivery, error) {
	path := rest.Path(c)
	id, delivery := path.ID("webhook_id"), path.ID("delivery_id")
	if err := rest.Query(c).Merge(path).Done(); err != nil {
		return nil, err
	}
	if _, err := h.registration(c, id); err != nil {
		return nil, err
	}
	v, err := h.lookUp(c, delivery)
	if err != nil {
		return nil, err
	}
	if v == nil || v.WebhookID != id {
		return nil, deliveryNotFound()
	}
	return v, nil
}

func deliveryNotFound() error {
	return problem.NotFound("DELIVERY_NOT_FOUND", "There is no such delivery.")
}

func (h *Handler) getDelivery(c echo.Context) error {
	v, err := h.named(c)
	if err != nil {
		return err
	}
	return h.showDelivery(c, h.rows.Find, v.ID, func(*rows.Delivery) {})
}

// rowFinder is one of the methods of rows.Source that find an object.
type rowFinder func(c echo.Context, fold record.Follower, query list.Query) error

// showDelivery responds with a delivery after applying change to the row.
func (h *Handler) showDelivery(c echo.Context, find rowFinder, id scalar.ID, change func(*rows.Delivery)) error {
	var out []wire.Delivery
	err := find(c, h.cfg.Onboarding, func(ctx context.Context, db projections.DB) (bool, int64, error) {
		found, known, asOf, err := rows.OneDelivery(ctx, db, viewer(c), id)
		if err != nil || !known {
			return false, asOf, err
		}
		change(&found)
		out, err = h.receipts().Show(ctx, db, []rows.Delivery{found}, h.hidden(c))
		return true, asOf, err
	})
	switch {
	case err != nil:
		return err
	case len(out) == 0:
		return deliveryNotFound()
	}
	return c.JSON(http.StatusOK, out[0])
}
