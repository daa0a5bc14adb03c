package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// named returns the code of a customer's live order by its reference_id, which is the code itself for an order without
// a name.
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

// namedOrder returns the customer's live order with the client's name, or with the code if the name is empty.
func (s *State) namedOrder(at decide.Stamp, actor decide.Actor, customer string, code scalar.ID, name string) (*resting, error) {
	if name != "" {
		var err error
		if code, err = s.named(at, actor, customer, name); err != nil {
			return nil, err
		}
	}
	return s.liveOrder(at, actor, customer, code)
}
