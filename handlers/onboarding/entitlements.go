package onboarding

import (
	"context"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/projections"
	view "github.com/perpetua-exchange/perpetua/projections/onboarding"
)

// entitlementRoutes returns the routes that list entitlements.
func (h *Handler) entitlementRoutes() []rest.Route {
	return []rest.Route{
		get(base+"/entitlements/persons", h.listEntitlements(owner.PersonType)),
		get(base+"/entitlements/corporates", h.listEntitlements(owner.CorporateType)),
	}
}

// listEntitlements lists the entitlements for owners of a type, newest first.
func (h *Handler) listEntitlements(t owner.Type) echo.HandlerFunc {
	return func(c echo.Context) error {
		return listed(c, h, func(ctx context.Context, db projections.DB, size, offset int) ([]view.Entitlement, int, int64, error) {
			return view.Entitlements(ctx, db, t, size, offset)
		}, itself(func(e *view.Entitlement) wire.Entitlement { return wire.NewEntitlement(&e.Definition) }))
	}
}
