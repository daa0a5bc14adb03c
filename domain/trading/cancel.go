package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/market"
	"github.com/perpetua-exchange/perpetua/domain/order"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// cancelOrder decides the cancellation of one live order.
func (r request) cancelOrder(payload *CancelOrder) (decide.Decision, error) {
	o, err := r.namedOrder(payload.CustomerCode, payload.OrderCode, payload.ReferenceID)
	if err != nil {
		return decide.Decision{}, err
	}
	return accepted(ended(o, r.at, order.Canceled, order.UserRequest))
}

// ended returns the event that closes a live order with its present figures.
func ended(o *resting, at decide.Stamp, status order.Status, reason order.Reason) decide.Event {
	t := termsOf(o)
	t.status, t.reason, t.updated = status, reason, at.Time
	return orderEvent(o, o.Price, t, false)
}

// cancelAll decides the cancellation of all of a customer's live orders. The first record has as many as fit.
func (r request) cancelAll(payload *CancelAll) (decide.Decision, error) {
	a, err := r.customerOf(payload.CustomerCode)
	if err != nil {
		return decide.Decision{}, err
	}
	w := &task{kind: WorkMassCancel, command: r.command.Recorded(), account: a, reason: order.UserRequest}
	if payload.Symbol != "" {
		if w.symbol, err = r.listed(payload.Symbol); err != nil {
			return decide.Decision{}, err
		}
	}
	return w.open(r.State, r.at, nil, r.limit.others), nil
}

// delistInstrument decides the withdrawal of an instrument and the cancellation of all orders on it.
func (r request) delistInstrument(payload *DelistInstrument) (decide.Decision, error) {
	i, err := r.instrumentToChange(payload.Symbol)
	if err != nil {
		return decide.Decision{}, err
	}
	if i.openInterest != 0 {
		return decide.Decision{}, decide.Refuse(decide.Conflict, "INSTRUMENT_HAS_OPEN_POSITIONS", "the instrument has open positions")
	}
	after := i.contract.Instrument
	after.Status = market.Withdrawn
	w := &task{kind: WorkDelisting, command: r.command.Recorded(), symbol: i, reason: order.InstrumentHalted}
	return w.open(r.State, r.at, []decide.Event{&InstrumentDelisted{after}}, r.limit.others), nil
}

// maxTimeout is the maximum timeout of a dead man's switch, in seconds.
const maxTimeout = 86_400

// setCancelAllAfter arms, extends or disarms a dead man's switch.
func (r request) setCancelAllAfter(payload *SetCancelAllAfter) (decide.Decision, error) {
	a, err := r.customerOf(payload.CustomerCode)
	if err != nil {
		return decide.Decision{}, err
	}
	if payload.TimeoutSeconds < 0 || payload.TimeoutSeconds > maxTimeout {
		return decide.Decision{}, &decide.Refusal{Kind: decide.Invalid, Code: "INVALID_TIMEOUT", Field: "timeout_seconds", Message: "timeout_seconds must be from 0 to 86400"}
	}
	e := &CancelAllAfterSet{CustomerCode: a.code, Broker: a.broker, TimeoutSeconds: payload.TimeoutSeconds}
	if payload.TimeoutSeconds > 0 {
		e.ExpiresAt = r.at.Time + scalar.Time(payload.TimeoutSeconds)*scalar.Second
	}
	// The switch has gone off, although no step has fired it yet: the command is too late to prevent that.
	if a.cancelAllAfter != nil && a.cancelAllAfter.Time <= r.at.Time {
		return accepted(append(fireCancelAllAfter(r.State, r.at, nil, a, r.limit.others), e)...)
	}
	return accepted(e)
}
