package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// named returns the code of a customer's live order by its reference_id, which is the code itself for an order without
// a name.
func (r request) named(customer, name string) (scalar.ID, error) {
	a, err := r.customerOf(customer)
	if err != nil {
		return scalar.ID{}, err
	}
	if ref := a.references.find(name, r.core.Counted(r.at.Time)); ref != nil {
		if ref.final {
			return scalar.ID{}, decide.Refuse(decide.Conflict, "ORDER_NOT_LIVE", "the order is final")
		}
		return ref.order, nil
	}
	code, err := scalar.ParseID(name)
	if o := r.orders.Get(code); err == nil && (o == nil || o.Value.reference == "") {
		return code, nil
	}
	return scalar.ID{}, decide.Refuse(decide.NotFound, "UNKNOWN_ORDER", "the customer has no live order with this name")
}

// isCodeOf reports whether a name is the code of a live order of the account that has no name. The code is then its reference_id.
func (r request) isCodeOf(a *account, name string) bool {
	if !decide.Derivable(name) {
		return false
	}
	code, _ := scalar.ParseID(name)
	o := r.orders.Get(code)
	return o != nil && o.Value.position.account == a && o.Value.reference == ""
}

// namedOrder returns the customer's live order with the client's name, or with the code if the name is empty.
func (r request) namedOrder(customer string, code scalar.ID, name string) (*resting, error) {
	if name != "" {
		var err error
		if code, err = r.named(customer, name); err != nil {
			return nil, err
		}
	}
	return r.liveOrder(customer, code)
}
