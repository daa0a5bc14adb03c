package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/fixed"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// Work is a kind of work that the engine does in steps. Step has it, and the names of due entries begin with it.
type Work string

// The kinds of work. Those of the first group continue a command until they are finished. The others become due at a
// certain time.
const (
	WorkSweep      Work = "sweep"       // an order that trades more than fits one record
	WorkMassCancel Work = "mass_cancel" // all orders of a customer are canceled
	WorkDelisting  Work = "delisting"   // an instrument is withdrawn and its orders are canceled

	WorkStaleGuard     Work = "stale_guard"
	WorkFunding        Work = "funding"
	WorkSettlement     Work = "settlement"
	WorkTrigger        Work = "trigger"         // a stop with a reached price fires
	WorkLiquidation    Work = "liquidation"     // an account has less equity than maintenance margin
	WorkInsuranceOrder Work = "insurance_order" // the insurance fund's order on an instrument moves
	WorkCancelAllAfter Work = "cancel_all_after"
	WorkPosting        Work = "posting"
	WorkExpiry         Work = "expiry"
	WorkGateway        Work = "gateway" // a gateway did not report in time
	WorkSession        Work = "session" // the many orders of an ended session are canceled

	WorkSetAside Work = "set_aside" // not due work: an entry is removed from the due list
)

// dueWorks returns the kinds of work with which the names of due entries begin.
func dueWorks() []Work {
	return []Work{WorkSweep, WorkMassCancel, WorkDelisting, WorkStaleGuard, WorkFunding, WorkSettlement, WorkTrigger, WorkLiquidation,
		WorkInsuranceOrder, WorkCancelAllAfter, WorkPosting, WorkExpiry, WorkGateway, WorkSession}
}

// WorkStarted says that a command's work did not fit the record and continues in steps.
type WorkStarted struct {
	Work Work `json:"work"`
	// CommandID is the command that waits for the result; zero if none does.
	CommandID    scalar.ID    `json:"command_id,omitzero"`
	CustomerCode string       `json:"customer_code,omitzero"`
	Symbol       string       `json:"symbol,omitzero"`
	Reason       order.Reason `json:"reason,omitzero"`
	// OrderCode is the taker of a sweep.
	OrderCode scalar.ID `json:"order_code,omitzero"`
	// Bound is the last price at which the taker may trade.
	Bound fixed.Decimal `json:"bound,omitzero"`
	// PriceProtection says that the bound is the price band, not the order's limit price.
	PriceProtection bool `json:"price_protection,omitzero"`
	// Canceled is the number of orders that this record canceled.
	Canceled int `json:"canceled,omitzero"`
}

// EventType returns "work.started".
func (*WorkStarted) EventType() string { return "work.started" }

// WorkFinished says that a command's work is done, in one record or in several.
type WorkFinished struct {
	Work         Work      `json:"work"`
	CommandID    scalar.ID `json:"command_id,omitzero"`
	CustomerCode string    `json:"customer_code,omitzero"`
	Symbol       string    `json:"symbol,omitzero"`
	OrderCode    scalar.ID `json:"order_code,omitzero"`
	// Canceled is the number of orders that the command canceled in all its records.
	Canceled int `json:"canceled"`
}

// EventType returns "work.finished".
func (*WorkFinished) EventType() string { return "work.finished" }

// Step is the first event of every record of due work.
type Step struct {
	Work Work `json:"work"`
}

// EventType returns "engine.step".
func (*Step) EventType() string { return "engine.step" }
