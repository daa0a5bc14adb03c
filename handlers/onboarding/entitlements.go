package onboarding

import (
	"context"
	"math"
	"net/http"

	"github.com/labstack/echo/v4"

	domain "github.com/perpetua-exchange/perpetua/domain/onboarding"
	"github.com/perpetua-exchange/perpetua/domain/owner"
	"github.com/perpetua-exchange/perpetua/handlers/web/asof"
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
		query := rest.Query(c)
		p, q := rest.ReadNumbered(query), asof.Read(query)
		if err := query.Done(); err != nil {
			return err
		}
		if q != nil {
			return h.entitlementsAsOf(c, q, t, p)
		}
		return paged(c, h, p, func(ctx context.Context, db projections.DB, size, offset int) ([]view.Entitlement, int, int64, error) {
			return view.Entitlements(ctx, db, t, size, offset)
		}, itself(func(e *view.Entitlement) wire.Entitlement { return wire.NewEntitlement(&e.Definition) }))
	}
}

// entitlementsAsOf responds with a page of the entitlements for owners of a type, as of a past record.
func (h *Handler) entitlementsAsOf(c echo.Context, q *asof.Question, t owner.Type, p rest.Numbered) error {
	var all []wire.Entitlement
	err := h.viewThen(c, q, func(s *domain.State) error {
		found, _ := s.Entitlements(0, math.MaxInt)
		for _, e := range found {
			if e.OwnerType == t {
				all = append(all, wire.NewEntitlement(e))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, rest.Slice(p, all))
}
