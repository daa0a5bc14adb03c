package admin

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/form"
	venue "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/domain/validation"
	"github.com/perpetua-exchange/perpetua/handlers/web/rest"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// maxAccountLeverage is the upper bound of leverage in an account's default margins.
const maxAccountLeverage = 100

// margins holds an account's default margins in percent.
type margins struct {
	CustomerCode      string        `json:"customer_code"`
	Leverage          *int          `json:"leverage"`
	InitialMargin     fixed.Decimal `json:"initial_margin"`
	MaintenanceMargin fixed.Decimal `json:"maintenance_margin"`
}

// accountRoutes returns the routes of accounts' profiles.
func (h *Handler) accountRoutes() []rest.Route {
	return []rest.Route{
		put("/customers/:customer_code/margin-profile", h.setMarginProfile),
		put("/customers/:customer_code/fee-profile/:symbol", h.setFees),
	}
}

// setMarginProfile sets an account's default margins, either from a leverage or from both percentages.
func (h *Handler) setMarginProfile(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &venue.SetMarginProfile{
		CustomerCode:      rest.Param(c, "customer_code"),
		Leverage:          body.OptionalLeverage("leverage", maxAccountLeverage).Value,
		InitialMargin:     body.OptionalDecimal("initial_margin", form.Positive, form.MaxDecimals(4)).Value,
		MaintenanceMargin: body.OptionalDecimal("maintenance_margin", form.Positive, form.MaxDecimals(4)).Value,
	}
	percentages := body.Has("initial_margin") || body.Has("maintenance_margin")
	switch {
	case body.Has("leverage") && percentages:
		body.Fault("leverage", "NOT_ALLOWED", "either leverage or the two margins may be given")
	case !body.Has("leverage") && !percentages:
		body.Fault("leverage", validation.Required, "either leverage or the two margins are required")
	case percentages:
		for _, name := range []string{"initial_margin", "maintenance_margin"} {
			if !body.Has(name) {
				body.Fault(name, validation.Required, "both margins are required")
			}
		}
	}
	e, err := rest.Execute[*venue.MarginProfileSet](c, h.trading, payload, body)
	if err != nil {
		return err
	}
	out := margins{e.CustomerCode, nil, wire.Percent(e.InitialMargin), wire.Percent(e.MaintenanceMargin)}
	if e.Leverage != 0 {
		out.Leverage = &e.Leverage
	}
	return c.JSON(http.StatusOK, out)
}

func (h *Handler) setFees(c echo.Context) error {
	body := rest.BodyOnly(c)
	payload := &venue.SetFeeProfile{CustomerCode: rest.Param(c, "customer_code"), Symbol: rest.Param(c, "symbol"),
		MakerFee: body.Fee("maker_fee", true), TakerFee: body.Fee("taker_fee", false), Operator: true}
	e, err := rest.Execute[*venue.FeeProfileSet](c, h.trading, payload, body)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, wire.NewFeeProfileItem(e))
}
