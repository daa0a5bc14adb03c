package trading

import (
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

// answerOrder answers with an order, which most answers hold.
func answerOrder(c echo.Context, status int, shown *order.Order) error {
	o := wire.NewOrder(shown)
	return web.AnswerWith(c, status, &o)
}
