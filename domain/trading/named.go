package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// named returns the code of a customer's live order by its reference_id, which for an unnamed order is the code itself.
func (s *State) named(at decide.Stamp, actor decide.Actor, customer, name string) (scalar.ID, error) {
	a, err := s.customerOf(actor, customer)
	if err != nil {
		return scalar.ID{}, err
	}
	// A name is not enough to find an order that rests: what is kept of names is of the log, and does not lead there.
	// An account has few live orders beside the book's.
	for o := range a.orders(nil) {
		if o.Value.reference == name {
			return o.Code, nil
		}
	}
	if a.references.find(name, s.memory.Counted(at.Time)) != nil {
		return scalar.ID{}, decide.Refuse(decide.Conflict, "ORDER_NOT_LIVE", "the order is final")
	}
	code, err := scalar.ParseID(name)
	if o := s.orders.Get(code); err == nil && (o == nil || o.Value.reference == "") {
		return code, nil
	}
	return scalar.ID{}, decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "the customer has no live order with this name")
}
