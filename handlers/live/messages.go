package live

import (
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

const update = wire.Update

func orderUpdate(o *order.Order, sequence int64) *wire.OrderMessage {
	return wire.NewOrderMessage(orders.name, o, sequence)
}
