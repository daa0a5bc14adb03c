package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// CustomerRegistered says that a customer account was opened.
type CustomerRegistered struct {
	CustomerCode string      `json:"customer_code"`
	Broker       string      `json:"broker"`
	Name         string      `json:"name"`
	Created      scalar.Time `json:"created"`
}

// InstrumentListed says that an instrument was listed. Its data is the instrument.
type InstrumentListed struct{ market.Instrument }

// InstrumentChanged says that an instrument's status or parameters changed. Its data is the instrument afterwards.
type InstrumentChanged struct{ market.Instrument }

// InstrumentDelisted says that an instrument is no longer listed. Its data is the instrument afterwards.
type InstrumentDelisted struct{ market.Instrument }

// IndexUpdated says that an index price came in, and what mark price follows.
type IndexUpdated struct {
	Symbol     string        `json:"symbol"`
	IndexPrice fixed.Decimal `json:"index_price"`
	MarkPrice  fixed.Decimal `json:"mark_price"`
}

// DepositCompleted says that a deposit was credited.
type DepositCompleted struct {
	ledger.Transaction
	Entries []ledger.Posting `json:"postings"`
}

// WithdrawalRequested says that a withdrawal was accepted and its amount reserved. No money has moved.
type WithdrawalRequested struct{ ledger.Transaction }

// WithdrawalCompleted says that a withdrawal was paid out.
type WithdrawalCompleted struct {
	ledger.Transaction
	Entries []ledger.Posting `json:"postings"`
}

// WithdrawalCanceled says that a withdrawal's reserve was released. No money has moved.
type WithdrawalCanceled struct{ ledger.Transaction }

// FeeProfileSet says what a customer pays on an instrument, in basis points.
type FeeProfileSet struct {
	CustomerCode string        `json:"customer_code"`
	Broker       string        `json:"broker"`
	Symbol       string        `json:"symbol"`
	MakerFee     fixed.Decimal `json:"maker_fee"`
	TakerFee     fixed.Decimal `json:"taker_fee"`
}

// MarginProfileSet says what an account's default margins are. Where a leverage was given, the exact rates are
// 1/leverage and half of it, and the percentages are rounded up.
type MarginProfileSet struct {
	CustomerCode      string        `json:"customer_code"`
	Broker            string        `json:"broker"`
	Leverage          int           `json:"leverage,omitzero"`
	InitialMargin     fixed.Decimal `json:"initial_margin"`
	MaintenanceMargin fixed.Decimal `json:"maintenance_margin"`
}

// LeverageSet says that a customer's override for an instrument changed.
type LeverageSet struct {
	CustomerCode string `json:"customer_code"`
	Broker       string `json:"broker"`
	Symbol       string `json:"symbol"`
	Leverage     int    `json:"leverage"`
}

// OrderEvent is implemented by the events of orders. A record holds at most one for each order; its data is the order
// in full after the record, and its type says what happened to the order last.
type OrderEvent interface {
	decide.Event
	// After returns the order after the record. It is not to be changed.
	After() *order.Order
}

// The events of orders.
type (
	// OrderOpened says that a new order rests in full.
	OrderOpened struct{ order.Order }
	// OrderPartiallyFilled says that an order traded and what remains rests, or goes on trading in the next step.
	OrderPartiallyFilled struct{ order.Order }
	// OrderFilled says that an order is done.
	OrderFilled struct{ order.Order }
	// OrderCanceled says that what remained of an order was canceled.
	OrderCanceled struct{ order.Order }
	// OrderExpired says that an order's time ran out.
	OrderExpired struct{ order.Order }
	// OrderRejected says that an order was refused by a rule of business.
	OrderRejected struct{ order.Order }
	// OrderAmended says that a live order's terms changed, by request or because a reduce-only order was cut.
	OrderAmended struct{ order.Order }
)

// TradeType says what caused a trade.
type TradeType string

// The kinds of trade.
const (
	Trade            TradeType = "trade"
	Liquidation      TradeType = "liquidation"
	AutoDeleveraging TradeType = "auto_deleveraging"
)

// TradeExecuted says that two orders matched.
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

// TradeLeg is one party's part of a trade.
type TradeLeg struct {
	OrderCode    scalar.ID `json:"order_code"`
	CustomerCode string    `json:"customer_code"`
	Broker       string    `json:"broker"`
	// Fee is what the party paid; negative for a rebate.
	Fee         fixed.Money `json:"fee"`
	ReferenceID string      `json:"reference_id"`
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

// Work says what the engine works off in steps: what Step names, and the names on the due list begin with.
type Work string

// The kinds of work. Those of the first group go on from where a command left them, until they are finished; the others
// become due at a time.
const (
	WorkSweep      Work = "sweep"       // an order that takes more than fits one record
	WorkMassCancel Work = "mass_cancel" // a customer's orders are canceled
	WorkDelisting  Work = "delisting"   // an instrument is no longer listed, its orders are canceled

	WorkCancelAllAfter Work = "cancel_all_after"
	WorkExpiry         Work = "expiry"

	WorkSetAside Work = "set_aside" // no work: some is taken off the due list
)

// WorkStarted says that a command's work did not fit the record and goes on in steps.
type WorkStarted struct {
	Work Work `json:"work"`
	// CommandID is the command that waits for the end; zero where none does.
	CommandID    scalar.ID    `json:"command_id,omitzero"`
	CustomerCode string       `json:"customer_code,omitzero"`
	Symbol       string       `json:"symbol,omitzero"`
	Reason       order.Reason `json:"reason,omitzero"`
	// OrderCode is the active taker, of a sweep.
	OrderCode scalar.ID `json:"order_code,omitzero"`
	// Bound is the last price at which the taker may trade.
	Bound fixed.Decimal `json:"bound,omitzero"`
	// PriceProtection says that the bound is the price band, not the order's own limit.
	PriceProtection bool `json:"price_protection,omitzero"`
	// Canceled counts the orders that this record canceled.
	Canceled int `json:"canceled,omitzero"`
}

// WorkFinished says that a command's work is done, in steps or at once.
type WorkFinished struct {
	Work         Work      `json:"work"`
	CommandID    scalar.ID `json:"command_id,omitzero"`
	CustomerCode string    `json:"customer_code,omitzero"`
	Symbol       string    `json:"symbol,omitzero"`
	OrderCode    scalar.ID `json:"order_code,omitzero"`
	// Canceled counts all orders that were canceled on the command, in all its records.
	Canceled int `json:"canceled"`
}

// CancelAllAfterSet says when the customer's orders will be canceled, or that they will not.
type CancelAllAfterSet struct {
	CustomerCode   string      `json:"customer_code"`
	Broker         string      `json:"broker"`
	TimeoutSeconds int         `json:"timeout_seconds"`
	ExpiresAt      scalar.Time `json:"expires_at,omitzero"`
}

// CancelAllAfterFired says that the customer's dead-man switch went off and is disarmed.
type CancelAllAfterFired struct {
	CustomerCode string `json:"customer_code"`
	Broker       string `json:"broker"`
}

// Step opens every record that the engine writes for due work.
type Step struct {
	Work Work `json:"work"`
}

// DueSetAside says that due work failed even alone and was taken off the due list.
type DueSetAside struct {
	// Entry names the work: its kind, a slash, and the order, customer or command that it is about.
	Entry string `json:"entry"`
	Error string `json:"error"`
}

// DuePutBack says that work that was set aside is due again.
type DuePutBack struct {
	Entry string `json:"entry"`
}

// RulesActivated says that the rules with the number are in force from the next record on.
type RulesActivated struct {
	Rules int `json:"rules"`
}
