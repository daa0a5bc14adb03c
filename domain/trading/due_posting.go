package trading

import (
	"github.com/perpetua-exchange/perpetua/domain/decide"
	"github.com/perpetua-exchange/perpetua/domain/pack"
)

// postingWork posts the charges of funding and settlement: see charge. It alternates with clients, so that a venue with
// very many positions keeps serving. The order in which accounts post makes no difference to any of them, nor does the
// order of an account's positions. A position always posts all its unpaid charges in one record, whether a step or
// another event that touches the position comes first.
type postingWork struct{}

func (postingWork) work(*dueEntry) Work { return WorkPosting }

func (postingWork) subject(e *dueEntry) string {
	x := e.instant
	return x.instrument.contract.Symbol + "/" + x.kind.String() + "/" + x.time.String()
}

func (postingWork) step(s *State, at decide.Stamp, entries []*dueEntry, single bool) decide.Decision {
	x, t := entries[0].instant, s.newHouseAccounts()
	d := stepped(WorkPosting)
	size, most := headBytes, s.most(single)
	others := s.limit.charges
	if single {
		others = 0
	}
	for h := x.instrument.holders.first; h != nil && h.posted < x.number && most > 0; h = h.inHolders.after {
		owed, _ := s.firstCharges(h.account, h, others)
		if size += sizeOf(owed); len(d.Events) > 1 && size > s.limit.size {
			break
		}
		d.Events, _ = t.postCharges(at, d.Events, h.account, owed)
		most--
	}
	balanced(d.Events)
	return d
}

// sizeOf estimates the size in bytes of the events that post these unpaid charges.
func sizeOf(owed []unpaidCharge) int {
	size := 0
	for i := range owed {
		size += owed[i].size()
	}
	return size
}

// size estimates the size in bytes of the event that posts the charge.
func (d *unpaidCharge) size() int {
	a := d.position.account
	return chargeBytes + 3*len(a.code) + len(a.broker) + 5*len(d.position.instrument.contract.Symbol)
}

// String returns the name of the kind.
func (k chargeKind) String() string {
	if k == fundingCharge {
		return string(WorkFunding)
	}
	return string(WorkSettlement)
}

func (postingWork) visit(v *visit, e *dueEntry) *dueEntry {
	if v.Reading() {
		e.instant = new(charge)
	}
	v.instrumentRef(&e.instant.instrument)
	pack.Int(v.Coder, &e.instant.number)
	if i := e.instant.instrument; i != nil {
		for _, x := range i.charges {
			if x.number == e.instant.number {
				return x.posting
			}
		}
	}
	return nil
}
