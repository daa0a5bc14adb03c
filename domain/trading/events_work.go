package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Work says what the engine works off in steps: what Step names, and the names on the due list begin with.
type Work string

// The kinds of work. Those of the first group go on from where a command left them, until they are finished; the others
// become due at a time.
const (
	WorkSweep      Work = "sweep"       // an order that takes more than fits one record
	WorkMassCancel Work = "mass_cancel" // a customer's orders are canceled
	WorkDelisting  Work = "delisting"   // an instrument is no longer listed, its orders are canceled

	WorkStaleGuard     Work = "stale_guard"
	WorkFunding        Work = "funding"
	WorkSettlement     Work = "settlement"
	WorkTrigger        Work = "trigger"         // a stop whose price was reached fires
	WorkLiquidation    Work = "liquidation"     // an account has less equity than maintenance margin
	WorkInsuranceOrder Work = "insurance_order" // the insurance fund's order on an instrument is moved
	WorkCancelAllAfter Work = "cancel_all_after"
	WorkPosting        Work = "posting"
	WorkExpiry         Work = "expiry"
	WorkGateway        Work = "gateway" // of whose sessions nothing was heard for too long
	WorkSession        Work = "session" // has ended, and had many orders

	WorkSetAside Work = "set_aside" // no work: some is taken off the due list
)

// dueWorks are the kinds of work that the names of entries of the due list begin with.
func dueWorks() []Work {
	return []Work{WorkSweep, WorkMassCancel, WorkDelisting, WorkStaleGuard, WorkFunding, WorkSettlement, WorkTrigger, WorkLiquidation,
		WorkInsuranceOrder, WorkCancelAllAfter, WorkPosting, WorkExpiry, WorkGateway, WorkSession}
}

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

// EventType returns "work.started".
func (*WorkStarted) EventType() string { return "work.started" }

// EventVersion returns 1.
func (*WorkStarted) EventVersion() int { return 1 }

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

// EventType returns "work.finished".
func (*WorkFinished) EventType() string { return "work.finished" }

// EventVersion returns 1.
func (*WorkFinished) EventVersion() int { return 1 }

// Step opens every record that the engine writes for due work.
type Step struct {
	Work Work `json:"work"`
}

// EventType returns "engine.step".
func (*Step) EventType() string { return "engine.step" }

// EventVersion returns 1.
func (*Step) EventVersion() int { return 1 }
