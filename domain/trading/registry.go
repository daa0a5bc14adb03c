package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/ledger"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// registry lists every event type that the journal may hold, besides the journal's own.
func registry() *decide.Registry {
	r := decide.NewRegistry()
	for _, fresh := range []func() decide.Event{
		func() decide.Event { return new(CustomerRegistered) },
		func() decide.Event { return new(InstrumentListed) },
		func() decide.Event { return new(InstrumentChanged) },
		func() decide.Event { return new(InstrumentDelisted) },
		func() decide.Event { return new(IndexUpdated) },
		func() decide.Event { return new(DepositCompleted) },
		func() decide.Event { return new(WithdrawalRequested) },
		func() decide.Event { return new(WithdrawalCompleted) },
		func() decide.Event { return new(WithdrawalCanceled) },
		func() decide.Event { return new(FeeProfileSet) },
		func() decide.Event { return new(MarginProfileSet) },
		func() decide.Event { return new(LeverageSet) },
		func() decide.Event { return new(OrderOpened) },
		func() decide.Event { return new(OrderPartiallyFilled) },
		func() decide.Event { return new(OrderFilled) },
		func() decide.Event { return new(OrderCanceled) },
		func() decide.Event { return new(OrderExpired) },
		func() decide.Event { return new(OrderRejected) },
		func() decide.Event { return new(OrderAmended) },
		func() decide.Event { return new(TradeExecuted) },
		func() decide.Event { return new(WorkStarted) },
		func() decide.Event { return new(WorkFinished) },
		func() decide.Event { return new(CancelAllAfterSet) },
		func() decide.Event { return new(CancelAllAfterFired) },
		func() decide.Event { return new(Step) },
		func() decide.Event { return new(DueSetAside) },
		func() decide.Event { return new(DuePutBack) },
		func() decide.Event { return new(RulesActivated) },
	} {
		r.Add(fresh)
	}
	return r
}

// EventType returns "customer.registered".
func (*CustomerRegistered) EventType() string { return "customer.registered" }

// EventVersion returns 1.
func (*CustomerRegistered) EventVersion() int { return 1 }

// EventType returns "instrument.listed".
func (*InstrumentListed) EventType() string { return "instrument.listed" }

// EventVersion returns 1.
func (*InstrumentListed) EventVersion() int { return 1 }

// EventType returns "instrument.changed".
func (*InstrumentChanged) EventType() string { return "instrument.changed" }

// EventVersion returns 1.
func (*InstrumentChanged) EventVersion() int { return 1 }

// EventType returns "instrument.delisted".
func (*InstrumentDelisted) EventType() string { return "instrument.delisted" }

// EventVersion returns 1.
func (*InstrumentDelisted) EventVersion() int { return 1 }

// EventType returns "index.updated".
func (*IndexUpdated) EventType() string { return "index.updated" }

// EventVersion returns 1.
func (*IndexUpdated) EventVersion() int { return 1 }

// EventType returns "deposit.completed".
func (*DepositCompleted) EventType() string { return "deposit.completed" }

// EventVersion returns 1.
func (*DepositCompleted) EventVersion() int { return 1 }

// EventType returns "withdrawal.requested".
func (*WithdrawalRequested) EventType() string { return "withdrawal.requested" }

// EventVersion returns 1.
func (*WithdrawalRequested) EventVersion() int { return 1 }

// EventType returns "withdrawal.completed".
func (*WithdrawalCompleted) EventType() string { return "withdrawal.completed" }

// EventVersion returns 1.
func (*WithdrawalCompleted) EventVersion() int { return 1 }

// EventType returns "withdrawal.canceled".
func (*WithdrawalCanceled) EventType() string { return "withdrawal.canceled" }

// EventVersion returns 1.
func (*WithdrawalCanceled) EventVersion() int { return 1 }

// EventType returns "fee_profile.set".
func (*FeeProfileSet) EventType() string { return "fee_profile.set" }

// EventVersion returns 1.
func (*FeeProfileSet) EventVersion() int { return 1 }

// EventType returns "margin_profile.set".
func (*MarginProfileSet) EventType() string { return "margin_profile.set" }

// EventVersion returns 1.
func (*MarginProfileSet) EventVersion() int { return 1 }

// EventType returns "leverage.set".
func (*LeverageSet) EventType() string { return "leverage.set" }

// EventVersion returns 1.
func (*LeverageSet) EventVersion() int { return 1 }

// EventType returns "order.opened".
func (*OrderOpened) EventType() string { return "order.opened" }

// EventVersion returns 1.
func (*OrderOpened) EventVersion() int { return 1 }

// EventType returns "order.partially_filled".
func (*OrderPartiallyFilled) EventType() string { return "order.partially_filled" }

// EventVersion returns 1.
func (*OrderPartiallyFilled) EventVersion() int { return 1 }

// EventType returns "order.filled".
func (*OrderFilled) EventType() string { return "order.filled" }

// EventVersion returns 1.
func (*OrderFilled) EventVersion() int { return 1 }

// EventType returns "order.canceled".
func (*OrderCanceled) EventType() string { return "order.canceled" }

// EventVersion returns 1.
func (*OrderCanceled) EventVersion() int { return 1 }

// EventType returns "order.expired".
func (*OrderExpired) EventType() string { return "order.expired" }

// EventVersion returns 1.
func (*OrderExpired) EventVersion() int { return 1 }

// EventType returns "order.rejected".
func (*OrderRejected) EventType() string { return "order.rejected" }

// EventVersion returns 1.
func (*OrderRejected) EventVersion() int { return 1 }

// EventType returns "order.amended".
func (*OrderAmended) EventType() string { return "order.amended" }

// EventVersion returns 1.
func (*OrderAmended) EventVersion() int { return 1 }

// EventType returns "trade.executed".
func (*TradeExecuted) EventType() string { return "trade.executed" }

// EventVersion returns 1.
func (*TradeExecuted) EventVersion() int { return 1 }

// EventType returns "work.started".
func (*WorkStarted) EventType() string { return "work.started" }

// EventVersion returns 1.
func (*WorkStarted) EventVersion() int { return 1 }

// EventType returns "work.finished".
func (*WorkFinished) EventType() string { return "work.finished" }

// EventVersion returns 1.
func (*WorkFinished) EventVersion() int { return 1 }

// EventType returns "cancel_all_after.set".
func (*CancelAllAfterSet) EventType() string { return "cancel_all_after.set" }

// EventVersion returns 1.
func (*CancelAllAfterSet) EventVersion() int { return 1 }

// EventType returns "cancel_all_after.fired".
func (*CancelAllAfterFired) EventType() string { return "cancel_all_after.fired" }

// EventVersion returns 1.
func (*CancelAllAfterFired) EventVersion() int { return 1 }

// EventType returns "engine.step".
func (*Step) EventType() string { return "engine.step" }

// EventVersion returns 1.
func (*Step) EventVersion() int { return 1 }

// EventType returns "due.set_aside".
func (*DueSetAside) EventType() string { return "due.set_aside" }

// EventVersion returns 1.
func (*DueSetAside) EventVersion() int { return 1 }

// EventType returns "due.put_back".
func (*DuePutBack) EventType() string { return "due.put_back" }

// EventVersion returns 1.
func (*DuePutBack) EventVersion() int { return 1 }

// EventType returns "rules.activated".
func (*RulesActivated) EventType() string { return "rules.activated" }

// EventVersion returns 1.
func (*RulesActivated) EventVersion() int { return 1 }

// After implements OrderEvent.
func (e *OrderOpened) After() *order.Order { return &e.Order }

// After implements OrderEvent.
func (e *OrderPartiallyFilled) After() *order.Order { return &e.Order }

// After implements OrderEvent.
func (e *OrderFilled) After() *order.Order { return &e.Order }

// After implements OrderEvent.
func (e *OrderCanceled) After() *order.Order { return &e.Order }

// After implements OrderEvent.
func (e *OrderExpired) After() *order.Order { return &e.Order }

// After implements OrderEvent.
func (e *OrderRejected) After() *order.Order { return &e.Order }

// After implements OrderEvent.
func (e *OrderAmended) After() *order.Order { return &e.Order }

// Postings implements ledger.Posted.
func (e *DepositCompleted) Postings() []ledger.Posting { return e.Entries }

// Postings implements ledger.Posted.
func (e *WithdrawalCompleted) Postings() []ledger.Posting { return e.Entries }

// Postings implements ledger.Posted.
func (e *TradeExecuted) Postings() []ledger.Posting { return e.Entries }
