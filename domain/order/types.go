package order

import (
	"github.com/perpetua-exchange/perpetua/domain/fastjson"
)

// Action is the side of an order or trade.
type Action string

// The two actions.
const (
	Buy  Action = "buy"
	Sell Action = "sell"
)

// Valid reports whether a is a known action.
func (a Action) Valid() bool { return a == Buy || a == Sell }

// Opposite returns the other action.
func (a Action) Opposite() Action {
	if a == Buy {
		return Sell
	}
	return Buy
}

// Type is the submitted order type.
type Type string

// The order types that clients may submit.
const (
	Market             Type = "market"
	Limit              Type = "limit"
	StopLoss           Type = "stop_loss"
	StopLossLimit      Type = "stop_loss_limit"
	TakeProfit         Type = "take_profit"
	TakeProfitLimit    Type = "take_profit_limit"
	TakeProfitStopLoss Type = "take_profit_stop_loss"
)

// Mechanical types, which only the WebSocket interface shows.
const (
	StopMarket Type = "stop_market"
	StopLimit  Type = "stop_limit"
)

// Valid reports whether t is a type that clients may submit.
func (t Type) Valid() bool {
	switch t {
	case Market, Limit, StopLoss, StopLossLimit, TakeProfit, TakeProfitLimit, TakeProfitStopLoss:
		return true
	}
	return false
}

// Conditional reports whether an order of the type waits for a trigger.
func (t Type) Conditional() bool { return t.Valid() && t != Market && t != Limit }

// Limited reports whether an order of the type has a limit price.
func (t Type) Limited() bool { return t == Limit || t == StopLossLimit || t == TakeProfitLimit }

// Mechanical returns the WebSocket interface's name for the type, which says how the order executes once triggered.
func (t Type) Mechanical() Type {
	switch t {
	case StopLoss, TakeProfit:
		return StopMarket
	case StopLossLimit, TakeProfitLimit:
		return StopLimit
	}
	return t
}

// Trigger returns the kind of price that triggers an order of the type, or "" for types without a trigger.
func (t Type) Trigger() TriggerPriceType {
	switch {
	case t == TakeProfitStopLoss:
		return MarkPrice
	case t.Conditional():
		return TradePrice
	}
	return ""
}

// Leg is one of the two prices that an order may wait for.
type Leg string

// The legs. An order of a single type has one, a combo has both.
const (
	StopLossLeg   Leg = "stop_loss"
	TakeProfitLeg Leg = "take_profit"
)

// Of reports whether orders of the type have the leg.
func (l Leg) Of(t Type) bool {
	switch t {
	case StopLoss, StopLossLimit:
		return l == StopLossLeg
	case TakeProfit, TakeProfitLimit:
		return l == TakeProfitLeg
	}
	return t == TakeProfitStopLoss
}

// Below reports whether the leg of an order fires at its price or below it; otherwise it fires at its price or above
// it. The stop loss of a sell order fires when prices fall, that of a buy order when they rise. Take profit is the
// opposite.
func (l Leg) Below(a Action) bool { return (a == Sell) == (l == StopLossLeg) }

// DefaultTimeInForce returns the time in force of an order that does not state one.
func (t Type) DefaultTimeInForce(cash bool) TimeInForce {
	if t.Limited() && !cash {
		return GTC
	}
	return IOC
}

// TriggerPriceType is the kind of price that a trigger watches.
type TriggerPriceType string

// The trigger price types.
const (
	TradePrice TriggerPriceType = "trade_price"
	MarkPrice  TriggerPriceType = "mark_price"
)

// Status is the stage of an order.
type Status string

// The statuses. An order is live while open or partially filled; the others are final.
const (
	Open            Status = "open"
	PartiallyFilled Status = "partially_filled"
	Filled          Status = "filled"
	Canceled        Status = "canceled"
	Expired         Status = "expired"
	Rejected        Status = "rejected"
)

// Live reports whether an order with the status may still trade.
func (s Status) Live() bool { return s == Open || s == PartiallyFilled }

// TimeInForce is how long an order stays live.
type TimeInForce string

// The times in force.
const (
	GTC TimeInForce = "GTC" // until canceled
	IOC TimeInForce = "IOC" // the part that cannot trade immediately is canceled
	FOK TimeInForce = "FOK" // trades in full immediately or not at all
	GTD TimeInForce = "GTD" // until the expire time
)

// Valid reports whether t is a known time in force.
func (t TimeInForce) Valid() bool { return t == GTC || t == IOC || t == FOK || t == GTD }

// Rests reports whether the part that cannot trade immediately stays in the book.
func (t TimeInForce) Rests() bool { return t == GTC || t == GTD }

// Reason is why an order was rejected or canceled.
type Reason string

// The reasons.
const (
	UserRequest                 Reason = "user_request"
	SelfTrade                   Reason = "self_trade"
	PostOnlyWouldCross          Reason = "post_only_would_cross"
	InsufficientMargin          Reason = "insufficient_margin"
	ReduceOnlyInvalid           Reason = "reduce_only_invalid"
	Liquidation                 Reason = "liquidation"
	CancelAllAfter              Reason = "cancel_all_after"
	Disconnect                  Reason = "disconnect"
	InstrumentHalted            Reason = "instrument_halted"
	IOCRemainder                Reason = "ioc_remainder"
	FOKNotFillable              Reason = "fok_not_fillable"
	PriceProtection             Reason = "price_protection"
	PriceOutOfBand              Reason = "price_out_of_band"
	NoLiquidity                 Reason = "no_liquidity"
	TriggerWouldFireImmediately Reason = "trigger_would_fire_immediately"
	CashAmountTooSmall          Reason = "cash_amount_too_small"
)

// The words of the JSON forms, for fastjson.Word, frequent ones first.
var (
	actions           = []Action{Buy, Sell}
	types             = []Type{Limit, Market, StopLoss, StopLossLimit, TakeProfit, TakeProfitLimit, TakeProfitStopLoss}
	statuses          = []Status{Open, Filled, PartiallyFilled, Canceled, Expired, Rejected}
	timesInForce      = []TimeInForce{GTC, IOC, FOK, GTD}
	triggerPriceTypes = []TriggerPriceType{TradePrice, MarkPrice}
)

// ReadAction reads an action as a word (see fastjson.Word).
func ReadAction(r *fastjson.Reader) Action { return fastjson.Word(r, actions...) }
