package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/order"
)

// expiryWork closes the orders that have expired. An order matches nothing from its expiry time on, even before this
// step closes it.
type expiryWork struct{}

func (expiryWork) work(*dueEntry) Work        { return WorkExpiry }
func (expiryWork) subject(e *dueEntry) string { return e.order.Code.String() }

func (expiryWork) visit(v *visit, e *dueEntry) *dueEntry {
	if o := v.number(e.order, new(int64)); o != nil {
		return o.Value.due
	}
	return nil
}

func (expiryWork) step(_ *State, at decide.Stamp, entries []*dueEntry, _ bool) decide.Decision {
	events := make([]decide.Event, 0, len(entries)+1)
	for _, e := range entries {
		events = append(events, ended(e.order, at, order.Expired, ""))
	}
	return stepped(WorkExpiry, events...)
}
