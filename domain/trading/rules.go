package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// The rules in force decide details of Decide. A journal that was created under rules 1 follows them until an operator
// activates newer ones, which every node must support. A new journal starts with the newest rules.
//
// Rules 2:
//   - The events of an order contain the time when it was triggered. A build without rules 2 cannot read these events.
//   - The reason of an order that is canceled when its session ends is disconnect. Under rules 1 it is cancel_all_after.
//   - Before the first index price, market orders are rejected as instrument_halted. Under rules 1 it is no_liquidity.
//
// Rules 3 record the inputs of commands (decide.Decision) and have the events of commitments. A build without rules 3 stops at
// their activation, and its tools without a state at the first record with either.
//
// Rules 4 have policies and proposals (decide.Core.Govern), and rotations of the keys of transparency logs.
//
// Rules 5 have imports of opening balances and positions.
//
// Rules 6:
//   - Proposals have reasons for their end.
//   - The max_leverage of an instrument is at most what its initial margin permits: see Changed. Commands that set a higher one are
//     refused. An instrument that had more before keeps it until a command gives max_leverage or a
//     margin, even unchanged.
//   - No command may name a transaction as the venue names its own: see checkTransferReference. And no order may have the code of the
//     customer's unnamed live order as its name.
const (
	rulesOfClients  = 2
	rulesOfInputs   = 3
	rulesOfFourEyes = 4
	rulesOfOpenings = 5
	rulesOfReasons  = 6
	rulesOfCaps     = 6
	rulesOfOwnNames = 6
)

// forClients reports whether rules 2 or later are in force.
func (s *State) forClients() bool { return s.core.ActiveRules() >= rulesOfClients }

// RecordsInputs implements decide.InputRecorder.
func (s *State) RecordsInputs() bool { return s.core.ActiveRules() >= rulesOfInputs }

// capsLeverage reports whether the rules in force keep the max_leverage of instruments at what their margins permit.
func (s *State) capsLeverage() bool { return s.core.ActiveRules() >= rulesOfCaps }

// ownsNames reports whether the rules in force refuse references that the venue makes.
func (s *State) ownsNames() bool { return s.core.ActiveRules() >= rulesOfOwnNames }

// asOfRules returns a decision with the events that the rules in force permit.
func (s *State) asOfRules(d decide.Decision) decide.Decision {
	if s.forClients() {
		return d
	}
	for _, e := range d.Events {
		if o, ok := e.(OrderEvent); ok {
			o.After().Triggered = 0
		}
	}
	return d
}

// disconnected returns the reason of orders that are canceled when their session ends.
func (s *State) disconnected() order.Reason {
	if s.forClients() {
		return order.Disconnect
	}
	return order.CancelAllAfter
}

// Triggered collects the orders that a record triggers. Under rules 1 only trigger.fired, which precedes the order's event,
// says that an order was triggered; Triggered adds the time to the order. The zero value is ready for use, for one record.
type Triggered struct{ fired []scalar.ID }

// Order processes the next event of a record that was made at the given time. For an order event it returns the order
// after the event, with the time when it was triggered. It returns nil for other events. The caller MUST NOT change the
// order.
func (t *Triggered) Order(e decide.Event, at scalar.Time) *order.Order {
	switch e := e.(type) {
	case *TriggerFired:
		t.fired = append(t.fired, e.OrderCode)
	case OrderEvent:
		after := e.After()
		for _, code := range t.fired {
			if code == after.Code && after.Triggered.IsZero() {
				triggered := *after
				triggered.Triggered = at
				return &triggered
			}
		}
		return after
	}
	return nil
}
