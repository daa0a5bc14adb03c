package live

import (
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

const update = wire.Update

func orderUpdate(o *order.Order) *wire.OrderMessage { return wire.NewOrderMessage(orders.name, o) }
