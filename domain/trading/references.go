package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// references holds the client's names for a customer's orders, each with the fingerprint of the request and the last
// record that changed the order. A name is held while its order is live, and for 24 hours after the last change. Of
// final orders, only the latest 100,000 names are held. Times are as the memory of the state counts them
// (decide.Memory.Counted).
type references struct {
	names map[string]*reference
	// The names of final orders, in the order in which the orders became final. Record times never decrease, so the
	// oldest name is first.
	finals chain[reference, finalLinks]
}

type reference struct {
	name        string
	fingerprint string
	sequence    int64
	time        scalar.Time
	order       scalar.ID // the live order with the name; zero once it is final
	final       bool
	inFinals    links[reference]
}

type finalLinks struct{}

func (finalLinks) links(r *reference) *links[reference] { return &r.inFinals }

// find returns the entry of a name as of now, or nil.
func (r *references) find(name string, now scalar.Time) *reference {
	ref := r.names[name]
	if ref == nil || ref.final && now-ref.time >= decide.Remember {
		return nil
	}
	return ref
}

// note records that a record, with now as its counted time, changed the order with this code and name. It keeps the
// fingerprint only if the name is new.
func (r *references) note(sequence int64, now scalar.Time, code scalar.ID, name, fingerprint string, final bool) {
	ref := r.names[name]
	if ref == nil || ref.final {
		r.forget(ref)
		ref = &reference{name: name, fingerprint: fingerprint}
		r.hold(ref)
	}
	ref.sequence, ref.time = sequence, now
	if !final {
		ref.order = code
		return
	}
	ref.order, ref.final = scalar.ID{}, true
	r.finals.push(ref)
	for r.finals.length > MaxReferences || now-r.finals.first.time >= decide.Remember {
		r.forget(r.finals.first)
	}
}

// hold adds a name.
func (r *references) hold(ref *reference) {
	if r.names == nil {
		r.names = make(map[string]*reference)
	}
	r.names[ref.name] = ref
}

// forget removes the name of a final order.
func (r *references) forget(ref *reference) {
	if ref != nil {
		r.finals.remove(ref)
		delete(r.names, ref.name)
	}
}
