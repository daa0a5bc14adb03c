package trading

import (
	"github.com/labstack/echo/v4"

	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/web"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
	"github.com/perpetua-exchange/perpetua/streams/journal"
)

// answerOrder answers with an order as the record that answers a command left it.
func answerOrder(c echo.Context, status int, shown *order.Order, in *journal.Record) error {
	o := wire.NewOrder(shown, in.Sequence)
	return web.AnswerWith(c, status, &o)
}
