package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TradeType says what caused a trade.
type TradeType string

// The kinds of trade.
const (
	Trade            TradeType = "trade"
	Liquidation      TradeType = "liquidation"
	AutoDeleveraging TradeType = "auto_deleveraging"
)

// TradeExecuted says that two orders matched or, where its sides have no orders, that a position which is liquidated went
// to another account.
type TradeExecuted struct {
	Code     scalar.ID     `json:"code"`
	Symbol   string        `json:"symbol"`
	Price    fixed.Decimal `json:"price"`
	Amount   fixed.Decimal `json:"amount"`
	Notional fixed.Money   `json:"notional"`
	Action   order.Action  `json:"action"` // the taker's
	Type     TradeType     `json:"type"`
	Taker    TradeLeg      `json:"taker"`
	Maker    TradeLeg      `json:"maker"`
	// Positions are the taker's and the maker's after the trade.
	Positions []PositionHeld   `json:"positions"`
	Entries   []ledger.Posting `json:"postings"`
}

// EventType returns "trade.executed".
func (*TradeExecuted) EventType() string { return "trade.executed" }

// EventVersion returns 1.
func (*TradeExecuted) EventVersion() int { return 1 }

// Postings implements ledger.Posted.
func (e *TradeExecuted) Postings() []ledger.Posting { return e.Entries }

// TradeLeg is one party's part of a trade.
type TradeLeg struct {
	// OrderCode is zero and ReferenceID empty where the trade has no orders: a takeover by the insurance fund, and
	// deleveraging.
	OrderCode    scalar.ID `json:"order_code,omitzero"`
	CustomerCode string    `json:"customer_code"`
	Broker       string    `json:"broker"`
	// Fee is what the party paid; negative for a rebate.
	Fee         fixed.Money `json:"fee"`
	ReferenceID string      `json:"reference_id,omitzero"`
}

// PositionHeld is a customer's position after a trade.
type PositionHeld struct {
	CustomerCode string        `json:"customer_code"`
	Symbol       string        `json:"symbol"`
	Amount       fixed.Decimal `json:"amount"` // signed: negative is short
	// Cost is what the position cost: the signed sum of the notional that opened what is left of it.
	Cost fixed.Money `json:"cost"`
	// EntryPrice is the cost per contract, for display: half to even at 8 decimals.
	EntryPrice fixed.Decimal `json:"entry_price,omitzero"`
}

// Role says which side of a trade a customer was.
type Role string

// The two roles.
const (
	Maker Role = "maker"
	Taker Role = "taker"
)

// CustomerTrade is a trade as one of its customers sees it.
type CustomerTrade struct {
	Code         scalar.ID
	OrderCode    scalar.ID
	CustomerCode string
	Broker       string
	Symbol       string
	Action       order.Action
	Price        fixed.Decimal
	Amount       fixed.Decimal
	Notional     fixed.Money
	Fee          fixed.Money // negative: a rebate
	FeeCurrency  string
	Role         Role
	Type         TradeType // what it was to this customer
	ReferenceID  string    // of the order
	Time         scalar.Time
	Sequence     int64
	Ordinal      int // the trade's place among those of its record, from 0
}

// PublicTrade is a trade as everybody may see it.
type PublicTrade struct {
	Code     scalar.ID
	Symbol   string
	Price    fixed.Decimal
	Amount   fixed.Decimal
	Action   order.Action // the taker's
	Type     TradeType
	Time     scalar.Time
	Sequence int64
	Ordinal  int // its place among the trades of its record, from 0
}

// Sides returns what the trade was to its taker and to its maker. Of a liquidation only the taker was liquidated; to the
// maker it was a trade like any other. Deleveraging is what it is for both. The ordinal is the trade's place among those of
// its record.
func (e *TradeExecuted) Sides(at decide.Stamp, ordinal int) (taker, maker CustomerTrade) {
	makers := e.Type
	if makers == Liquidation {
		makers = Trade
	}
	taker = e.side(at, &e.Taker, Taker, e.Action, e.Type)
	maker = e.side(at, &e.Maker, Maker, e.Action.Opposite(), makers)
	taker.Ordinal, maker.Ordinal = ordinal, ordinal
	return taker, maker
}

func (e *TradeExecuted) side(at decide.Stamp, l *TradeLeg, role Role, action order.Action, kind TradeType) CustomerTrade {
	return CustomerTrade{Code: e.Code, OrderCode: l.OrderCode, CustomerCode: l.CustomerCode, Broker: l.Broker, Symbol: e.Symbol,
		Action: action, Price: e.Price, Amount: e.Amount, Notional: e.Notional, Fee: l.Fee, FeeCurrency: ledger.USDC, Role: role,
		Type: kind, ReferenceID: l.ReferenceID, Time: at.Time, Sequence: at.Sequence}
}

// Public returns the trade, the ordinal-th of its record, as everybody may see it.
func (e *TradeExecuted) Public(at decide.Stamp, ordinal int) PublicTrade {
	return PublicTrade{Code: e.Code, Symbol: e.Symbol, Price: e.Price, Amount: e.Amount, Action: e.Action, Type: e.Type,
		Time: at.Time, Sequence: at.Sequence, Ordinal: ordinal}
}

// MovesLastPrice reports whether the trade counts for the last price, for candles and for triggers. What the insurance
// fund takes over and what is deleveraged has no order, and does not.
func (e *TradeExecuted) MovesLastPrice() bool {
	return e.Type == Trade || e.Type == Liquidation && !e.Taker.OrderCode.IsZero()
}

// BrokerOf implements ledger.Posted and PositionEvent.
func (e *TradeExecuted) BrokerOf(customer string) string {
	if customer == e.Taker.CustomerCode {
		return e.Taker.Broker
	}
	return e.Maker.Broker
}

// PositionEvent is implemented by the events that change positions.
type PositionEvent interface {
	decide.Event
	// PositionsAfter returns the positions that changed, after the event. They are not to be changed.
	PositionsAfter() []PositionHeld
	// BrokerOf returns the broker of a customer whose position changed.
	BrokerOf(customer string) string
}

// PositionsAfter implements PositionEvent.
func (e *TradeExecuted) PositionsAfter() []PositionHeld { return e.Positions }
