package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/scalar"
)

// references are the clients' own names for a customer's orders, each with the fingerprint of the request and the
// record that changed the order last. A name is held while its order is live, and for 24 hours after its last
// change, of at most 100,000 final orders, the oldest being forgotten first. Times
// are as the state's memory counts them.
type references struct {
	names map[string]*reference
	// Final orders' names in the order in which they became so. Record times never go back, so the oldest is first.
	oldest, newest *reference
	final          int
}

type reference struct {
	name        string
	fingerprint string
	sequence    int64
	time        scalar.Time
	order       scalar.ID // that has the name; zero once it is final
	final       bool
	prev, next  *reference
}

// find returns what is remembered of a name as of a time.
func (r *references) find(name string, now scalar.Time) *reference {
	ref := r.names[name]
	if ref == nil || ref.final && now-ref.time >= decide.Remember {
		return nil
	}
	return ref
}

// note remembers that a record, of a time as it counts, changed the order with the code and the name. The fingerprint
// counts when the name is new.
func (r *references) note(sequence int64, now scalar.Time, code scalar.ID, name, fingerprint string, final bool) {
	ref := r.names[name]
	if ref == nil || ref.final {
		r.forget(ref)
		ref = &reference{name: name, fingerprint: fingerprint}
		if r.names == nil {
			r.names = make(map[string]*reference)
		}
		r.names[name] = ref
	}
	ref.sequence, ref.time = sequence, now
	if !final {
		ref.order = code
		return
	}
	ref.order, ref.final = scalar.ID{}, true
	ref.prev = r.newest
	if r.newest == nil {
		r.oldest = ref
	} else {
		r.newest.next = ref
	}
	r.newest = ref
	r.final++
	for r.final > MaxReferences || now-r.oldest.time >= decide.Remember {
		r.forget(r.oldest)
	}
}

// forget drops a final order's name.
func (r *references) forget(ref *reference) {
	if ref == nil {
		return
	}
	if ref.prev == nil {
		r.oldest = ref.next
	} else {
		ref.prev.next = ref.next
	}
	if ref.next == nil {
		r.newest = ref.prev
	} else {
		ref.next.prev = ref.prev
	}
	ref.prev, ref.next = nil, nil
	r.final--
	delete(r.names, ref.name)
}
