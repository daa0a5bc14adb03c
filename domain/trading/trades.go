package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// TradeType is the cause of a trade.
type TradeType string

// The kinds of trade.
const (
	Trade            TradeType = "trade"
	Liquidation      TradeType = "liquidation"
	AutoDeleveraging TradeType = "auto_deleveraging"
)

// TradeExecuted says that two orders matched or, if its legs have no orders, that another account took a position in
// liquidation.
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
	// Positions are the positions of the taker and of the maker after the trade.
	Positions []PositionHeld   `json:"positions"`
	Entries   []ledger.Posting `json:"postings"`
}

// EventType returns "trade.executed".
func (*TradeExecuted) EventType() string { return "trade.executed" }

// Postings implements ledger.Posted.
func (e *TradeExecuted) Postings() []ledger.Posting { return e.Entries }

// TradeLeg is the part of one party in a trade.
type TradeLeg struct {
	// OrderCode is zero and ReferenceID empty if the trade has no orders: when the insurance fund takes a position, and
	// when positions are deleveraged.
	OrderCode    scalar.ID `json:"order_code,omitzero"`
	CustomerCode string    `json:"customer_code"`
	Broker       string    `json:"broker"`
	// Fee is the fee that the party paid, negative for a rebate.
	Fee         fixed.Money `json:"fee"`
	ReferenceID string      `json:"reference_id,omitzero"`
}

// PositionHeld is a customer's position after a trade.
type PositionHeld struct {
	CustomerCode string        `json:"customer_code"`
	Symbol       string        `json:"symbol"`
	Amount       fixed.Decimal `json:"amount"` // signed: negative is short
	// Cost is the signed sum of the notional that opened the present position.
	Cost fixed.Money `json:"cost"`
	// EntryPrice is the cost per contract, for display: half to even at 8 decimals.
	EntryPrice fixed.Decimal `json:"entry_price,omitzero"`
}

// Role is the side of a customer in a trade.
type Role string

// The two roles.
const (
	Maker Role = "maker"
	Taker Role = "taker"
)

// CustomerTrade is one side of a trade, as shown to the customer.
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
	Type         TradeType // the type for this customer: see TradeExecuted.Sides
	ReferenceID  string    // of the order
	Time         scalar.Time
	Sequence     int64
	Ordinal      int // index among the trades of the record
}

// PublicTrade is the public view of a trade.
type PublicTrade struct {
	Code     scalar.ID
	Symbol   string
	Price    fixed.Decimal
	Amount   fixed.Decimal
	Action   order.Action // the taker's
	Type     TradeType
	Time     scalar.Time
	Sequence int64
	Ordinal  int // index among the trades of the record
}

// Sides returns the trade as the taker and as the maker see it. In a liquidation, only the taker was liquidated; for
// the maker it is an ordinary trade. Deleveraging has the same type for both. ordinal is the index among the trades of
// the record.
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

// Public returns the public view of the trade, which is at index ordinal among the trades of the record.
func (e *TradeExecuted) Public(at decide.Stamp, ordinal int) PublicTrade {
	return PublicTrade{Code: e.Code, Symbol: e.Symbol, Price: e.Price, Amount: e.Amount, Action: e.Action, Type: e.Type,
		Time: at.Time, Sequence: at.Sequence, Ordinal: ordinal}
}

// MovesLastPrice reports whether the trade sets the last price and counts for candles and triggers. Trades without
// orders, which are takeovers by the insurance fund and deleveraging, do not.
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
	// PositionsAfter returns the changed positions after the event. The caller MUST NOT change them.
	PositionsAfter() []PositionHeld
	// BrokerOf returns the broker of a customer with a changed position.
	BrokerOf(customer string) string
}

// PositionsAfter implements PositionEvent.
func (e *TradeExecuted) PositionsAfter() []PositionHeld { return e.Positions }
