package live

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
	"github.com/perpetua-exchange/perpetua/domain/trading"
)

// liquidationMessage is the closing of a part of a position by a liquidation, on the liquidations channel. It does
// not identify the account.
type liquidationMessage struct {
	Channel   string        `json:"channel"`
	Type      string        `json:"type"`
	Symbol    string        `json:"symbol"`
	Side      order.Action  `json:"side"` // sell: of a long position
	Amount    fixed.Decimal `json:"amount"`
	Price     fixed.Decimal `json:"price"`
	Kind      string        `json:"kind"`
	Timestamp scalar.Time   `json:"timestamp"`
	Sequence  int64         `json:"sequence"`
}

// These are the kinds of liquidations, by the counterparty that took the position.
const (
	byTheBook  = "liquidation"       // an order in the book
	byTheFund  = "takeover"          // the insurance fund
	byHolders  = "auto_deleveraging" // holders of the opposite side
	takenByAny = ""                  // not a liquidation
)

func kindOf(e *trading.TradeExecuted) string {
	switch {
	case e.Type == trading.AutoDeleveraging:
		return byHolders
	case e.Type == trading.Liquidation && e.Taker.OrderCode.IsZero():
		return byTheFund
	case e.Type == trading.Liquidation:
		return byTheBook
	}
	return takenByAny
}

func newLiquidation(e *trading.TradeExecuted, at decide.Stamp) *liquidationMessage {
	return &liquidationMessage{liquidations.name, update, e.Symbol, e.Action, e.Amount, e.Price, kindOf(e), at.Time, at.Sequence}
}
