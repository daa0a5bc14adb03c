package trading

import (
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/market"
	domain "github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/web"
)

// ReadFees reads the fees of the customer and symbol that the route names. Only the operator gives rebates.
func ReadFees(c echo.Context, f *web.Form, operator bool) *domain.SetFeeProfile {
	return &domain.SetFeeProfile{
		CustomerCode: web.Param(c, "customer_code"),
		Symbol:       web.Param(c, "symbol"),
		MakerFee:     fee(f, "maker_fee", operator),
		TakerFee:     fee(f, "taker_fee", false),
		Operator:     operator,
	}
}

func fee(f *web.Form, name string, rebate bool) fixed.Decimal {
	d := f.Decimal(name, web.MaxDecimals(4))
	if !market.FeeInRange(d, rebate) {
		least := "0"
		if rebate {
			least = "-100"
		}
		f.Fault(name, web.OutOfRange, "the fee must be between "+least+" and 100 basis points")
	}
	return d.Trim()
}
