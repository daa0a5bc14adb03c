package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// eventTable is the table of the journal's events. Evolve applies the common parts of events by their interfaces: orders
// (OrderEvent), positions (PositionEvent), and postings (ledger.Posted). The rows apply the rest.
var eventTable = decide.NewEvents(
	decide.On((*fold).customerRegistered),
	decide.On((*fold).instrumentListed),
	decide.On((*fold).instrumentChanged),
	decide.On((*fold).instrumentDelisted),
	decide.On((*fold).indexUpdated),
	decide.On((*fold).guardSet),
	decide.On((*fold).fundingFixed),
	decide.On((*fold).fundingPosted),
	decide.On((*fold).settlementFixed),
	decide.On((*fold).settlementPosted),
	decide.On((*fold).depositCompleted),
	decide.On((*fold).withdrawalRequested),
	decide.On((*fold).withdrawalCompleted),
	decide.On((*fold).withdrawalCanceled),
	decide.On((*fold).feeProfileSet),
	decide.On((*fold).marginProfileSet),
	decide.On((*fold).leverageSet),
	decide.On((*fold).leverageChanged),
	decide.Unapplied[*fold, OrderOpened](),
	decide.Unapplied[*fold, OrderPartiallyFilled](),
	decide.Unapplied[*fold, OrderFilled](),
	decide.Unapplied[*fold, OrderCanceled](),
	decide.Unapplied[*fold, OrderExpired](),
	decide.Unapplied[*fold, OrderRejected](),
	decide.Unapplied[*fold, OrderAmended](),
	decide.On((*fold).tradeExecuted),
	decide.On((*fold).triggerFired),
	decide.On((*fold).workStarted),
	decide.On((*fold).workFinished),
	decide.On((*fold).cancelAllAfterSet),
	decide.On((*fold).cancelAllAfterFired),
	decide.Unapplied[*fold, Step](),
	decide.On((*fold).insuranceDeposited),
	decide.Unapplied[*fold, InsurancePaid](),
	decide.On((*fold).sessionOpened),
	decide.On((*fold).gatewaySeen),
	decide.On((*fold).gatewayLost),
	decide.On((*fold).sessionEnded),
	decide.On((*fold).sessionSwept),
	decide.On((*fold).dueSetAside),
	decide.On((*fold).duePutBack),
	decide.On((*fold).liabilitiesRecorded),
	decide.On((*fold).openingImported),
	decide.On((*fold).positionOpened),
	decide.Old[*fold]("index.updated", 1, readIndexUpdated1),
	decide.Old[*fold]("order.rejected", 1, rejectedWithoutLeverage),
)

// CustomerRegistered says that a customer account was opened.
type CustomerRegistered struct {
	CustomerCode string      `json:"customer_code"`
	Broker       string      `json:"broker"`
	Name         string      `json:"name"`
	Created      scalar.Time `json:"created"`
}

// EventType returns "customer.registered".
func (*CustomerRegistered) EventType() string { return "customer.registered" }

// InstrumentListed says that an instrument was listed. Its data is the instrument.
type InstrumentListed struct{ market.Instrument }

// EventType returns "instrument.listed".
func (*InstrumentListed) EventType() string { return "instrument.listed" }

// InstrumentChanged says that an instrument's status or parameters changed. Its data is the instrument afterwards.
type InstrumentChanged struct{ market.Instrument }

// EventType returns "instrument.changed".
func (*InstrumentChanged) EventType() string { return "instrument.changed" }

// InstrumentDelisted says that an instrument is no longer listed. Its data is the instrument afterwards.
type InstrumentDelisted struct{ market.Instrument }

// EventType returns "instrument.delisted".
func (*InstrumentDelisted) EventType() string { return "instrument.delisted" }

// DepositCompleted says that a deposit was credited.
type DepositCompleted struct {
	ledger.Transaction
	Entries []ledger.Posting `json:"postings"`
}

// EventType returns "deposit.completed".
func (*DepositCompleted) EventType() string { return "deposit.completed" }

// Postings implements ledger.Posted.
func (e *DepositCompleted) Postings() []ledger.Posting { return e.Entries }

// WithdrawalRequested says that a withdrawal was accepted and its amount reserved. No money has moved.
type WithdrawalRequested struct{ ledger.Transaction }

// EventType returns "withdrawal.requested".
func (*WithdrawalRequested) EventType() string { return "withdrawal.requested" }

// WithdrawalCompleted says that a withdrawal was paid out.
type WithdrawalCompleted struct {
	ledger.Transaction
	Entries []ledger.Posting `json:"postings"`
}

// EventType returns "withdrawal.completed".
func (*WithdrawalCompleted) EventType() string { return "withdrawal.completed" }

// Postings implements ledger.Posted.
func (e *WithdrawalCompleted) Postings() []ledger.Posting { return e.Entries }

// WithdrawalCanceled says that a withdrawal's reserve was released. No money has moved.
type WithdrawalCanceled struct{ ledger.Transaction }

// EventType returns "withdrawal.canceled".
func (*WithdrawalCanceled) EventType() string { return "withdrawal.canceled" }

// FeeProfileSet says which fees a customer pays on an instrument, in basis points.
type FeeProfileSet struct {
	CustomerCode string        `json:"customer_code"`
	Broker       string        `json:"broker"`
	Symbol       string        `json:"symbol"`
	MakerFee     fixed.Decimal `json:"maker_fee"`
	TakerFee     fixed.Decimal `json:"taker_fee"`
}

// EventType returns "fee_profile.set".
func (*FeeProfileSet) EventType() string { return "fee_profile.set" }

// MarginProfileSet says which default margins an account has. If a leverage was given, the exact rates are 1/leverage
// and half of it, and the percentages are rounded up.
type MarginProfileSet struct {
	CustomerCode      string        `json:"customer_code"`
	Broker            string        `json:"broker"`
	Leverage          int           `json:"leverage,omitzero"`
	InitialMargin     fixed.Decimal `json:"initial_margin"`
	MaintenanceMargin fixed.Decimal `json:"maintenance_margin"`
}

// EventType returns "margin_profile.set".
func (*MarginProfileSet) EventType() string { return "margin_profile.set" }

// LeverageSet says that an order changed a customer's override on an instrument.
type LeverageSet struct {
	CustomerCode string `json:"customer_code"`
	Broker       string `json:"broker"`
	Symbol       string `json:"symbol"`
	Leverage     int    `json:"leverage"`
}

// EventType returns "leverage.set".
func (*LeverageSet) EventType() string { return "leverage.set" }

// LeverageChanged says that a customer's override on an instrument was set or, with Leverage 0, removed without an
// order. MarginProfile is the account's profile after that.
type LeverageChanged struct {
	CustomerCode  string        `json:"customer_code"`
	Broker        string        `json:"broker"`
	Symbol        string        `json:"symbol"`
	Leverage      int           `json:"leverage,omitzero"`
	MarginProfile MarginProfile `json:"margin_profile"`
}

// EventType returns "leverage.changed".
func (*LeverageChanged) EventType() string { return "leverage.changed" }

// CancelAllAfterSet says when the customer's orders will be canceled, or that the dead man's switch is disarmed.
type CancelAllAfterSet struct {
	CustomerCode   string      `json:"customer_code"`
	Broker         string      `json:"broker"`
	TimeoutSeconds int         `json:"timeout_seconds"`
	ExpiresAt      scalar.Time `json:"expires_at,omitzero"`
}

// EventType returns "cancel_all_after.set".
func (*CancelAllAfterSet) EventType() string { return "cancel_all_after.set" }

// CancelAllAfterFired says that the customer's dead man's switch went off and is disarmed.
type CancelAllAfterFired struct {
	CustomerCode string `json:"customer_code"`
	Broker       string `json:"broker"`
}

// EventType returns "cancel_all_after.fired".
func (*CancelAllAfterFired) EventType() string { return "cancel_all_after.fired" }
