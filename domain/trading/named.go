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
	if ref := a.references.find(name, s.core.Counted(at.Time)); ref != nil {
		if ref.final {
			return scalar.ID{}, decide.Refuse(decide.Conflict, "ORDER_NOT_LIVE", "the order is final")
		}
		return ref.order, nil
	}
	code, err := scalar.ParseID(name)
	if o := s.orders.Get(code); err == nil && (o == nil || o.Value.reference == "") {
		return code, nil
	}
	return scalar.ID{}, decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "the customer has no live order with this name")
}
