package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// cancelAllAfterWork fires the dead man's switches (cancel_all_after), one per record.
type cancelAllAfterWork struct{ aboutAccount }

func (cancelAllAfterWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	return stepped(WorkCancelAllAfter, fireCancelAllAfter(s, at, nil, entries[0].account, s.most(single))...)
}

// fireCancelAllAfter decides the cancellation of up to n orders of a customer after the dead man's switch went off. If
// there are more, a task cancels the rest.
func fireCancelAllAfter(s *State, at decide.Stamp, events []decide.Event, a *account, n int) []decide.Event {
	w := &task{kind: WorkMassCancel, account: a, reason: order.CancelAllAfter}
	events, canceled, more := w.end(s, at, append(events, &CancelAllAfterFired{CustomerCode: a.code, Broker: a.broker}), n)
	if more {
		events = append(events, &WorkStarted{Work: w.kind, CustomerCode: a.code, Reason: w.reason, Canceled: canceled})
	}
	return events
}
