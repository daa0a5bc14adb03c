package live

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
	"github.com/perpetua-exchange/perpetua/handlers/wire"
)

const update = wire.Update

func orderUpdate(o *order.Order) *wire.OrderMessage { return wire.NewOrderMessage(orders.name, o) }

// tradeUpdate shows one party's side of a trade.
func tradeUpdate(e *trading.TradeExecuted, maker bool, at scalar.Time) *wire.TradeMessage {
	leg, action, role, kind := &e.Taker, e.Action, "taker", e.Kind
	if maker {
		leg, action, role = &e.Maker, e.Action.Opposite(), "maker"
		if kind == trading.Liquidation { // the counterparty of a liquidation just trades
			kind = trading.Trade
		}
	}
	return &wire.TradeMessage{
		Channel: trades.name, Kind: update,
		TradeHead: wire.TradeHead{Code: e.Code, OrderCode: leg.OrderCode, CustomerCode: leg.CustomerCode, Symbol: e.Symbol,
			Action: action, Price: e.Price, Amount: e.Amount, Notional: e.Notional, Fee: leg.Fee, FeeCurrency: ledger.USDC, Role: role},
		Type:      kind,
		TradeRest: wire.TradeRest{ReferenceID: leg.ReferenceID, Timestamp: at},
	}
}

func marketTrade(e *trading.TradeExecuted, at decide.Stamp) *wire.MarketTradeMessage {
	return &wire.MarketTradeMessage{
		Channel: marketTrades.topic(e.Symbol), Symbol: e.Symbol, Code: e.Code,
		MarketTradeRest: wire.MarketTradeRest{Price: e.Price, Amount: e.Amount, Action: e.Action, Type: e.Kind,
			Timestamp: at.Time, Sequence: at.Sequence},
	}
}

func postingRow(p *ledger.Posting, at decide.Stamp) *wire.BalanceMessage {
	return wire.NewPosting(p, at).Message(balanceChanges.name)
}

func transactionRow(t *ledger.Transaction, at decide.Stamp) *wire.BalanceMessage {
	return wire.NewTransaction(t, at.Sequence).Message(balanceChanges.name)
}
